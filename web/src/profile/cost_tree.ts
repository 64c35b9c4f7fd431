// The cost tree of a selection: the call tree of owned code. Which node each stack belongs to comes with the tables; its
// definition is that of crates/analyze/src/analyses/cost_tree.rs. Here weights are added up, and laid out as rows by the
// rules of outline.rs.

import { NONE, totals } from "./call_tree.ts";
import { integers, texts, type Table } from "./columns.ts";
import type { WaitPlaces } from "./weigh.ts";

/** Rows of the cost tree in reading order. */
export interface CostRow {
  /** Its text; chains of calls are one row. */
  text: string;
  /** Number of rows above it that contain it. */
  indent: number;
  kind: string;
  /** The full name of its function; of a chain, the last one's. Empty for other rows. */
  function: string;
  module: string;
  total: number;
  /** Weight without the rows directly below it. */
  own: number;
  /** The node, of a chain the last one; -1 for several light ones that were added up. */
  node: number;
}

export interface CostTree {
  rows: CostRow[];
  whole: number;
}

/** Nodes with less than this share of the whole are added up by caller. */
export const LEAST_SHARE = 0.01;

/** `weights` are by place. */
export function costTree(nodes: Table, placesOfStacks: Table, places: WaitPlaces, weights: Float64Array, stacks: number, leastShare = LEAST_SHARE): CostTree {
  if (nodes.rows === 0 || placesOfStacks.rows === 0) return { rows: [], whole: 0 };
  const parents = integers(nodes, "parent");
  const nodeOf = integers(placesOfStacks, "node");
  const noStack = nodeOf[nodeOf.length - 1];
  const own = new Float64Array(nodes.rows);
  for (let place = 0; place < weights.length; place++) {
    if (weights[place] === 0) continue;
    const stack = place <= stacks ? place : places.stacks[place - stacks - 1];
    own[stack < 0 || stack >= stacks ? noStack : (nodeOf[stack] ?? noStack)] += weights[place];
  }
  return new Outline(nodes, own, totals(parents, own), leastShare).tree();
}

/** What a row holds: a chain of nodes, or light ones that are added up. */
interface Content {
  nodes: number[];
  isMore: boolean;
  indent: number;
}

class Outline {
  private readonly kinds: string[];
  private readonly names: string[];
  private readonly functions: string[];
  private readonly modules: string[];
  private readonly own: Float64Array;
  private readonly total: Float64Array;
  private readonly least: number;
  /** Children with weight, heaviest first. */
  private readonly children: number[][];

  constructor(nodes: Table, own: Float64Array, total: Float64Array, leastShare: number) {
    [this.kinds, this.names, this.functions, this.modules] = ["kind", "name", "function", "module"].map((column) => texts(nodes, column));
    this.own = own;
    this.total = total;
    this.least = total[0] * leastShare;
    this.children = Array.from({ length: nodes.rows }, () => []);
    const parents = integers(nodes, "parent");
    for (let node = 1; node < nodes.rows; node++) if (total[node] > 0) this.children[parents[node]].push(node);
    // The only function with weight below a node of instances needs no row above its own.
    for (let node = 1; node < nodes.rows; node++) {
      const [only, second] = this.children[node];
      if (this.kinds[node] !== "instances" || only === undefined || second !== undefined) continue;
      this.names[only] = this.names[node];
      const siblings = this.children[parents[node]];
      siblings[siblings.indexOf(node)] = only;
    }
    for (const siblings of this.children) siblings.sort((a, b) => total[b] - total[a] || this.order(a, b));
  }

  tree(): CostTree {
    const rows: CostRow[] = [];
    const waiting: Content[] = [{ nodes: this.chain(0), isMore: false, indent: 0 }];
    for (let row = waiting.pop(); row; row = waiting.pop()) {
      if (!row.isMore) this.pushCallees(row, waiting);
      rows.push(this.row(row));
    }
    return { rows, whole: this.total[0] };
  }

  private isShown(node: number): boolean {
    return this.total[node] >= this.least;
  }

  /** Functions, each of which only calls the next; a family with one member. */
  private chain(first: number): number[] {
    const chain = [first];
    if (this.kinds[first] === "family" && this.children[first].length === 1) return [first, this.children[first][0]];
    for (let last = first; this.kinds[last] === "function"; ) {
      const shown = this.children[last].filter((child) => this.isShown(child));
      const [next] = shown;
      if (shown.length !== 1 || this.kinds[next] !== "function" || this.total[last] - this.total[next] >= this.least) break;
      chain.push(next);
      last = next;
    }
    return chain;
  }

  /** Adds the callees of a chain, the last row first. */
  private pushCallees({ nodes: chain, indent }: Content, waiting: Content[]): void {
    const last = chain[chain.length - 1];
    const beside = chain.slice(0, -1).flatMap((node) => this.children[node]).filter((child) => !chain.includes(child));
    const light = [...beside, ...this.children[last].filter((child) => !this.isShown(child))];
    if (light.length > 0) waiting.push({ nodes: light, isMore: true, indent: indent + 1 });
    const shown = this.children[last].filter((child) => this.isShown(child));
    for (const child of shown.reverse()) waiting.push({ nodes: this.chain(child), isMore: false, indent: indent + 1 });
  }

  private row({ nodes, isMore, indent }: Content): CostRow {
    const sum = (weights: Float64Array) => nodes.reduce((sum, node) => sum + weights[node], 0);
    if (isMore) {
      const total = sum(this.total);
      return { text: `(${nodes.length} more)`, indent, kind: "more", function: "", module: "", total, own: total, node: NONE };
    }
    const last = nodes[nodes.length - 1];
    const { kinds, functions, modules } = this;
    return { text: this.chainText(nodes), indent, kind: kinds[last], function: functions[last], module: modules[last], total: this.total[nodes[0]], own: sum(this.own), node: last };
  }

  private chainText(chain: number[]): string {
    const [first, last] = [chain[0], chain[chain.length - 1]];
    if (chain.length === 1) return this.text(first);
    if (this.kinds[first] !== "function") return `${this.text(first)} ${this.text(last)}`;
    const ends = chain.length === 2 ? " > " : " > … > ";
    return `${this.short(first)}${ends}${this.short(last)}${chain.length > 2 ? ` (${chain.length} functions)` : ""}`;
  }

  private text(node: number): string {
    return this.kinds[node] === "instances" ? `${this.names[node]} (${this.children[node].length} functions)` : this.names[node];
  }

  /** The last two parts of a function's name. */
  private short(node: number): string {
    const text = this.text(node);
    return text.includes("<") ? text : text.split("::").slice(-2).join("::");
  }

  /** Siblings of one weight, as Rust orders places: functions, instances, families, members; then by name. */
  private order(a: number, b: number): number {
    const rank = (node: number) => ["group", "function", "instances", "family", "member"].indexOf(this.kinds[node]);
    const key = (node: number) => this.functions[node] || this.names[node];
    return rank(a) - rank(b) || (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : a - b);
  }
}
