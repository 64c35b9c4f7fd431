// Profiles drawn as text, and trees as text again.
//
// A line is a call path: two more spaces are one call deeper. After the function come `*` if it is owned, its module in
// brackets, and the weight that ends there:
//
//   main
//     step* 5
//       malloc[libc.so] 10

import { callTreeOf, ownWeights, type CallTree } from "../src/profile/call_tree.ts";
import type { Table } from "../src/profile/columns.ts";
import type { Flame } from "../src/profile/flame.ts";
import { Catalogue, type Functions } from "../src/profile/functions.ts";
import { waitPlaces, type Recorded, type WaitPlaces } from "../src/profile/weigh.ts";

export const NOTHING: Table = { rows: 0, columns: {} };
/** States of waits in drawn profiles. */
export const STATES = ["waiting for a CPU", "lock", "sleep"];

export function table(columns: Table["columns"]): Table {
  return { rows: Object.values(columns)[0]?.length ?? 0, columns };
}

export interface Drawn {
  catalogue: Catalogue;
  functions: Functions;
  frames: Table;
  stacks: Table;
  places: WaitPlaces;
  tree: CallTree;
  /** Weights by place. */
  weights: Float64Array;
  /** Weights by node of the tree. */
  own: Float64Array;
  /** Row of `stacks` for each line. */
  lines: number[];
}

/** `line` of a function is its line in the drawing, from 1, in the file `drawing`, unless it says `@FILE:LINE`. */
export function drawn(drawing: string, waits: Table = NOTHING): Drawn {
  const lines = drawing.split("\n").filter((line) => line.trim());
  const indent = Math.min(...lines.map((line) => line.search(/\S/)));
  const frames: { name: string; module: string; owned: boolean; file: string; line: number }[] = [];
  const modules: string[] = [];
  const parents: number[] = [];
  const own: number[] = [];
  const path: number[] = [];
  lines.forEach((line, index) => {
    const depth = (line.search(/\S/) - indent) / 2;
    const parts = /^(?<name>[^\s*[@]+)(?<owned>\*)?(?:\[(?<module>[^\]]*)\])?(?:@(?<file>[^:\s]+):(?<line>\d+))?(?:\s+(?<weight>\d+))?$/.exec(line.trim());
    if (!parts?.groups) throw new Error(`unclear: ${line}`);
    const { name, owned, module = "", file = "drawing", line: at, weight = "0" } = parts.groups;
    if (!modules.includes(module)) modules.push(module);
    frames.push({ name, module, owned: owned !== undefined, file, line: at ? Number(at) : index + 1 });
    parents.push(depth === 0 ? -1 : path[depth - 1]);
    path[depth] = index;
    own.push(Number(weight));
  });
  const frameTable = table({
    function: frames.map(({ name }) => name),
    module: Int32Array.from(frames, ({ module }) => modules.indexOf(module)),
    file: frames.map(({ file }) => file),
    line: Int32Array.from(frames, ({ line }) => line),
    kind: new Int32Array(frames.length).fill(1),
    owned: Int32Array.from(frames, ({ owned }) => (owned ? 1 : 0)),
    owner: Int32Array.from(frames, ({ owned }) => (owned ? 1 : 0)),
    identity: Int32Array.from(frames, ({ name, module }) => frames.findIndex((other) => other.name === name && other.module === module)),
    inlined: new Int32Array(frames.length),
  });
  const stacks = table({ parent: Int32Array.from(parents), frame: Int32Array.from(frames.keys()) });
  const catalogue = new Catalogue(STATES);
  catalogue.grow(frameTable, table({ name: modules }));
  const { functions } = catalogue;
  const places = waitPlaces(waits, stacks.rows, functions);
  const tree = callTreeOf(Int32Array.from(parents), Int32Array.from(frames.keys()), functions, places);
  const weights = Float64Array.from([...own, 0, ...places.stacks.map(() => 0)]);
  return { catalogue, functions, frames: frameTable, stacks, places, tree, weights, own: ownWeights(tree, weights), lines: [...own.keys()] };
}

/** Samples drawn as `TIME:THREAD:STACK*WEIGHT` words, where STACK is the line of the drawing, from 1, or 0 for none. */
export function samples(drawing: string): Table {
  const rows = drawing.trim().split(/\s+/).map((word) => word.split(/[:*]/).map(Number));
  return table({
    time: Float64Array.from(rows, ([time]) => time),
    thread: Int32Array.from(rows, ([, thread]) => thread),
    cpu: new Int32Array(rows.length),
    stack: Int32Array.from(rows, ([, , stack]) => stack - 1),
    event: new Int32Array(rows.length),
    weight: Float64Array.from(rows, ([, , , weight = 1]) => weight),
  });
}

/** Waits drawn as `START-END:THREAD:STACK:STATE+RUNNABLE` words. */
export function waits(drawing: string): Table {
  const rows = drawing.trim().split(/\s+/).map((word) => word.split(/[-:+]/).map(Number));
  const column = (at: number) => Float64Array.from(rows, (row) => row[at] ?? 0);
  const whole = (at: number) => Int32Array.from(rows, (row) => row[at]);
  return table({
    start: column(0), end: column(1), thread: whole(2), stack: whole(3).map((stack) => stack - 1), state: whole(4), runnable: column(5),
  });
}

/** Recorded tables; those that are missing are empty. */
export function recorded(tables: Partial<Recorded>): Recorded {
  return { threads: NOTHING, samples: NOTHING, sums: NOTHING, amounts: NOTHING, waits: NOTHING, steps: NOTHING, scopes: NOTHING, scopeNames: NOTHING, ...tables };
}

/** A drawn tree as lines: two spaces a level, the function, its total, and its own weight if it has some besides callees. */
export function shown(flame: Flame, functions: Functions): string[] {
  const lines: string[] = [];
  const visit = (node: number, depth: number) => {
    if (node > 0) {
      const own = flame.own[node] > 0 && flame.own[node] !== flame.total[node] ? ` (${flame.own[node]})` : "";
      lines.push(`${"  ".repeat(depth - 1)}${functions.names[flame.functions[node]]} ${flame.total[node]}${own}`);
    }
    for (let child = flame.children[node]; child < flame.children[node + 1]; child++) visit(child, depth + 1);
  };
  visit(0, 0);
  return lines;
}
