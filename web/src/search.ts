// Functions that match a pattern, and their weight.

import type { Tree } from "./tree.ts";

/** The functions that match a pattern. */
export interface Hits {
  pattern: string;
  /** For each frame, 1 if it matches. */
  frames: Uint8Array;
  /** Number of distinct functions that match. */
  functions: number;
}

/**
 * A pattern as a regular expression. A pattern without capitals ignores case. Invalid patterns are searched
 * literally, so that `operator()(` finds itself.
 */
export function compile(pattern: string): RegExp {
  const flags = /\p{Lu}/u.test(pattern.replace(/\\./g, "")) ? "" : "i";
  try {
    return new RegExp(pattern, flags);
  } catch {
    return new RegExp(escaped(pattern), flags);
  }
}

/** A pattern that matches exactly this name. */
export function exactly(name: string): string {
  return `^${escaped(name)}$`;
}

function escaped(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
}

/** The functions of a tree that match. Groups are not functions, but threads are looked for by name too. */
export function search(tree: Tree, pattern: string): Hits {
  const expression = compile(pattern);
  const frames = new Uint8Array(tree.frames.length);
  const names = new Set<string>();
  tree.frames.forEach((frame, index) => {
    if (!expression.test(frame.name)) return;
    frames[index] = 1;
    names.add(frame.name);
  });
  return { pattern, frames, functions: names.size };
}

/** The outermost nodes under `root` (or itself) whose frames match, from left to right. */
export function matches(tree: Tree, hits: Hits, root: number): number[] {
  const found: number[] = [];
  for (let node = root; node < tree.end[root]; ) {
    if (hits.frames[tree.frame[node]]) {
      found.push(node);
      node = tree.end[node];
    } else {
      node++;
    }
  }
  return found;
}

/** Weight of the samples under `root` that pass through a match, each counted once. */
export function matchedWeight(tree: Tree, hits: Hits, root: number): number {
  return matches(tree, hits, root).reduce((sum, node) => sum + tree.total[node], 0);
}
