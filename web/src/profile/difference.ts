// Two call trees in one picture.

import { NONE, Nodes, totals, type CallTree } from "./call_tree.ts";
import { arranged, withHashes, withoutStartUp, type Flame } from "./flame.ts";
import { Catalogue, type Functions } from "./functions.ts";

/** One side of a difference. */
export interface Side {
  tree: CallTree;
  own: Float64Array;
  functions: Functions;
  /** What each weight is multiplied by, so that both sides have one unit, such as 1 / steps. */
  scale: number;
}

/** Whose weights give the widths. The larger one of both shows what was removed and what is new. */
export type Widths = "larger" | "after" | "before";

/** Functions that two captures share by name and module. */
export interface JoinedFunctions {
  functions: Functions;
  ofAfter: Int32Array;
  ofBefore: Int32Array;
}

export function joinFunctions(after: Functions, before: Functions): JoinedFunctions {
  const catalogue = new Catalogue();
  const placed = (side: Functions) =>
    Int32Array.from(side.names, (name, index) => {
      const traits = { kind: side.kinds[index], owned: side.owned[index] === 1, owner: side.owners[index] === 1, inlined: side.inlined[index] === 1 };
      const joined = catalogue.of(name, side.modules[index], traits);
      catalogue.mark(joined, traits);
      return joined;
    });
  const [ofAfter, ofBefore] = [placed(after), placed(before)];
  return { functions: catalogue.functions, ofAfter, ofBefore };
}

/** The differential flame graph: each node with its weight on both sides. */
export function difference(after: Side, before: Side, widths: Widths, foldsStartUp = false): { flame: Flame; functions: Functions } {
  const { functions, ofAfter, ofBefore } = joinFunctions(after.functions, before.functions);
  const nodes = new Nodes(after.tree.size + before.tree.size);
  const ofNode = [placed(nodes, after.tree, ofAfter), placed(nodes, before.tree, ofBefore)];
  const joined = nodes.tree(new Int32Array(0));
  const [ownAfter, ownBefore] = [scaled(after, ofNode[0], joined.size), scaled(before, ofNode[1], joined.size)];
  const both = ownAfter.map((weight, node) => weight + ownBefore[node]);
  const { tree, folded } = foldsStartUp ? withoutStartUp(joined, both, functions) : { tree: joined, folded: [] };
  const [totalAfter, totalBefore] = [totals(tree.parents, ownAfter), totals(tree.parents, ownBefore)];
  const own = widths === "larger" ? ownAfter.map((weight, node) => Math.max(weight, ownBefore[node])) : widths === "after" ? ownAfter : ownBefore;
  const total = totals(tree.parents, own);
  // Both widths have one order, so that changing them moves little.
  const largest = totalAfter.map((weight, node) => Math.max(weight, totalBefore[node]));
  const order = (a: number, b: number) => largest[b] - largest[a] || tree.functions[a] - tree.functions[b] || a - b;
  const placedNodes = new Int32Array(tree.size);
  const flame = arranged(tree, own, total, order, placedNodes);
  const side = (weights: Float64Array) => {
    const column = new Float64Array(flame.size);
    for (let node = 0; node < tree.size; node++) if (placedNodes[node] > 0) column[placedNodes[node]] = weights[node];
    for (let node = 0; node < tree.size; node++) if (tree.parents[node] < 0) column[0] += weights[node];
    return column;
  };
  return { flame: { ...withHashes(flame, functions), folded, sides: { after: side(totalAfter), before: side(totalBefore) } }, functions };
}

function placed(nodes: Nodes, tree: CallTree, functions: Int32Array): Int32Array {
  const moved = new Int32Array(tree.size);
  for (let node = 0; node < tree.size; node++) {
    const parent = tree.parents[node];
    moved[node] = nodes.child(parent < 0 ? NONE : moved[parent], functions[tree.functions[node]]);
  }
  return moved;
}

function scaled({ own, scale }: Side, moved: Int32Array, size: number): Float64Array {
  const weights = new Float64Array(size);
  for (let node = 0; node < own.length; node++) weights[moved[node]] += own[node] * scale;
  return weights;
}
