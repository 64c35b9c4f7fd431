// The tree that a flame graph draws, and how one is made of a call tree and weights.

import { childLists, NONE, totals, type CallTree } from "./call_tree.ts";
import { pathHashes, type Functions } from "./functions.ts";

/**
 * Nodes by level, each level from left to right: the nodes of level `n` are those from `levels[n]` up to but not including `levels[n + 1]`, in the
 * order of `start`. Node 0 is the whole. Columns, not objects: there may be a million nodes.
 */
export interface Flame {
  size: number;
  levels: Int32Array;
  /** `NONE` of node 0, the whole. */
  functions: Int32Array;
  parents: Int32Array;
  /** The children of node `n` are those from `children[n]` up to but not including `children[n + 1]`. */
  children: Int32Array;
  /** Weight to the left of each. */
  start: Float64Array;
  /** Weight of each and all above it. */
  total: Float64Array;
  /** Weight that ends in each. */
  own: Float64Array;
  /** Names of callers that all stacks share and that are not drawn, from the root. */
  folded: string[];
  /** In differences: the weights of both sides. */
  sides?: { after: Float64Array; before: Float64Array };
  /** How many nodes were too light to be computed. */
  pruned: number;
  /** A number for the path to each node, by names: what links and transforms call it. */
  hashes: Uint32Array;
}

/** The order of siblings. */
export type Order = "left" | "name";

/** Children of a call tree, heaviest first or by name; nodes without weight are left out. */
export function flameOf(tree: CallTree, own: Float64Array, functions: Functions, order: Order = "left", hashes?: Uint32Array): Flame {
  const total = totals(tree.parents, own);
  const placed = new Int32Array(tree.size);
  const flame = arranged(tree, own, total, order === "left" ? heaviestFirst(total, tree.functions) : byName(tree.functions, functions), placed);
  if (hashes) for (let node = 0; node < tree.size; node++) if (placed[node] > 0) flame.hashes[placed[node]] = hashes[node];
  return flame;
}

/** A comparison of siblings: below 0 if the first one is left. */
export type Compare = (a: number, b: number) => number;

function heaviestFirst(total: Float64Array, functions: Int32Array): Compare {
  return (a, b) => total[b] - total[a] || functions[a] - functions[b] || a - b;
}

function byName(of: Int32Array, functions: Functions): Compare {
  const { names, modules } = functions;
  return (a, b) => {
    const [one, other] = [of[a], of[b]];
    if (names[one] !== names[other]) return names[one] < names[other] ? -1 : 1;
    return modules[one] < modules[other] ? -1 : 1;
  };
}

/** The drawn tree, breadth first. `total` decides which nodes are drawn. `placed` receives where each node of the call tree is, 0 if nowhere. */
export function arranged(tree: CallTree, own: Float64Array, total: Float64Array, compare: Compare, placed?: Int32Array): Flame {
  const { parents, functions, size } = tree;
  const { first, next } = childLists(parents, size);
  let kept = 1;
  for (let node = 0; node < size; node++) if (total[node] > 0) kept++;
  const flame: Flame = {
    size: kept,
    levels: new Int32Array(0),
    functions: new Int32Array(kept),
    parents: new Int32Array(kept),
    children: new Int32Array(kept + 1),
    start: new Float64Array(kept),
    total: new Float64Array(kept),
    own: new Float64Array(kept),
    folded: [],
    pruned: 0,
    hashes: new Uint32Array(kept),
  };
  const nodes = new Int32Array(kept);
  nodes[0] = size;
  flame.functions[0] = flame.parents[0] = NONE;
  const levels = [0];
  let made = 1;
  let levelEnd = 1;
  const siblings: number[] = [];
  for (let at = 0; at < kept; at++) {
    if (at === levelEnd) {
      levels.push(at);
      levelEnd = made;
    }
    flame.children[at] = made;
    let count = 0;
    for (let child = first[nodes[at]]; child >= 0; child = next[child]) if (total[child] > 0) siblings[count++] = child;
    if (count > 1) sortFirst(siblings, count, compare);
    let x = flame.start[at];
    for (let index = 0; index < count; index++) {
      const child = siblings[index];
      nodes[made] = child;
      if (placed) placed[child] = made;
      flame.functions[made] = functions[child];
      flame.parents[made] = at;
      flame.total[made] = total[child];
      flame.own[made] = own[child];
      flame.start[made] = x;
      x += total[child];
      made++;
    }
    if (at === 0) flame.total[0] = x;
  }
  flame.children[kept] = made;
  flame.levels = Int32Array.from([...levels, kept]);
  return flame;
}

/** Sorts the first values of a list that is used again. Most lists of siblings are short. */
function sortFirst(values: number[], count: number, compare: Compare): void {
  if (count > 24) {
    const sorted = values.slice(0, count).sort(compare);
    for (let index = 0; index < count; index++) values[index] = sorted[index];
    return;
  }
  for (let index = 1; index < count; index++) {
    const value = values[index];
    let at = index;
    for (; at > 0 && compare(values[at - 1], value) > 0; at--) values[at] = values[at - 1];
    values[at] = value;
  }
}

/** Names the paths of a tree that is not the call tree: an inverted one, or one in time order. */
export function withHashes(flame: Flame, functions: Functions): Flame {
  return { ...flame, hashes: pathHashes(flame, functions) };
}

/** The level of a node. */
export function levelOf({ levels }: Flame, node: number): number {
  let [low, high] = [0, levels.length - 2];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (levels[middle] <= node) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** The nodes from the whole to `node`, both included. */
export function pathTo({ parents }: Flame, node: number): number[] {
  const path = [];
  for (let at = node; at >= 0; at = parents[at]) path.push(at);
  return path.reverse();
}

/**
 * The call tree without the callers that all its weight shares, as start-up code is: they are the same in all stacks and take up rows. The first
 * function that is owned, has weight of its own or calls several others stays.
 */
export function withoutStartUp(tree: CallTree, own: Float64Array, functions: Functions): { tree: CallTree; folded: number[] } {
  const total = totals(tree.parents, own);
  const { first, next } = childLists(tree.parents, tree.size);
  const goes = new Uint8Array(tree.size);
  const folded: number[] = [];
  let isFirstRoot = true;
  for (let root = first[tree.size]; root >= 0; root = next[root]) {
    if (!(total[root] > 0)) continue;
    const chain = sharedChain(root, { own, total, first, next }, tree, functions);
    for (const node of chain) goes[node] = 1;
    // What the breadcrumbs name, if there is one root.
    if (isFirstRoot) folded.push(...chain.map((node) => tree.functions[node]));
    else folded.length = 0;
    isFirstRoot = false;
  }
  if (!goes.includes(1)) return { tree, folded: [] };
  // A node that goes has no weight of its own, and as a root without any it is not drawn.
  const parents = tree.parents.map((parent) => (parent >= 0 && goes[parent] ? NONE : parent));
  return { tree: { ...tree, parents }, folded };
}

interface Weighed {
  own: Float64Array;
  total: Float64Array;
  first: Int32Array;
  next: Int32Array;
}

function sharedChain(root: number, { own, total, first, next }: Weighed, tree: CallTree, functions: Functions): number[] {
  const chain: number[] = [];
  for (let node = root; ; ) {
    if (own[node] > 0 || functions.owned[tree.functions[node]]) return chain;
    let only = NONE;
    for (let child = first[node]; child >= 0; child = next[child]) {
      if (!(total[child] > 0)) continue;
      if (only >= 0) return chain;
      only = child;
    }
    if (only < 0) return chain;
    chain.push(node);
    node = only;
  }
}
