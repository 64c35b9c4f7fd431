// The profile of one capture: its tables, the call trees made of them, and what a selection of it weighs. Trees do not
// depend on the selection, so they are kept.

import type { Order, Picked, Transform } from "./address.ts";
import { callTreeOf, outermost, ownWeights, type CallTree } from "./call_tree.ts";
import { integers, numbers, texts, type Table } from "./columns.ts";
import { costTree, type CostTree } from "./cost_tree.ts";
import { flameOf, withHashes, withoutStartUp, type Flame } from "./flame.ts";
import { functionTable, neighbours, sandwich, type FunctionTable, type Neighbours, type Sandwich } from "./function_table.ts";
import { pathHashes, type Catalogue, type Functions } from "./functions.ts";
import { instructionsOf, type Instructions } from "./instructions.ts";
import { invertedFlame, leaves } from "./inverted.ts";
import { filesOf, linesOf, type FileCost, type Lines } from "./lines.ts";
import { sequencesOf, Timeline, timeOrderedFlame } from "./time_order.ts";
import { transformed } from "./transforms.ts";
import { Chosen, eachSample, eachWait, hasWaits, rowsOf, waitPlaces, weigh, type Recorded, type Weight, type WaitPlaces } from "./weigh.ts";

/** The tables of a capture that have to do with stacks. */
export interface ProfileTables extends Recorded {
  frames: Table;
  modules: Table;
  stacks: Table;
  costNodes: Table;
  costPlaces: Table;
}

/** What is weighed: a part of the capture, and by which weight. */
export interface Weighed {
  part: Picked;
  weight: Weight;
  /** Index of the event whose samples count. */
  event: number;
  transforms: readonly Transform[];
}

/** How a tree is drawn. */
export interface Drawing {
  order: Order;
  inverted: boolean;
  /** Whether callers that all stacks share are left out. */
  foldsStartUp: boolean;
}

interface Tree {
  key: string;
  tree: CallTree;
  isOutermost: Uint8Array | undefined;
}

/** Transformed trees that are kept: the reader goes back and forth. */
const KEPT = 4;

export class Profile {
  readonly tables: ProfileTables;
  readonly functions: Functions;
  private readonly places: WaitPlaces;
  private readonly catalogue: Catalogue;
  private readonly base: CallTree;
  private trees: Tree[] = [];
  private lastWeights: { key: string; weights: Float64Array } | undefined;

  /** `catalogue` may have the functions of the capture when it was shorter, as while it is recorded. */
  constructor(tables: ProfileTables, catalogue: Catalogue) {
    this.tables = tables;
    catalogue.grow(tables.frames, tables.modules);
    this.catalogue = catalogue;
    this.functions = catalogue.functions;
    const { stacks, waits } = tables;
    this.places = waitPlaces(waits, stacks.rows, this.functions);
    const column = (name: string) => (stacks.rows > 0 ? integers(stacks, name) : new Int32Array(0));
    this.base = callTreeOf(column("parent"), column("frame"), this.functions, this.places);
  }

  /** Weights by place: the stacks come first. */
  weights({ part, weight, event }: Weighed): Float64Array {
    const key = JSON.stringify([part, weight, event]);
    if (this.lastWeights?.key !== key) {
      this.lastWeights = { key, weights: weigh(part, weight, event, this.tables, this.places, this.tables.stacks.rows) };
    }
    return this.lastWeights.weights;
  }

  /** The call tree after transforms. */
  tree(transforms: readonly Transform[]): CallTree {
    return this.known(transforms).tree;
  }

  /** Weights by node of the transformed tree. */
  own(weighed: Weighed): Float64Array {
    return ownWeights(this.tree(weighed.transforms), this.weights(weighed));
  }

  flame(weighed: Weighed, { order, inverted, foldsStartUp }: Drawing): Flame {
    const tree = this.tree(weighed.transforms);
    const own = this.own(weighed);
    const started = foldsStartUp ? withoutStartUp(tree, own, this.functions) : { tree, folded: [] };
    const { folded } = started;
    if (order === "time") return { ...withHashes(this.inTimeOrder(weighed, started.tree), this.functions), folded };
    if (inverted) return { ...withHashes(invertedFlame(started.tree, leaves(own), this.functions.names.length), this.functions), folded };
    return { ...flameOf(started.tree, own, this.functions, order, pathHashes(tree, this.functions)), folded };
  }

  table(weighed: Weighed): FunctionTable {
    return functionTable(this.tree(weighed.transforms), this.own(weighed), this.outermost(weighed.transforms), this.functions);
  }

  neighbours(weighed: Weighed, of: number): Neighbours {
    return neighbours(this.tree(weighed.transforms), this.own(weighed), this.outermost(weighed.transforms), of);
  }

  sandwich(weighed: Weighed, of: number): Sandwich {
    return sandwich(this.tree(weighed.transforms), this.own(weighed), this.outermost(weighed.transforms), of, this.functions);
  }

  lines(weighed: Weighed, file: string): Lines {
    return linesOf(file, this.tables.frames, this.tables.stacks, this.kept(weighed));
  }

  /** The instructions of a function, from its tables. Only samples have an address. */
  instructions({ part, weight, event }: Weighed, code: Table, samples: Table): Instructions {
    return instructionsOf(code, samples, new Chosen(part, this.tables), weight === "cpu" || weight === "wall" ? event : undefined);
  }

  files(weighed: Weighed): { files: FileCost[]; whole: number } {
    const weights = this.kept(weighed);
    return { files: filesOf(this.tables.frames, this.tables.stacks, weights), whole: weights.reduce((sum, weight) => sum + weight, 0) };
  }

  costTree(weighed: Weighed): CostTree {
    const { costNodes, costPlaces, stacks } = this.tables;
    return costTree(costNodes, costPlaces, this.places, this.kept(weighed), stacks.rows);
  }

  /** Weights by place of what transforms leave in the tree. */
  private kept(weighed: Weighed): Float64Array {
    const { ofPlace } = this.tree(weighed.transforms);
    return this.weights(weighed).map((weight, place) => (ofPlace[place] < 0 ? 0 : weight));
  }

  private outermost(transforms: readonly Transform[]): Uint8Array {
    const known = this.known(transforms);
    known.isOutermost ??= outermost(known.tree, this.functions.names.length);
    return known.isOutermost;
  }

  private known(transforms: readonly Transform[]): Tree {
    const key = JSON.stringify(transforms);
    let found = this.trees.find((tree) => tree.key === key);
    if (!found) {
      const last = transforms.at(-1);
      const tree = last ? transformed(this.tree(transforms.slice(0, -1)), last, this.catalogue) : this.base;
      found = { key, tree, isOutermost: undefined };
    }
    this.trees = [found, ...this.trees.filter((tree) => tree !== found)].slice(0, KEPT);
    return found;
  }

  /** Samples and waits of each thread as they followed each other, heaviest thread first. */
  private inTimeOrder({ part, weight, event }: Weighed, tree: CallTree): Flame {
    const { waits, stacks } = this.tables;
    const rows = rowsOf(weight, this.tables);
    const chosen = new Chosen(part, this.tables);
    const [sampled, waited] = [new Timeline(), new Timeline()];
    const add = (timeline: Timeline, thread: number, time: number, place: number, amount: number) => {
      const node = tree.ofPlace[place];
      if (node >= 0 && amount > 0) timeline.push(thread, time, node, amount);
    };
    if (rows && rows.rows > 0) {
      const [thread, time] = [integers(rows, "thread"), numbers(rows, "time")];
      eachSample(chosen, event, rows, (row, stack, amount) => add(sampled, thread[row], time[row], stack < 0 ? stacks.rows : stack, amount));
    }
    if (hasWaits(weight) && waits.rows > 0) {
      const thread = integers(waits, "thread");
      eachWait(chosen, waits, this.places, (row, place, start, amount) => add(waited, thread[row], start, place, amount));
    }
    const sequences = sequencesOf(sampled, waited);
    return timeOrderedFlame(tree, sequences.map(({ thread, moments }) => ({ thread: this.threadFunction(thread), moments })));
  }

  /** The function that stands for a thread. */
  private threadFunction(thread: number): number {
    const { threads } = this.tables;
    const name = threads.rows > 0 ? texts(threads, "name")[thread] : undefined;
    const tid = threads.rows > 0 ? integers(threads, "tid")[thread] : thread;
    return this.catalogue.ofThread(thread, `${name ?? "thread"} (${tid})`);
  }
}

/** What a capture's manifest says about weights. */
export interface Events {
  events: readonly { unit: string; role?: string }[];
  /** The event that stands for cost. */
  event: number;
}

/** Which weight an address names: `cpu`, `offcpu`, `wall` or `event-2`. */
export function weightOf(written: string, { events, event: primary }: Events): { weight: Weight; event: number; unit: string } {
  const number = /^event-(\d+)$/.exec(written)?.[1];
  const event = number !== undefined && Number(number) < events.length ? Number(number) : primary;
  if (written === "offcpu") return { weight: "offcpu", event, unit: "ns" };
  // Time on and off the CPU add up only if both are times.
  if (written === "wall" && (events[primary]?.unit ?? "ns") === "ns") return { weight: "wall", event: primary, unit: "ns" };
  const role = events[event]?.role;
  return { weight: role === "amount" || role === "held" ? role : "cpu", event, unit: events[event]?.unit ?? "" };
}
