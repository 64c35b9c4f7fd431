// The tree that a flame graph draws, and how one is made of a call tree and weights.

import { childLists, NONE, totals, type CallTree } from "./call_tree.ts";
import { KINDS } from "../tree.ts";
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
  /** Callers that stacks share and that are not drawn, those of the heaviest root first. */
  folded: Folded[];
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

/** The share of a start-up function's weight that may be elsewhere than in what it starts. It is drawn from the root on. */
const MOST_ELSEWHERE = 0.1;
/** The least share of its root's weight that something has to have to be drawn without its callers. */
const LEAST_STARTED = 0.05;
const [RUNTIME, NATIVE, KERNEL, PYTHON] = (["runtime", "native", "kernel", "python"] as const).map((kind) => KINDS.indexOf(kind));

/** Callers below one root that are not drawn. */
export interface Folded {
  /** Functions that call each other: first those from the root on, then those of each branch. */
  runs: number[][];
  /** What is drawn without them. */
  weight: number;
  /** What the root has in all. The rest is drawn from the root on. */
  whole: number;
}

/**
 * The call tree without the callers that all, or nearly all, the weight of a root shares, as start-up code is: they are the same in most stacks and
 * take up rows. Functions that are owned stay, and so do others than start-up code that have weight of their own or call several functions.
 */
export function withoutStartUp(tree: CallTree, own: Float64Array, functions: Functions): { tree: CallTree; folded: Folded[] } {
  const weighed = { own, total: totals(tree.parents, own), ...childLists(tree.parents, tree.size) };
  const { total, first, next } = weighed;
  const folded: Folded[] = [];
  const parents = tree.parents.slice();
  for (let root = first[tree.size]; root >= 0; root = next[root]) {
    if (!(total[root] > 0)) continue;
    const { runs, started } = startUpOf(root, weighed, tree, functions);
    if (runs.length === 0) continue;
    // Roots of their own. Their callers keep what they have besides; without that they have no weight, and are not drawn.
    for (const node of started) parents[node] = NONE;
    folded.push({ runs, weight: started.reduce((sum, node) => sum + total[node], 0), whole: total[root] });
  }
  folded.sort((a, b) => b.whole - a.whole);
  return folded.length > 0 ? { tree: { ...tree, parents }, folded } : { tree, folded };
}

interface Weighed {
  own: Float64Array;
  total: Float64Array;
  first: Int32Array;
  next: Int32Array;
}

/** Start-up code, the nodes that it starts, and whether these are of the program. */
interface StartUp {
  runs: number[][];
  started: number[];
  isOfProgram: boolean;
}

/** The start-up code below a root. */
function startUpOf(root: number, weighed: Weighed, tree: CallTree, functions: Functions): StartUp {
  const { own, total } = weighed;
  const kindOf = (node: number) => functions.kinds[tree.functions[node]];
  const stays = (node: number) => functions.owned[tree.functions[node]] === 1 || kindOf(node) === PYTHON;
  // What an interpreter does before it comes to the program is start-up code, too.
  const interpreted = isInterpreted(root, weighed, kindOf);
  const isStartUp = (node: number) => kindOf(node) === RUNTIME || (interpreted && kindOf(node) === NATIVE);
  const visit = (from: number): StartUp => {
    const run: number[] = [];
    /** The first node that is no start-up code. */
    let other = NONE;
    for (let node = from; ; ) {
      if (other < 0 && !isStartUp(node)) other = node;
      const callees = stays(node) ? [] : calleesOf(node, weighed);
      const isShared = callees.length === 1 && !(own[node] > 0);
      const heavy = isShared ? callees : other < 0 ? heavyOf(callees, total, total[from], total[root]) : [];
      const branches = heavy.length > 1 ? heavy.map(visit) : [];
      if (heavy.length === 0 || !branches.every(({ isOfProgram }) => isOfProgram)) {
        return { runs: run.length > 0 ? [run] : [], started: [node], isOfProgram: other >= 0 && kindOf(other) !== KERNEL };
      }
      run.push(tree.functions[node]);
      if (branches.length > 0) return { runs: [run, ...branches.flatMap(({ runs }) => runs)], started: branches.flatMap(({ started }) => started), isOfProgram: true };
      node = heavy[0];
    }
  };
  return visit(root);
}

/** The callees that have nearly all of a weight: one if it does, else several if they do; else none. */
function heavyOf(callees: number[], total: Float64Array, weight: number, whole: number): number[] {
  const least = weight * (1 - MOST_ELSEWHERE);
  const one = callees.filter((callee) => total[callee] >= least);
  if (one.length > 0) return one;
  const several = callees.filter((callee) => total[callee] >= whole * LEAST_STARTED);
  return several.reduce((sum, callee) => sum + total[callee], 0) >= least ? several : [];
}

/** Whether nearly all of a root is below a function of Python. */
function isInterpreted(root: number, weighed: Weighed, kindOf: (node: number) => number): boolean {
  const { total } = weighed;
  for (let node = root; total[node] >= total[root] * (1 - MOST_ELSEWHERE); ) {
    if (kindOf(node) === PYTHON) return true;
    const callees = calleesOf(node, weighed);
    if (callees.length === 0) return false;
    node = callees.reduce((heaviest, callee) => (total[callee] > total[heaviest] ? callee : heaviest));
  }
  return false;
}

function calleesOf(node: number, { total, first, next }: Weighed): number[] {
  const callees: number[] = [];
  for (let child = first[node]; child >= 0; child = next[child]) if (total[child] > 0) callees.push(child);
  return callees;
}
