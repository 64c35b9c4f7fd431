// What a selection weighs, by place: samples and waits are added up by stack before anything else looks at them.

import type { Picked } from "./address.ts";
import type { Extra } from "./call_tree.ts";
import { integers, numbers, texts, type Table } from "./columns.ts";
import type { Functions } from "./functions.ts";
import { stepIntervals } from "./steps.ts";

/**
 * Which weight: CPU time (or another event's weight), time off the CPU, or both; or an event of `amounts`: what was counted in the selection, or what the
 * end of the selection holds.
 */
export type Weight = "cpu" | "offcpu" | "wall" | "amount" | "held";

/** The table whose rows an event's weight is in; `undefined` if the weight is of waits alone. */
export function rowsOf(weight: Weight, { samples, amounts }: Pick<Recorded, "samples" | "amounts">): Table | undefined {
  if (weight === "offcpu") return undefined;
  return weight === "amount" || weight === "held" ? amounts : samples;
}

/** Whether a weight has time off the CPU. */
export function hasWaits(weight: Weight): boolean {
  return weight === "offcpu" || weight === "wall";
}

/** The tables that weights come from. */
export interface Recorded {
  threads: Table;
  samples: Table;
  /** The samples by stack, if that is much less. The sums are of the whole recording. */
  sums: Table;
  amounts: Table;
  waits: Table;
  steps: Table;
  scopes: Table;
  scopeNames: Table;
}

/** State of threads that wait for a CPU. */
const WAITING_FOR_CPU = 0;

/** The places of waits: each state at each stack is a place of its own. */
export interface WaitPlaces extends Extra {
  states: Uint8Array;
  /** By row of `waits`: the place of the time in its state, and of the time that it waited for a CPU afterwards. */
  ofWait: Int32Array;
  ofRunnable: Int32Array;
}

/** `stacks` is the number of stacks. Places are counted from the first one after that for samples without a stack. */
export function waitPlaces(waits: Table, stacks: number, functions: Functions): WaitPlaces {
  const ofWait = new Int32Array(waits.rows);
  const ofRunnable = new Int32Array(waits.rows);
  const placeStacks: number[] = [];
  const states: number[] = [];
  if (waits.rows > 0) {
    const [stack, state] = [integers(waits, "stack"), integers(waits, "state")];
    const runnable = numbers(waits, "runnable");
    const known = new Map<number, number>();
    const place = (at: number, inState: number) => {
      const key = (at + 1) * 256 + inState;
      let index = known.get(key);
      if (index === undefined) {
        index = placeStacks.push(at) - 1;
        states.push(inState);
        known.set(key, index);
      }
      return stacks + 1 + index;
    };
    for (let wait = 0; wait < waits.rows; wait++) {
      const at = stack[wait] < stacks ? stack[wait] : -1;
      ofWait[wait] = place(at, state[wait]);
      ofRunnable[wait] = runnable[wait] > 0 ? place(at, WAITING_FOR_CPU) : ofWait[wait];
    }
  }
  const ofState = Int32Array.from(states, (state) => functions.ofState[state] ?? functions.noStack);
  return { stacks: Int32Array.from(placeStacks), functions: ofState, states: Uint8Array.from(states), ofWait, ofRunnable };
}

/** A selection in the form that rows are compared with. */
export class Chosen {
  /** Time, cut into intervals that do not overlap, in order: start, end, start, end, ... */
  readonly times: Float64Array;
  /** For each thread, 1 if chosen; undefined if all are. */
  readonly threads: Uint8Array | undefined;
  /** For each thread, its times in the chosen scopes, as `times`; undefined if scopes do not limit. */
  private readonly scopes: Map<number, Float64Array> | undefined;
  readonly states: Uint8Array | undefined;

  constructor(part: Picked, recorded: Recorded) {
    this.threads = chosenThreads(part, recorded.threads);
    let times: Float64Array = Float64Array.of(part.from ?? -Infinity, part.to ?? Infinity);
    const steps = stepIntervals(recorded.steps, part);
    if (steps) times = intersection(times, Float64Array.from({ length: steps.start.length * 2 }, (_, at) => (at % 2 ? steps.end : steps.start)[at >> 1]));
    this.times = times;
    if (part.scopes) this.scopes = scopeTimes(part.scopes, recorded);
    if (part.states) {
      this.states = new Uint8Array(256);
      for (const state of part.states) this.states[state] = 1;
    }
  }

  /** A selection and all that came before it. */
  static upToTheEnd(part: Picked, recorded: Recorded): Chosen {
    const { times } = new Chosen(part, recorded);
    const { from, steps, stepClass, stepTime, ...others } = part;
    return new Chosen({ ...others, to: times.at(-1) ?? -Infinity }, recorded);
  }

  /** The chosen times of a thread. */
  timesOf(thread: number): Float64Array {
    if (!this.scopes) return this.times;
    return intersection(this.times, this.scopes.get(thread) ?? new Float64Array(0));
  }

  get dependsOnThread(): boolean {
    return this.scopes !== undefined;
  }

  /** Whether all samples are chosen. */
  get isWhole(): boolean {
    return !this.threads && !this.scopes && this.times.length === 2 && this.times[0] === -Infinity && this.times[1] === Infinity;
  }
}

/** Weights by place: the stacks, samples without a stack, then the waits. */
export function weigh(part: Picked, weight: Weight, event: number, recorded: Recorded, places: WaitPlaces, stacks: number): Float64Array {
  const weights = new Float64Array(stacks + 1 + places.stacks.length);
  const chosen = weight === "held" ? Chosen.upToTheEnd(part, recorded) : new Chosen(part, recorded);
  const add = (stack: number, amount: number) => (weights[stack < 0 || stack >= stacks ? stacks : stack] += amount);
  const rows = rowsOf(weight, recorded);
  if (rows === recorded.samples && recorded.sums.rows > 0 && chosen.isWhole) eachSum(event, recorded.sums, add);
  else if (rows) eachSample(chosen, event, rows, (_, stack, amount) => add(stack, amount));
  // A thread may free blocks of another.
  if (weight === "held") for (let place = 0; place <= stacks; place++) weights[place] = Math.max(0, weights[place]);
  if (hasWaits(weight)) eachWait(chosen, recorded.waits, places, (_, place, __, amount) => (weights[place] += amount));
  return weights;
}

function eachSum(of: number, sums: Table, visit: (stack: number, weight: number) => void): void {
  const [event, stack, weight] = [integers(sums, "event"), integers(sums, "stack"), numbers(sums, "weight")];
  for (let row = 0; row < sums.rows; row++) if (event[row] === of) visit(stack[row], weight[row]);
}

/** Visits the chosen samples of an event in the order of their times. Those without a time come last; no range of time has them. */
export function eachSample(chosen: Chosen, event: number, samples: Table, visit: (row: number, stack: number, weight: number) => void): void {
  if (samples.rows === 0) return;
  const [time, weight] = [numbers(samples, "time"), numbers(samples, "weight")];
  const [thread, stack, events] = [integers(samples, "thread"), integers(samples, "stack"), integers(samples, "event")];
  const { threads, times } = chosen;
  const perThread = new Map<number, Float64Array>();
  for (let interval = 0; interval < times.length; interval += 2) {
    const first = lowerBound(time, times[interval], samples.rows);
    const isWhole = times[interval] === -Infinity && times[interval + 1] === Infinity;
    const end = isWhole ? samples.rows : lowerBound(time, times[interval + 1], samples.rows);
    for (let row = first; row < end; row++) {
      if (events[row] !== event || (threads && !threads[thread[row]])) continue;
      if (chosen.dependsOnThread) {
        let own = perThread.get(thread[row]);
        if (!own) perThread.set(thread[row], (own = chosen.timesOf(thread[row])));
        if (!holds(own, time[row])) continue;
      }
      visit(row, stack[row], weight[row]);
    }
  }
}

/** Visits the chosen parts of waits: the place, the start, and how much of it is chosen. */
export function eachWait(chosen: Chosen, waits: Table, places: WaitPlaces, visit: (row: number, place: number, start: number, weight: number) => void): void {
  if (waits.rows === 0) return;
  const [start, end, runnable] = [numbers(waits, "start"), numbers(waits, "end"), numbers(waits, "runnable")];
  const [thread, state] = [integers(waits, "thread"), integers(waits, "state")];
  const { threads, states } = chosen;
  const perThread = new Map<number, Float64Array>();
  for (let wait = 0; wait < waits.rows; wait++) {
    const of = thread[wait];
    if (threads && !threads[of]) continue;
    let times = chosen.times;
    if (chosen.dependsOnThread) {
      let own = perThread.get(of);
      if (!own) perThread.set(of, (own = chosen.timesOf(of)));
      times = own;
    }
    // Blocked until woken, then waiting for a CPU.
    const woken = runnable[wait] > 0 ? Math.max(start[wait], end[wait] - runnable[wait]) : end[wait];
    if (!states || states[state[wait]]) visit(wait, places.ofWait[wait], start[wait], overlap(times, start[wait], woken));
    if (woken < end[wait] && (!states || states[WAITING_FOR_CPU])) visit(wait, places.ofRunnable[wait], woken, overlap(times, woken, end[wait]));
  }
}

function chosenThreads(part: Picked, threads: Table): Uint8Array | undefined {
  if (!part.threads && !part.processes) return undefined;
  const chosen = new Uint8Array(threads.rows);
  if (part.threads) for (const thread of part.threads) chosen[thread] = 1;
  else chosen.fill(1);
  if (part.processes && threads.rows > 0) {
    const processes = new Set(part.processes);
    integers(threads, "process").forEach((process, thread) => {
      if (!processes.has(process)) chosen[thread] = 0;
    });
  }
  return chosen;
}

function scopeTimes(names: readonly string[], { scopes, scopeNames }: Recorded): Map<number, Float64Array> {
  const times = new Map<number, Float64Array>();
  if (scopes.rows === 0) return times;
  const wanted = new Set(names);
  const isWanted = texts(scopeNames, "name").map((name) => wanted.has(name));
  const [thread, name, start, end] = [integers(scopes, "thread"), integers(scopes, "name"), numbers(scopes, "start"), numbers(scopes, "end")];
  const intervals = new Map<number, [number, number][]>();
  for (let scope = 0; scope < scopes.rows; scope++) {
    if (!isWanted[name[scope]]) continue;
    const own = intervals.get(thread[scope]);
    if (own) own.push([start[scope], end[scope]]);
    else intervals.set(thread[scope], [[start[scope], end[scope]]]);
  }
  for (const [of, list] of intervals) times.set(of, union(list));
  return times;
}

/** Intervals in order and without overlaps. */
export function union(intervals: [number, number][]): Float64Array {
  const sorted = intervals.filter(([start, end]) => start < end).sort((a, b) => a[0] - b[0]);
  const merged: number[] = [];
  for (const [start, end] of sorted) {
    const last = merged.length - 1;
    if (last > 0 && start <= merged[last]) merged[last] = Math.max(merged[last], end);
    else merged.push(start, end);
  }
  return Float64Array.from(merged);
}

/** What two lists of intervals share. */
export function intersection(a: Float64Array, b: Float64Array): Float64Array {
  const shared: number[] = [];
  for (let i = 0, j = 0; i < a.length && j < b.length; ) {
    const [start, end] = [Math.max(a[i], b[j]), Math.min(a[i + 1], b[j + 1])];
    if (start < end) shared.push(start, end);
    if (a[i + 1] < b[j + 1]) i += 2;
    else j += 2;
  }
  return Float64Array.from(shared);
}

/** How long an interval is within others. */
export function overlap(times: Float64Array, start: number, end: number): number {
  if (times.length === 2) return Math.max(0, Math.min(end, times[1]) - Math.max(start, times[0]));
  let sum = 0;
  for (let at = firstEndingAfter(times, start); at < times.length && times[at] < end; at += 2) {
    sum += Math.max(0, Math.min(end, times[at + 1]) - Math.max(start, times[at]));
  }
  return sum;
}

function holds(times: Float64Array, time: number): boolean {
  const at = firstEndingAfter(times, time);
  return at < times.length && times[at] <= time;
}

/** The index of the first interval that ends after a time. */
function firstEndingAfter(times: Float64Array, time: number): number {
  let [low, high] = [0, times.length / 2];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[2 * middle + 1] > time) high = middle;
    else low = middle + 1;
  }
  return 2 * low;
}

/** The first of `rows` sorted values that is not below `least`. */
export function lowerBound(values: Float64Array, least: number, rows: number): number {
  let [low, high] = [0, rows];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < least) low = middle + 1;
    else high = middle;
  }
  return low;
}
