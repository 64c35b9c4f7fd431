// Functions that match a pattern, and how much of a tree is below them.

import type { Flame } from "../../profile/flame.ts";
import { compile } from "../../search.ts";

/** Searches longer names' first part only: names come from files that nobody vouches for. */
const LONGEST = 4000;

/** For each function, 1 if its name matches; undefined without a pattern. */
export function hitsOf(names: readonly string[], pattern: string): Uint8Array | undefined {
  if (!pattern) return undefined;
  const expression = compile(pattern);
  return Uint8Array.from(names, (name) => (expression.test(name.length > LONGEST ? name.slice(0, LONGEST) : name) ? 1 : 0));
}

/** The weight of what passes through a match, each stack once, and the outermost matches from left to right in each level. */
export function matched({ size, functions, parents, total }: Flame, hits: Uint8Array): { weight: number; nodes: number[] } {
  const isBelow = new Uint8Array(size);
  const nodes: number[] = [];
  let weight = 0;
  for (let node = 1; node < size; node++) {
    if (isBelow[parents[node]]) isBelow[node] = 1;
    else if (hits[functions[node]]) {
      isBelow[node] = 1;
      weight += total[node];
      nodes.push(node);
    }
  }
  return { weight, nodes };
}
