// What is in a tile: rows of each lane, the interval at a moment, and wake-ups between lanes.

import { integers, numbers, type Table } from "./columns.ts";
import { count } from "./lanes.ts";

/** States of threads by their number in tiles, as in crates/app/src/lanes/state.rs. */
export const RUNNING = 0;
export const PREEMPTED = 1;
export const WOKEN = 2;
/** Blocked from here on, by class; then without a stack. */
export const BLOCKED = 3;
export const NO_STACK = 10;
export const UNKNOWN = 11;

/** The rows of a tile by lane. */
export interface Tile {
  table: Table;
  /** First row and the row after the last, by lane. Scopes have a key of thread and depth, see `scopeKey`. */
  rows: Map<number, [number, number]>;
  bytes: number;
}

/** A key of a row of nested scopes. */
export function scopeKey(thread: number, depth: number): number {
  return thread * 1024 + Math.min(depth, 1023);
}

/** Finds where the rows of each lane are; `keys` names one or two columns. */
export function tileOf(table: Table, keys: readonly [string] | readonly ["thread", "depth"]): Tile {
  const rows = new Map<number, [number, number]>();
  const first = integers(table, keys[0]);
  const second = keys[1] === undefined ? undefined : integers(table, keys[1]);
  for (let row = 0; row < table.rows; row++) {
    const key = second ? scopeKey(first[row], second[row]) : first[row];
    const range = rows.get(key);
    if (range) range[1] = row + 1;
    else rows.set(key, [row, row + 1]);
  }
  const bytes = Object.values(table.columns).reduce((sum, column) => sum + (Array.isArray(column) ? column.length * 16 : column.byteLength), 0);
  return { table, rows, bytes: bytes + rows.size * 64 };
}

/** Something on a lane: what a thread did, or which thread was on a CPU. */
export interface Interval {
  lane: number;
  start: number;
  end: number;
  state: number;
  stack: number;
  waker: number;
  wakerStack: number;
  thread: number;
  cpu: number;
}

/** The rows of a key that a range of time meets; intervals of a lane are in order. */
export function rowsBetween({ table, rows }: Tile, key: number, from: number, to: number): [number, number] {
  const [first, end] = rows.get(key) ?? [0, 0];
  if (first === end) return [0, 0];
  const [starts, ends] = [numbers(table, "start"), numbers(table, "end")];
  const low = first + count(end - first, (at) => ends[first + at] <= from);
  return [low, low + count(end - low, (at) => starts[low + at] < to)];
}

/** The row of the interval at a moment; -1 if there is none. The nearest one within `reach` counts too. */
export function rowAtTime(tile: Tile, key: number, time: number, reach = 0): number {
  const [first, end] = rowsBetween(tile, key, time - reach, time + Math.max(reach, 0.5));
  if (first >= end) return -1;
  const [starts, ends] = [numbers(tile.table, "start"), numbers(tile.table, "end")];
  let best = first;
  const distance = (row: number) => Math.max(starts[row] - time, time - ends[row], 0);
  for (let row = first; row < end; row++) if (distance(row) < distance(best) || (distance(row) === distance(best) && starts[row] <= time)) best = row;
  return best;
}

export function intervalOf({ table }: Tile, row: number): Interval {
  const whole = (name: string) => integers(table, name)[row];
  const number = (name: string) => numbers(table, name)[row];
  return {
    lane: whole("lane"),
    start: number("start"),
    end: number("end"),
    state: whole("state"),
    stack: whole("stack"),
    waker: whole("waker"),
    wakerStack: whole("waker_stack"),
    thread: whole("thread"),
    cpu: whole("cpu"),
  };
}

/** A thread that had a CPU, for how long, and since when. */
export interface Holder {
  thread: number;
  start: number;
  time: number;
}

/** Which threads had a CPU in a range of time, by its intervals in order: the first one, all with the longest time first, and the time of others. */
export function holdersOf(intervals: readonly Interval[], from: number, to: number): { first: Holder | undefined; all: Holder[]; others: number } {
  const found = new Map<number, Holder>();
  let others = to - from;
  for (const { thread, start, end } of intervals) {
    const time = Math.min(end, to) - Math.max(start, from);
    if (time <= 0) continue;
    others -= time;
    const known = found.get(thread);
    if (known) known.time += time;
    else found.set(thread, { thread, start: Math.max(start, from), time });
  }
  const [first] = found.values();
  return { first, all: [...found.values()].sort((a, b) => b.time - a.time), others: Math.max(0, others) };
}

/** A wake-up: which thread ended the wait of which. */
export interface WakeUp {
  time: number;
  waker: number;
  woken: number;
}

/** The wake-ups in a range of time, of these lanes. A thread was woken where its blocked part ends. */
export function wakeUps(tile: Tile, lanes: Iterable<number>, from: number, to: number): WakeUp[] {
  const { table } = tile;
  if (!("waker" in table.columns)) return [];
  const [state, waker, end] = [integers(table, "state"), integers(table, "waker"), numbers(table, "end")];
  const found: WakeUp[] = [];
  for (const lane of lanes) {
    const [first, last] = rowsBetween(tile, lane, from, to);
    for (let row = first; row < last; row++) {
      const isEnd = state[row] >= BLOCKED && state[row] <= NO_STACK && end[row] >= from && end[row] < to;
      if (isEnd && waker[row] >= 0 && waker[row] !== lane) found.push({ time: end[row], waker: waker[row], woken: lane });
    }
  }
  return found;
}

/** The part of the critical path in a range of time: rows of `path`, which is in the order of time. */
export function pathRows(path: Table, from: number, to: number): [number, number] {
  if (path.rows === 0) return [0, 0];
  const [starts, ends] = [numbers(path, "start"), numbers(path, "end")];
  const first = count(path.rows, (at) => ends[at] <= from);
  return [first, first + count(path.rows - first, (at) => starts[first + at] < to)];
}

/** What is between two moments. */
export interface Measure {
  from: number;
  to: number;
  length: number;
  /** Steps that end in between. */
  steps: number;
}

export function measure(a: number, b: number, stepEnds: Float64Array): Measure {
  const [from, to] = [Math.min(a, b), Math.max(a, b)];
  const before = (time: number) => count(stepEnds.length, (at) => stepEnds[at] <= time);
  return { from, to, length: to - from, steps: before(to) - before(from) };
}
