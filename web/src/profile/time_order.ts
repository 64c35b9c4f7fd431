// Flame graphs in time order: stacks from left to right as they were sampled, neighbours with the same callers joined, by
// thread.

import { NONE, Nodes, type CallTree } from "./call_tree.ts";
import { arranged, type Flame } from "./flame.ts";

/** A sequence of stacks of one thread. */
export interface Moments {
  /** Nodes of the call tree. */
  nodes: ArrayLike<number>;
  weights: ArrayLike<number>;
}

/** Stacks of all threads in the order of their times, as columns that grow. */
export class Timeline {
  size = 0;
  thread = new Int32Array(1024);
  time = new Float64Array(1024);
  node = new Int32Array(1024);
  weight = new Float64Array(1024);

  push(thread: number, time: number, node: number, weight: number): void {
    if (this.size === this.thread.length) {
      this.thread = widened(this.thread, Int32Array);
      this.time = widened(this.time, Float64Array);
      this.node = widened(this.node, Int32Array);
      this.weight = widened(this.weight, Float64Array);
    }
    const at = this.size++;
    this.thread[at] = thread;
    this.time[at] = time;
    this.node[at] = node;
    this.weight[at] = weight;
  }
}

function widened<Column extends Int32Array | Float64Array>(column: Column, of: new (length: number) => Column): Column {
  const longer = new of(column.length * 2);
  longer.set(column);
  return longer;
}

/** Two timelines as sequences by thread, the thread with the most weight first. */
export function sequencesOf(one: Timeline, other: Timeline): { thread: number; moments: Moments; total: number }[] {
  const sequences = new Map<number, { nodes: number[]; weights: number[]; total: number }>();
  const take = ({ thread, node, weight }: Timeline, at: number) => {
    let own = sequences.get(thread[at]);
    if (!own) sequences.set(thread[at], (own = { nodes: [], weights: [], total: 0 }));
    own.total += weight[at];
    const last = own.nodes.length - 1;
    if (own.nodes[last] === node[at]) {
      own.weights[last] += weight[at];
    } else {
      own.nodes.push(node[at]);
      own.weights.push(weight[at]);
    }
  };
  for (let i = 0, j = 0; i < one.size || j < other.size; ) {
    if (j === other.size || (i < one.size && one.time[i] <= other.time[j])) take(one, i++);
    else take(other, j++);
  }
  const rows = [...sequences].map(([thread, { total, ...moments }]) => ({ thread, moments, total }));
  return rows.sort((a, b) => b.total - a.total || a.thread - b.thread);
}

/** The most moments that are drawn; neighbours are added up until there are no more. */
const MOST = 20_000;

/**
 * The flame graph of sequences, each below a function that stands for its thread. Several neighbours of one sequence become one if there are too many:
 * their weight goes to the heaviest stack among them.
 */
export function timeOrderedFlame(tree: CallTree, sequences: { thread: number; moments: Moments }[]): Flame {
  const count = sequences.reduce((sum, { moments }) => sum + moments.nodes.length, 0);
  const joined = Math.max(1, Math.ceil(count / MOST));
  const parents: number[] = [];
  const functions: number[] = [];
  const own: number[] = [];
  const add = (parent: number, of: number) => {
    parents.push(parent);
    functions.push(of);
    return own.push(0) - 1;
  };
  for (const { thread, moments } of sequences) {
    const root = add(NONE, thread);
    // The path to the last moment: nodes of the call tree, and of this one.
    let path: number[] = [];
    let open: number[] = [];
    for (let at = 0; at < moments.nodes.length; at += joined) {
      const { node, weight } = heaviest(moments, at, Math.min(at + joined, moments.nodes.length));
      const next = pathOf(tree, node);
      let shared = 0;
      while (shared < path.length && shared < next.length && path[shared] === next[shared]) shared++;
      open = open.slice(0, shared);
      for (const below of next.slice(shared)) open.push(add(open[open.length - 1] ?? root, tree.functions[below]));
      path = next;
      own[open[open.length - 1] ?? root] += weight;
    }
  }
  const ordered: CallTree = { size: own.length, parents: Int32Array.from(parents), functions: Int32Array.from(functions), ofPlace: new Int32Array(0) };
  const weights = Float64Array.from(own);
  const total = weights.slice();
  for (let node = total.length - 1; node >= 0; node--) if (parents[node] >= 0) total[parents[node]] += total[node];
  return { ...arranged(ordered, weights, total, (a, b) => a - b), pruned: count - Math.ceil(count / joined) };
}

function heaviest({ nodes, weights }: Moments, from: number, to: number): { node: number; weight: number } {
  if (to === from + 1) return { node: nodes[from], weight: weights[from] };
  const sums = new Map<number, number>();
  let weight = 0;
  for (let at = from; at < to; at++) {
    sums.set(nodes[at], (sums.get(nodes[at]) ?? 0) + weights[at]);
    weight += weights[at];
  }
  let [node, most] = [nodes[from], -1];
  for (const [candidate, sum] of sums) if (sum > most) [node, most] = [candidate, sum];
  return { node, weight };
}

function pathOf({ parents }: CallTree, node: number): number[] {
  const path = [];
  for (let at = node; at >= 0; at = parents[at]) path.push(at);
  return path.reverse();
}

/** The call tree below one node for each group of samples, such as a thread. */
export function grouped(tree: CallTree, groups: { function: number; own: Float64Array }[]): { tree: CallTree; own: Float64Array } {
  const nodes = new Nodes(tree.size + groups.length);
  const weights: number[] = [];
  for (const { function: of, own } of groups) {
    const root = nodes.child(NONE, of);
    const needed = new Uint8Array(tree.size);
    for (let node = tree.size - 1; node >= 0; node--) {
      if (own[node] > 0) needed[node] = 1;
      if (needed[node] && tree.parents[node] >= 0) needed[tree.parents[node]] = 1;
    }
    const moved = new Int32Array(tree.size).fill(NONE);
    for (let node = 0; node < tree.size; node++) {
      if (!needed[node]) continue;
      const parent = tree.parents[node];
      moved[node] = nodes.child(parent < 0 ? root : moved[parent], tree.functions[node]);
      if (own[node] > 0) weights[moved[node]] = (weights[moved[node]] ?? 0) + own[node];
    }
  }
  const made = nodes.tree(new Int32Array(0));
  return { tree: made, own: Float64Array.from({ length: made.size }, (_, node) => weights[node] ?? 0) };
}
