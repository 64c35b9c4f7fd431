// Tables that get rows while a recording is live. Pure: no DOM, no worker.

import type { Column, Table } from "./columns.ts";

/** What rows of a table are sorted by: first ascending, then descending. */
const ORDER: Record<string, [string, string?]> = {
  samples: ["time"],
  waits: ["start"],
  steps: ["start"],
  // The enclosing scope comes first.
  scopes: ["start", "end"],
  counters: ["time"],
};

/** Steps keep their row numbers, which selections use, up to this many. */
const MOST_STEPS = 2_000_000;

/** A table whose columns grow in place, each at most twice as long as it must be. */
export class GrowingTable {
  private readonly kind: string;
  private columns: Record<string, Column> = {};
  private rows = 0;
  private shown: Table | undefined;

  /** `name` is that of the table, such as `samples`. */
  constructor(name: string) {
    this.kind = name;
  }

  /** The table as it is now. Each change makes another object. */
  get table(): Table {
    if (!this.shown) {
      const columns: Record<string, Column> = {};
      for (const [name, column] of Object.entries(this.columns)) columns[name] = Array.isArray(column) ? column : column.subarray(0, this.rows);
      this.shown = { rows: this.rows, columns };
    }
    return this.shown;
  }

  /** The first row of this time or later. */
  rowAt(time: number): number {
    const order = ORDER[this.kind];
    return order && this.rows > 0 ? lowerBound(this.columns[order[0]] as Float64Array, this.rows, time) : 0;
  }

  /** Puts rows at row `at`, in place of those that are there; without it, into the order of the table. */
  put(added: Table, at?: number): void {
    this.shown = undefined;
    if (at !== undefined) this.rows = Math.min(this.rows, at);
    if (this.rows === 0) this.columns = Object.fromEntries(Object.entries(added.columns).map(([name, column]) => [name, column.slice()]));
    else this.merge(added, at === undefined ? ORDER[this.kind] : undefined);
    this.rows += added.rows;
    if (this.kind === "scopes") this.nest();
  }

  /** Forgets rows that ended before a time, as soon as they are a good part of the table. */
  forgetBefore(time: number): void {
    const order = ORDER[this.kind];
    if (!order || this.rows === 0 || (this.kind === "steps" && this.rows < MOST_STEPS)) return;
    const starts = this.columns[order[0]] as Float64Array;
    const old = lowerBound(starts, this.rows, time);
    if (old < 1000 || old < this.rows / 4) return;
    const ends = (this.columns.end as Float64Array | undefined) ?? starts;
    const kept: number[] = [];
    for (let row = 0; row < old; row++) if (ends[row] >= time) kept.push(row);
    for (const [name, column] of Object.entries(this.columns)) {
      if (Array.isArray(column)) {
        this.columns[name] = [...kept.map((row) => column[row]), ...column.slice(old)];
        continue;
      }
      kept.forEach((row, place) => (column[place] = column[row]));
      column.copyWithin(kept.length, old, this.rows);
    }
    this.rows = kept.length + this.rows - old;
    this.shown = undefined;
    if (this.kind === "scopes") this.nest();
  }

  /** Writes rows behind those that are there, or between the last ones. Waits and scopes come when they end. */
  private merge(added: Table, order: [string, string?] | undefined): void {
    const first = order ? firstAfter(this.columns, this.rows, added, order) : this.rows;
    const tail = this.rows - first;
    const turns = tail > 0 && order ? merged(this.columns, first, this.rows, added, order) : undefined;
    for (const [name, column] of Object.entries(this.columns)) {
      const more = added.columns[name];
      if (!more) throw new Error(`a message without the column ${name} of ${this.kind}`);
      if (Array.isArray(column)) {
        column.length = this.rows;
        for (const text of more as string[]) column.push(text);
        continue;
      }
      const grown = longEnough(column, this.rows + added.rows);
      this.columns[name] = grown;
      if (!turns) {
        grown.set(more as ArrayLike<number>, this.rows);
        continue;
      }
      const before = grown.slice(first, this.rows);
      for (let place = 0; place < turns.length; place++) {
        const from = turns[place];
        grown[first + place] = from < tail ? before[from] : (more as Float64Array)[from - tail];
      }
    }
  }

  /** Counts for each scope how many of its thread enclose it. */
  private nest(): void {
    const { thread, start, end, depth } = this.columns as Record<string, Float64Array>;
    const open = new Map<number, number[]>();
    for (let row = 0; row < this.rows; row++) {
      const ends = open.get(thread[row])?.filter((other) => other > start[row] || other === end[row]) ?? [];
      depth[row] = ends.reduce((count, other) => count + (other >= end[row] ? 1 : 0), 0);
      ends.push(end[row]);
      open.set(thread[row], ends);
    }
  }
}

function longEnough<T extends Float64Array | Int32Array>(column: T, rows: number): T {
  if (column.length >= rows) return column;
  const longer = new (column.constructor as new (length: number) => T)(Math.max(rows, column.length * 2, 256));
  longer.set(column);
  return longer;
}

function lowerBound(sorted: Float64Array, rows: number, value: number): number {
  let low = 0;
  let high = rows;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The first row that comes after the first added one. */
function firstAfter(columns: Record<string, Column>, rows: number, added: Table, [key]: [string, string?]): number {
  if (added.rows === 0) return rows;
  return lowerBound(columns[key] as Float64Array, rows, (added.columns[key] as Float64Array)[0]);
}

/** The rows of the tail (from 0) and the added ones (behind them), in the order of both together. */
function merged(columns: Record<string, Column>, first: number, rows: number, added: Table, [key, then]: [string, string?]): Uint32Array {
  const tail = rows - first;
  const turns = new Uint32Array(tail + added.rows);
  const old = (name: string) => columns[name] as Float64Array;
  const more = (name: string) => added.columns[name] as Float64Array;
  const isFirst = (left: number, right: number): boolean => {
    const difference = old(key)[first + left] - more(key)[right];
    return difference < 0 || (difference === 0 && (!then || old(then)[first + left] >= more(then)[right]));
  };
  let [left, right] = [0, 0];
  for (let place = 0; place < turns.length; place++) {
    const fromTail = right >= added.rows || (left < tail && isFirst(left, right));
    turns[place] = fromTail ? left++ : tail + right++;
  }
  return turns;
}
