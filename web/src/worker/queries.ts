// What the page asks of the worker. A query is a name, its arguments and its answer; worker.ts has the code of each.

import type { Table } from "../profile/columns.ts";
import type { Growth } from "./store.ts";
import type { StepClass } from "../profile/steps.ts";
import type { FlameQueries } from "./flame.ts";
import type { TimelineQueries } from "./timeline.ts";

/** What of a capture is looked at. Parts that are missing limit nothing. */
export interface Selection {
  capture: number;
  /** Nanoseconds since the capture's first event. */
  from?: number;
  to?: number;
  /** First and last step, by row of `steps`; of rows in between, those of `loop`. */
  steps?: [number, number][];
  /** All steps of a class. */
  stepClass?: StepClass;
  /** All steps that take from the first to the second of these times without pacing, in nanoseconds. */
  stepTime?: [number, number];
  /** The simulation loop whose steps are selected; the main one, 0, if absent. */
  loop?: number;
  /** Rows of `threads`. */
  threads?: number[];
  /** Rows of `processes`. */
  processes?: number[];
  /** Names of scopes: within any of them. */
  scopes?: string[];
  /** States of waits, as in `waits`. */
  states?: number[];
}

export interface Queries extends FlameQueries, TimelineQueries {
  /** A whole table; for small ones such as `steps` and `threads`. */
  table: { arguments: { capture: number; name: string }; answer: Table };
  /** The weight of an event's samples in buckets of equal length over the whole recording. */
  usage: { arguments: { capture: number; event: number; duration: number; buckets: number }; answer: Float64Array };
}

export type QueryName = keyof Queries;
export type Arguments<Name extends QueryName> = Queries[Name]["arguments"];
export type Answer<Name extends QueryName> = Queries[Name]["answer"];

/** Bytes of a table that the worker asks for, or why there are none; and what a live recording sends. */
export type ToWorker =
  | { kind: "query"; id: number; name: QueryName; arguments: unknown }
  | { kind: "bytes"; name: string; bytes: ArrayBuffer | undefined }
  | { kind: "missing"; name: string; message: string }
  | { kind: "rows"; message: ArrayBuffer }
  | { kind: "forget" };
export type FromWorker =
  | { kind: "answer"; id: number; answer: unknown }
  | { kind: "failure"; id: number; message: string }
  | { kind: "wanted"; name: string }
  | { kind: "grown"; growth: Growth };
