// The tables of a capture, as columns. What each holds is described in crates/app/src/profile/mod.rs.

import type { Document } from "./document.ts";
import type { Grid } from "./tiles.ts";

/** A column of numbers or of text. */
export type Column = Float64Array | Int32Array | string[];

/** A table by columns; all columns have `rows` values. */
export interface Table {
  rows: number;
  columns: Record<string, Column>;
}

/** The column of whole numbers with this name. */
export function integers(table: Table, name: string): Int32Array {
  const column = table.columns[name];
  if (!(column instanceof Int32Array)) throw new Error(`no column ${name} of integers`);
  return column;
}

/** The column of floating-point numbers with this name. */
export function numbers(table: Table, name: string): Float64Array {
  const column = table.columns[name];
  if (!(column instanceof Float64Array)) throw new Error(`no column ${name} of numbers`);
  return column;
}

/** The column of text with this name. */
export function texts(table: Table, name: string): string[] {
  const column = table.columns[name];
  if (!Array.isArray(column)) throw new Error(`no column ${name} of text`);
  return column;
}

/** What the page shows of which captures; crates/app/src/dataset.rs writes it. */
export interface Manifest {
  version: number;
  title: string;
  /** The report: sections of tables, charts and forests. */
  document: Document;
  captures: CaptureEntry[];
  /** Whether rows are still being added. */
  live: boolean;
}

/** One capture of the page; crates/app/src/profile/mod.rs writes it. */
export interface CaptureEntry {
  label: string;
  scenario: string;
  phase: string;
  variant: string;
  /** 0 if it was not repeated. */
  repetition: number;
  /** The filters that were applied before, in words; empty if everything is here. */
  selection: string;
  /** Length in nanoseconds. */
  duration: number;
  /** Whether it is configured which code is owned. Else costs are attributed to the program's own code. */
  ownership: boolean;
  /** What samples weigh, by event; then what rows of `amounts` do. */
  events: { name: string; unit: string; role: EventRole }[];
  /** The event that the tables are about. */
  event: number;
  /** The states of waits: `preempted`, the classes of blocking, `no_stack`. */
  states: string[];
  /** Kinds of evidence, and what came of each. */
  dimensions: DimensionEntry[];
  /** Rows of each table; a table that is not named here has none. */
  tables: Record<string, number>;
  lanes: LanesEntry;
  /** Sentences on what did not fit into the page. */
  leftOut: string[];
}

/** The timeline's tiles; crates/app/src/lanes/mod.rs writes it. */
export interface LanesEntry {
  /** Names of the states in tiles. */
  states: string[];
  /** Whether context switches were recorded. Else threads are known to run where they have samples. */
  switches: boolean;
  lanes: Grid;
  scopes: Grid;
  counters: Grid;
}

/** What samples of an event are evidence of; `amount`: rows of `amounts`, and `held` of what a moment holds, which all rows up to it add up to. */
export type EventRole = "cpu" | "minor_faults" | "major_faults" | "faults" | "cache_misses" | "other" | "amount" | "held";

export type DimensionEntry = { name: string } & (
  | { status: "recorded" }
  | { status: "partial"; lacks: string[] }
  | { status: "missing"; reason: string; remedy?: string }
);

/** Kinds of code, by the number in `frames`. */
export const FRAME_KINDS = ["group", "native", "runtime", "allocator", "kernel", "python", "unknown"] as const;
