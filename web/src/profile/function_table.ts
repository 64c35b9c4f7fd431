// What single functions cost: self, total, attributed; who calls them, and what they call.

import { NONE, rewritten, totals, type CallTree } from "./call_tree.ts";
import { flameOf, type Flame } from "./flame.ts";
import type { Functions } from "./functions.ts";
import { invertedFlame } from "./inverted.ts";

/** One row for each function that has weight. */
export interface FunctionTable {
  functions: Int32Array;
  /** Weight that ends in the function. */
  self: Float64Array;
  /** Weight of stacks that hold it, each once. */
  total: Float64Array;
  /** Weight of stacks whose nearest owner, from leaf to root, it is. */
  attributed: Float64Array;
  whole: number;
}

/** `isOutermost` is that of [outermost](call_tree.ts). */
export function functionTable(tree: CallTree, own: Float64Array, isOutermost: Uint8Array, functions: Functions): FunctionTable {
  const count = functions.names.length;
  const [self, total, attributed] = [new Float64Array(count), new Float64Array(count), new Float64Array(count)];
  const below = totals(tree.parents, own);
  // The nearest function of each node that costs are attributed to.
  const nearest = new Int32Array(tree.size);
  let whole = 0;
  for (let node = 0; node < tree.size; node++) {
    const of = tree.functions[node];
    const parent = tree.parents[node];
    nearest[node] = functions.owners[of] ? of : parent < 0 ? NONE : nearest[parent];
    if (own[node] > 0) {
      whole += own[node];
      self[of] += own[node];
      if (nearest[node] >= 0) attributed[nearest[node]] += own[node];
    }
    if (isOutermost[node]) total[of] += below[node];
  }
  const rows: number[] = [];
  for (let of = 0; of < count; of++) if (total[of] > 0) rows.push(of);
  rows.sort((a, b) => self[b] - self[a] || total[b] - total[a] || a - b);
  const column = (values: Float64Array) => Float64Array.from(rows, (of) => values[of]);
  return { functions: Int32Array.from(rows), self: column(self), total: column(total), attributed: column(attributed), whole };
}

/** The direct callers and callees of a function, heaviest first: the weight of the stacks that hold such a call, each once. */
export interface Neighbours {
  self: number;
  total: number;
  callers: { functions: Int32Array; weights: Float64Array };
  callees: { functions: Int32Array; weights: Float64Array };
}

export function neighbours(tree: CallTree, own: Float64Array, isOutermost: Uint8Array, of: number): Neighbours {
  const { parents, functions } = tree;
  const below = totals(parents, own);
  const callers = new Map<number, number>();
  const callees = new Map<number, number>();
  let [self, total] = [0, 0];
  for (let node = 0; node < tree.size; node++) {
    if (!(below[node] > 0)) continue;
    const parent = parents[node];
    if (functions[node] === of) {
      self += own[node];
      if (isOutermost[node]) total += below[node];
    }
    if (parent < 0 || (functions[node] !== of && functions[parent] !== of) || isCalledAbove(tree, node)) continue;
    if (functions[node] === of) add(callers, functions[parent], below[node]);
    if (functions[parent] === of) add(callees, functions[node], below[node]);
  }
  return { self, total, callers: heaviestFirst(callers), callees: heaviestFirst(callees) };
}

/** Whether the same function called the same one before on the path. */
function isCalledAbove({ parents, functions }: CallTree, node: number): boolean {
  const [caller, callee] = [functions[parents[node]], functions[node]];
  for (let at = parents[node]; parents[at] >= 0; at = parents[at]) {
    if (functions[at] === callee && functions[parents[at]] === caller) return true;
  }
  return false;
}

function add(sums: Map<number, number>, index: number, weight: number): void {
  sums.set(index, (sums.get(index) ?? 0) + weight);
}

function heaviestFirst(sums: Map<number, number>) {
  const rows = [...sums].sort((a, b) => b[1] - a[1] || a[0] - b[0]);
  return { functions: Int32Array.from(rows, ([of]) => of), weights: Float64Array.from(rows, ([, weight]) => weight) };
}

/** Both trees of a function: its callers, and what it calls. Both roots weigh the function's total. */
export interface Sandwich {
  callers: Flame;
  callees: Flame;
}

export function sandwich(tree: CallTree, own: Float64Array, isOutermost: Uint8Array, of: number, functions: Functions): Sandwich {
  const below = totals(tree.parents, own);
  const nodes: number[] = [];
  for (let node = 0; node < tree.size; node++) if (isOutermost[node] && tree.functions[node] === of && below[node] > 0) nodes.push(node);
  const starts = { nodes: Int32Array.from(nodes), weights: Float64Array.from(nodes, (node) => below[node]) };
  const focused = focusedOn(tree, of);
  return {
    callers: invertedFlame(tree, starts, functions.names.length),
    callees: flameOf(focused.tree, moved(own, focused), functions),
  };
}

function focusedOn(tree: CallTree, of: number): { tree: CallTree; nodes: Int32Array } {
  const everyNode = { ...tree, ofPlace: Int32Array.from({ length: tree.size }, (_, node) => node) };
  const focused = rewritten(everyNode, (nodes, node, placed) => {
    const parent = tree.parents[node];
    const above = parent < 0 ? NONE : placed[parent];
    return above === NONE && tree.functions[node] !== of ? NONE : nodes.child(above, tree.functions[node]);
  });
  return { tree: focused, nodes: focused.ofPlace };
}

function moved(own: Float64Array, { tree, nodes }: { tree: CallTree; nodes: Int32Array }): Float64Array {
  const weights = new Float64Array(tree.size);
  for (let node = 0; node < own.length; node++) if (nodes[node] >= 0) weights[nodes[node]] += own[node];
  return weights;
}
