// Call trees without weights: which call paths there are. They depend on the stacks and on transforms, not on what is
// selected, so they are kept while the reader selects.

import type { Functions } from "./functions.ts";

/** No node: of a root's parent, and of what is not in the tree. */
export const NONE = -1;

/** Nodes by index; a parent comes before its children. */
export interface CallTree {
  size: number;
  /** `NONE` of roots. */
  parents: Int32Array;
  functions: Int32Array;
  /**
   * The node at which each place ends; `NONE` if it is not in the tree. Places are the rows of `stacks`, then one for samples without a stack, then
   * the waits in a state at a stack.
   */
  ofPlace: Int32Array;
}

/** Places besides the stacks, each below a stack. */
export interface Extra {
  /** `NONE` of places without a stack. */
  stacks: Int32Array;
  functions: Int32Array;
}

/** The call tree of a capture's stacks: what different lines of one function call is one node. */
export function callTreeOf(stackParents: Int32Array, stackFrames: Int32Array, functions: Functions, extra: Extra): CallTree {
  const stacks = stackParents.length;
  const nodes = new Nodes(Math.min(stacks, 1 << 20) + extra.stacks.length + 1);
  const ofPlace = new Int32Array(stacks + 1 + extra.stacks.length);
  for (let stack = 0; stack < stacks; stack++) {
    const parent = stackParents[stack];
    ofPlace[stack] = nodes.child(parent < 0 || parent >= stack ? NONE : ofPlace[parent], functions.ofFrame[stackFrames[stack]] ?? functions.noStack);
  }
  ofPlace[stacks] = nodes.child(NONE, functions.noStack);
  for (let index = 0; index < extra.stacks.length; index++) {
    const stack = extra.stacks[index];
    ofPlace[stacks + 1 + index] = nodes.child(ofPlace[stack < 0 ? stacks : stack], extra.functions[index]);
  }
  return nodes.tree(ofPlace);
}

/** The same call tree with fewer or other nodes: `placed` gives the new node of each, parents first. */
export function rewritten(tree: CallTree, placed: (nodes: Nodes, node: number, moved: Int32Array) => number): CallTree {
  const nodes = new Nodes(tree.size);
  const moved = new Int32Array(tree.size);
  for (let node = 0; node < tree.size; node++) moved[node] = placed(nodes, node, moved);
  const ofPlace = tree.ofPlace.map((node) => (node < 0 ? node : moved[node]));
  return nodes.tree(ofPlace);
}

const START = 1 << 12;

/** Slots that neighbouring parents share, before any other is tried: a cache line. */
const NEAR = 16;

/**
 * Nodes that are found by their parent and function. Callers come one after the other in most tables, so their callees are looked for near each other
 * first: a slot anywhere costs a million nodes a cache miss each.
 */
export class Nodes {
  size = 0;
  private parents: Int32Array;
  private functions: Int32Array;
  /** Open addressing: a node, or `NONE`. */
  private slots: Int32Array;

  constructor(expected: number) {
    let room = START;
    while (room < expected) room *= 2;
    this.parents = new Int32Array(room);
    this.functions = new Int32Array(room);
    this.slots = new Int32Array(room * 2).fill(NONE);
  }

  /** The node of this function below `parent`, which may be `NONE`. */
  child(parent: number, functionIndex: number): number {
    const slot = this.slotOf(parent, functionIndex);
    if (this.slots[slot] !== NONE) return this.slots[slot];
    if (this.size === this.parents.length) {
      this.grow();
      return this.child(parent, functionIndex);
    }
    const node = this.size++;
    this.slots[slot] = node;
    this.parents[node] = parent;
    this.functions[node] = functionIndex;
    return node;
  }

  /** The slot of a node, or the free one where it belongs. */
  private slotOf(parent: number, functionIndex: number): number {
    const mask = this.slots.length - 1;
    // Two slots for each node.
    const near = (2 * (parent + 1)) & mask & -NEAR;
    for (let step = 0; step < NEAR; step++) {
      const slot = near + ((functionIndex + step) & (NEAR - 1));
      if (this.isAt(slot, parent, functionIndex)) return slot;
    }
    for (let slot = hashOf(parent, functionIndex) & mask; ; slot = (slot + 1) & mask) if (this.isAt(slot, parent, functionIndex)) return slot;
  }

  /** Whether a slot has this node, or none. */
  private isAt(slot: number, parent: number, functionIndex: number): boolean {
    const node = this.slots[slot];
    return node === NONE || (this.parents[node] === parent && this.functions[node] === functionIndex);
  }

  parent(node: number): number {
    return this.parents[node];
  }

  function(node: number): number {
    return this.functions[node];
  }

  tree(ofPlace: Int32Array): CallTree {
    const { size } = this;
    return { size, parents: this.parents.slice(0, size), functions: this.functions.slice(0, size), ofPlace };
  }

  private grow(): void {
    const widened = (array: Int32Array) => {
      const copy = new Int32Array(array.length * 2);
      copy.set(array);
      return copy;
    };
    this.parents = widened(this.parents);
    this.functions = widened(this.functions);
    this.slots = new Int32Array(this.parents.length * 2).fill(NONE);
    for (let node = 0; node < this.size; node++) this.slots[this.slotOf(this.parents[node], this.functions[node])] = node;
  }
}

function hashOf(parent: number, functionIndex: number): number {
  let hash = Math.imul(parent + 1, 0x9e3779b1) ^ Math.imul(functionIndex + 1, 0x85ebca6b);
  hash ^= hash >>> 15;
  hash = Math.imul(hash, 0x2c1b3c6d);
  return hash ^ (hash >>> 13);
}

/** Adds each node's weight to its parent's, from the last node to the first: the weight of each node and all below it. */
export function totals(parents: Int32Array, own: Float64Array): Float64Array {
  const total = own.slice();
  for (let node = total.length - 1; node >= 0; node--) {
    const parent = parents[node];
    if (parent >= 0) total[parent] += total[node];
  }
  return total;
}

/** The weight that ends in each node. */
export function ownWeights(tree: CallTree, weights: Float64Array): Float64Array {
  const own = new Float64Array(tree.size);
  const { ofPlace } = tree;
  for (let place = 0; place < weights.length; place++) {
    const node = ofPlace[place];
    if (node >= 0) own[node] += weights[place];
  }
  return own;
}

/** For each node, 1 if no node above it is of the same function: recursion counts once. */
export function outermost(tree: CallTree, functionCount: number): Uint8Array {
  const { size, parents, functions } = tree;
  const { first, next } = childLists(parents, size);
  const isOutermost = new Uint8Array(size);
  const open = new Int32Array(functionCount);
  // Depth first, with a node's own end as its complement.
  const stack = new Int32Array(2 * size + 1);
  let top = 0;
  for (let root = first[size]; root >= 0; root = next[root]) stack[top++] = root;
  while (top > 0) {
    const node = stack[--top];
    if (node < 0) {
      open[functions[~node]]--;
      continue;
    }
    if (open[functions[node]]++ === 0) isOutermost[node] = 1;
    stack[top++] = ~node;
    for (let child = first[node]; child >= 0; child = next[child]) stack[top++] = child;
  }
  return isOutermost;
}

/** The children of each node as linked lists; those of index `size` are the roots. */
export function childLists(parents: Int32Array, size: number): { first: Int32Array; next: Int32Array } {
  const first = new Int32Array(size + 1).fill(NONE);
  const next = new Int32Array(size).fill(NONE);
  for (let node = size - 1; node >= 0; node--) {
    const parent = parents[node] < 0 ? size : parents[node];
    next[node] = first[parent];
    first[parent] = node;
  }
  return { first, next };
}
