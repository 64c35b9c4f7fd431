// The call tree that a flame graph draws. Its written form is described in crates/view/src/flamegraph/data.rs.

import { Numbers } from "./numbers.ts";

/** The tree as written in the page. */
export interface Data {
  version: number;
  title: string;
  subtitle: string;
  unit: string;
  inverted: boolean;
  growth: Growth;
  colours: Colours;
  strings: string[];
  modules: number[];
  frames: string;
  nodes: string;
  gaps: string;
  /** In a difference: the base. */
  compared?: { name: string; baseName: string; own: string; verdicts?: string };
}

/** Where the callees of a frame are drawn: above it (a flame graph) or below (an icicle graph). */
export type Growth = "up" | "down";

/** The meaning of the colours. */
export type Colours = "kind" | "module" | "difference";

/** What kind of code a frame is, in the order of their codes. */
export const KINDS = ["group", "native", "runtime", "allocator", "kernel", "python", "unknown"] as const;
export type Kind = (typeof KINDS)[number];

/** Verdicts, in the order of their codes. */
export const VERDICTS = ["changed", "equivalent", "inconclusive"] as const;
export type Verdict = (typeof VERDICTS)[number];

/** Whose weights give the widths of a difference: the tree's, the base's, or the larger of both. */
export type Widths = 0 | 1 | 2;

/** The weights of one of two trees on the same nodes. */
export interface Side {
  /** Name of the tree. */
  name: string;
  own: Float64Array;
  total: Float64Array;
}

/** A function at a place, shared by all nodes that stand for it. */
export interface Frame {
  name: string;
  module: string;
  source: string;
  kind: Kind;
  /** Which of three shades it has. */
  shade: number;
  owned: boolean;
  inlined: boolean;
}

/**
 * A weighed call tree. Nodes are numbered in drawing order: each is followed by its children, so the nodes under `node`
 * are those from `node + 1` up to but not including `end[node]`. Columns, not objects: there may be a million nodes.
 */
export class Tree {
  readonly title: string;
  readonly subtitle: string;
  readonly unit: string;
  readonly inverted: boolean;
  readonly growth: Growth;
  readonly colours: Colours;
  /** The modules with a colour of their own, heaviest first. */
  readonly modules: readonly string[];
  readonly frames: readonly Frame[];
  /** Number of nodes. */
  readonly size: number;
  readonly hasOwned: boolean;

  readonly frame: Uint32Array;
  readonly depth: Uint32Array;
  /** The caller's node; of the root, itself. */
  readonly parent: Uint32Array;
  readonly end: Uint32Array;
  /** Weight of the samples that end in the node. */
  own: Float64Array;
  /** Weight of the samples that pass through it. */
  total: Float64Array;
  /** Weight to the left of it. */
  start: Float64Array;
  /** In a difference: the tree and its base. */
  readonly sides: readonly [Side, Side] | undefined;
  /** In a difference: whose weights give the widths. */
  widths: Widths = 0;
  /** In a difference with verdicts: each node's verdict. */
  private readonly verdicts: Float64Array | undefined;
  /** In a difference: the larger of each node's weights. */
  private readonly larger: Side | undefined;

  constructor(data: Data) {
    if (data.version !== 1) throw new Error(`This script reads trees of version 1, not ${data.version}.`);
    this.title = data.title;
    this.subtitle = data.subtitle;
    this.unit = data.unit;
    this.inverted = data.inverted;
    this.growth = data.growth;
    this.colours = data.colours;
    this.modules = data.modules.map((index) => data.strings[index]);
    this.frames = readFrames(data);
    this.hasOwned = this.frames.some((frame) => frame.owned);

    const nodes = readNodes(data.nodes);
    this.size = nodes.frame.length;
    this.frame = nodes.frame;
    this.depth = nodes.depth;
    this.parent = nodes.parent;
    this.own = nodes.own;
    this.total = Float64Array.from(this.own);
    this.end = new Uint32Array(this.size);
    this.start = new Float64Array(this.size);
    addGaps(data.gaps, this.total);
    this.sum(this.total);
    this.place();
    if (data.compared) {
      const { name, baseName, own: text, verdicts } = data.compared;
      const own = readWeights(text, this.size);
      const total = Float64Array.from(own);
      this.sum(total);
      this.sides = [
        { name, own: this.own, total: this.total },
        { name: baseName, own, total },
      ];
      this.larger = this.largerOf(data.gaps);
      if (verdicts !== undefined) this.verdicts = readWeights(verdicts, this.size);
    }
  }

  /** Makes frames as wide as these weights. */
  turnTo(widths: Widths): void {
    if (!this.sides || !this.larger || widths === this.widths) return;
    this.widths = widths;
    ({ own: this.own, total: this.total } = [...this.sides, this.larger][widths]);
    this.place();
  }

  /** Name of the tree that gives the widths. */
  get widthsName(): string {
    return [...(this.sides ?? []), this.larger][this.widths]?.name ?? "";
  }

  /** A node's verdict. */
  verdictOf(node: number): Verdict | undefined {
    return this.verdicts && VERDICTS[this.verdicts[node]];
  }

  /** Which one of two trees has a node; undefined if both have. */
  onlyIn(node: number): Side | undefined {
    if (!this.sides) return undefined;
    const [now, base] = this.sides;
    const [after, before] = [now.total[node], base.total[node]];
    if (after > 0) return before > 0 ? undefined : now;
    return before > 0 ? base : undefined;
  }

  /** The weights of a picture in which every node is as wide as it needs in either tree. */
  private largerOf(gaps: string): Side {
    const [now, base] = this.sides!;
    const own = now.own.map((weight, node) => Math.max(weight, base.own[node]));
    const total = Float64Array.from(own);
    addGaps(gaps, total);
    this.sum(total);
    return { name: "larger of both", own, total };
  }

  /** How much more a node weighs than in the base, as a part of the larger whole: -1 to 1. */
  change(node: number): number {
    if (!this.sides) return 0;
    const [now, base] = this.sides;
    return (now.total[node] - base.total[node]) / (Math.max(now.total[0], base.total[0]) || 1);
  }

  /** The frame that a node stands for. */
  frameOf(node: number): Frame {
    return this.frames[this.frame[node]];
  }

  /**
   * Weight of the samples that end in the node: its own, or in inverted trees the total of a node at the root or on a
   * group.
   */
  leafWeight(node: number): number {
    if (!this.inverted) return this.own[node];
    const onGroup = this.frameOf(node).kind !== "group" && this.frameOf(this.parent[node]).kind === "group";
    return onGroup ? this.total[node] : 0;
  }

  /** The nodes from the root to `node`, both included. */
  path(node: number): number[] {
    const path = [node];
    for (let at = node; at !== 0; ) {
      at = this.parent[at];
      path.push(at);
    }
    return path.reverse();
  }

  /** The children of a node, from left to right. */
  *children(node: number): Generator<number> {
    for (let child = node + 1; child < this.end[node]; child = this.end[child]) yield child;
  }

  /** The node at this depth whose span holds the weight `at`, if one reaches so deep there. */
  find(at: number, depth: number): number | undefined {
    let node = 0;
    if (this.size === 0 || at < 0 || at >= this.total[0]) return undefined;
    while (this.depth[node] < depth) {
      let inside: number | undefined;
      for (const child of this.children(node)) {
        if (this.start[child] > at) break;
        if (at < this.start[child] + this.total[child]) inside = child;
      }
      if (inside === undefined) return undefined;
      node = inside;
    }
    return node;
  }

  /** Adds each node's total to its parent's, from the last node to the first. */
  private sum(total: Float64Array): void {
    this.end.fill(0);
    for (let node = this.size - 1; node >= 0; node--) {
      if (this.end[node] === 0) this.end[node] = node + 1;
      if (node === 0) break;
      const parent = this.parent[node];
      total[parent] += total[node];
      if (this.end[parent] === 0) this.end[parent] = this.end[node];
    }
  }

  private place(): void {
    this.start = new Float64Array(this.size);
    const cursor = new Float64Array(this.size);
    for (let node = 1; node < this.size; node++) {
      const parent = this.parent[node];
      this.start[node] = cursor[parent];
      cursor[node] = cursor[parent];
      cursor[parent] += this.total[node];
    }
  }
}

function readFrames(data: Data): Frame[] {
  const numbers = new Numbers(data.frames);
  const frames: Frame[] = [];
  while (!numbers.done) {
    const [name, module, source, flags] = [numbers.next(), numbers.next(), numbers.next(), numbers.next()];
    const kindAndShade = Math.floor(flags / 4);
    frames.push({
      name: data.strings[name],
      module: data.strings[module],
      source: data.strings[source],
      kind: KINDS[Math.floor(kindAndShade / 3)],
      shade: kindAndShade % 3,
      owned: (flags & 2) !== 0,
      inlined: (flags & 1) !== 0,
    });
  }
  return frames;
}

function readNodes(text: string) {
  const numbers = new Numbers(text);
  const frame: number[] = [];
  const depth: number[] = [];
  const parent: number[] = [];
  const own: number[] = [];
  // The last node met at each depth.
  const path: number[] = [];
  while (!numbers.done) {
    const node = frame.length;
    const level = path.length - numbers.next();
    path.length = level;
    parent.push(level === 0 ? 0 : path[level - 1]);
    path.push(node);
    depth.push(level);
    frame.push(numbers.next());
    own.push(numbers.next());
  }
  return {
    frame: Uint32Array.from(frame),
    depth: Uint32Array.from(depth),
    parent: Uint32Array.from(parent),
    own: Float64Array.from(own),
  };
}

function readWeights(text: string, size: number): Float64Array {
  const numbers = new Numbers(text);
  const weights = new Float64Array(size);
  for (let node = 0; node < size && !numbers.done; node++) weights[node] = numbers.next();
  return weights;
}

function addGaps(text: string, total: Float64Array): void {
  const numbers = new Numbers(text);
  for (let node = 0; !numbers.done; ) {
    node += numbers.next();
    total[node] += numbers.next();
  }
}
