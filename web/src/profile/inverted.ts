// Trees of callers: what the reader looks at is at the root, its callers above it. A node stands for many nodes of the call
// tree, and there may be many times more of these trees' nodes than call paths, so nodes that would be too narrow to
// see are not computed.

import { NONE, type CallTree } from "./call_tree.ts";
import type { Flame } from "./flame.ts";

/** Nodes below this share of the whole are not computed: a tenth of a pixel in a picture of 2,000 pixels. */
const LEAST_SHARE = 1 / 20_000;

/** Nodes of the call tree with their weights, at which paths of callers start. */
export interface Starts {
  nodes: Int32Array;
  weights: Float64Array;
}

/** Where something ends: the roots of an inverted tree are leaves. */
export function leaves(own: Float64Array): Starts {
  const nodes: number[] = [];
  for (let node = 0; node < own.length; node++) if (own[node] > 0) nodes.push(node);
  return { nodes: Int32Array.from(nodes), weights: Float64Array.from(nodes, (node) => own[node]) };
}

/**
 * The tree of callers, heaviest first. `functionCount` is the number of functions. Starts of one function are one root. Levels are computed one after
 * the other; each start moves to its caller from one level to the next, until it has none.
 */
export function invertedFlame(tree: CallTree, starts: Starts, functionCount: number): Flame {
  const { parents, functions } = tree;
  const whole = starts.weights.reduce((sum, weight) => sum + weight, 0);
  const least = whole * LEAST_SHARE;
  const made = new Columns();
  made.push(NONE, NONE, 0, whole, 0);
  const levels = [0, 1];
  const children = [1];
  let pruned = 0;

  // The starts below each node of the level, in the order of the level's nodes, and where on their paths they are.
  let [at, weights] = [starts.nodes.slice(), starts.weights];
  let bounds = [0, at.length];
  const sums = new Float64Array(functionCount);
  const counts = new Int32Array(functionCount);
  const offsets = new Int32Array(functionCount);
  for (let level = 0; levels[level] < levels[level + 1]; level++) {
    const [first, end] = [levels[level], levels[level + 1]];
    const nextAt = new Int32Array(at.length);
    const nextWeights = new Float64Array(at.length);
    const nextBounds = [0];
    let filled = 0;
    for (let node = first; node < end; node++) {
      const [from, to] = [bounds[node - first], bounds[node - first + 1]];
      const found: number[] = [];
      for (let index = from; index < to; index++) {
        if (at[index] < 0) continue;
        const of = functions[at[index]];
        if (counts[of]++ === 0) found.push(of);
        sums[of] += weights[index];
      }
      found.sort((a, b) => sums[b] - sums[a] || a - b);
      let x = made.start[node];
      for (const of of found) {
        if (sums[of] >= least) {
          offsets[of] = filled;
          filled += counts[of];
          made.push(of, node, x, sums[of], 0);
          nextBounds.push(filled);
        } else {
          offsets[of] = NONE;
          pruned++;
        }
        x += sums[of];
      }
      for (let index = from; index < to; index++) {
        if (at[index] < 0) continue;
        const of = functions[at[index]];
        if (offsets[of] < 0) continue;
        nextAt[offsets[of]] = parents[at[index]];
        nextWeights[offsets[of]++] = weights[index];
      }
      for (const of of found) sums[of] = counts[of] = 0;
      // What has no caller ends here.
      made.own[node] = made.total[node] - (x - made.start[node]);
      children.push(made.size);
    }
    levels.push(made.size);
    [at, weights, bounds] = [nextAt.subarray(0, filled), nextWeights.subarray(0, filled), nextBounds];
  }
  levels.pop();
  made.own[0] = 0;
  return { ...made.finished(), levels: Int32Array.from(levels), children: Int32Array.from(children), folded: [], pruned, hashes: new Uint32Array(made.size) };
}

/** Columns of a drawn tree that grow. */
class Columns {
  size = 0;
  readonly functions: number[] = [];
  readonly parents: number[] = [];
  readonly start: number[] = [];
  readonly total: number[] = [];
  readonly own: number[] = [];

  push(of: number, parent: number, start: number, total: number, own: number): void {
    this.functions.push(of);
    this.parents.push(parent);
    this.start.push(start);
    this.total.push(total);
    this.own.push(own);
    this.size++;
  }

  finished() {
    return {
      size: this.size,
      functions: Int32Array.from(this.functions),
      parents: Int32Array.from(this.parents),
      start: Float64Array.from(this.start),
      total: Float64Array.from(this.total),
      own: Float64Array.from(this.own),
    };
  }
}
