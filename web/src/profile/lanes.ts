// The rows of the timeline: which lanes there are, in which order, under which headings, and where each row is.

import { counted } from "../units.ts";
import { integers, numbers, texts, type Table } from "./columns.ts";

/** A thread or a CPU. Times in ns. */
export interface Lane {
  /** Row of the thread, or `-1 - cpu`. */
  lane: number;
  /** Which tiles have it. */
  block: number;
  name: string;
  tid: number;
  /** Row of its process; -1 for CPUs and if unknown. */
  process: number;
  running: number;
  runnable: number;
  blocked: number;
  unknown: number;
  /** On the critical path. */
  path: number;
  /** Rows of nested scopes. */
  depth: number;
  switches: number;
}

/** What lanes are sorted by. */
export const SORTS = ["cpu", "wait", "path", "name"] as const;
export type Sort = (typeof SORTS)[number];

export interface Arrangement {
  sort: Sort;
  /** Names of headings that are closed. */
  closed: ReadonlySet<string>;
  /** Names of headings whose idle threads are shown. */
  idleShown: ReadonlySet<string>;
  /** Most rows of nested scopes of a thread. */
  depth: number;
}

/** A row of the picture, from `y` on. */
export type Row = { y: number; height: number } & (
  | { kind: "heading"; name: string; text: string; closed: boolean }
  | { kind: "lane"; lane: Lane; scopes: number }
  | { kind: "idle"; name: string; text: string; shown: boolean }
  | { kind: "counter"; series: number; text: string }
);

export const LANE_HEIGHT = 20;
export const SCOPE_HEIGHT = 14;
const HEADING_HEIGHT = 20;
const COUNTER_HEIGHT = 34;

/** The share of the recording below which a thread that runs, waits for a CPU or is on the path is idle. */
const IDLE = 0.0005;

export interface CounterSeries {
  name: string;
  unit: string;
  process: number;
  thread: number;
}

/** The name of each thread, with its id if another one has the same name. */
export function threadNames(threads: Table | undefined): string[] {
  if (!threads || threads.rows === 0) return [];
  const [names, tids] = [texts(threads, "name"), integers(threads, "tid")];
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return names.map((name, thread) => (!name ? `thread ${tids[thread] ?? thread}` : counts.get(name)! > 1 && tids[thread] >= 0 ? `${name} ${tids[thread]}` : name));
}

/** Reads `lane_order` with the names of `threads`. */
export function readLanes(order: Table, threads: Table): Lane[] {
  if (order.rows === 0) return [];
  const [lane, block, depth, switches] = ["lane", "block", "depth", "switches"].map((name) => integers(order, name));
  const [running, runnable, blocked, unknown, path] = ["running", "runnable", "blocked", "unknown", "path"].map((name) => numbers(order, name));
  const known = threads.rows > 0;
  const tids = known ? integers(threads, "tid") : new Int32Array();
  const processes = known ? integers(threads, "process") : new Int32Array();
  const names = threadNames(threads);
  return Array.from(lane, (number, row) => ({
    lane: number,
    block: block[row],
    name: number < 0 ? `CPU ${-1 - number}` : (names[number] ?? `thread ${number}`),
    tid: number < 0 ? -1 : (tids[number] ?? -1),
    process: number < 0 ? -1 : (processes[number] ?? -1),
    running: running[row],
    runnable: runnable[row],
    blocked: blocked[row],
    unknown: unknown[row],
    path: path[row],
    depth: depth[row],
    switches: switches[row],
  }));
}

/** Whether next to nothing happens on a thread. */
export function isIdle(lane: Lane, duration: number): boolean {
  return lane.lane >= 0 && lane.depth === 0 && Math.max(lane.running, lane.runnable, lane.path) < duration * IDLE;
}

function compare(sort: Sort): (a: Lane, b: Lane) => number {
  const by: Record<Sort, (lane: Lane) => number> = {
    cpu: (lane) => -lane.running,
    wait: (lane) => -lane.runnable,
    path: (lane) => -lane.path,
    name: () => 0,
  };
  const key = by[sort];
  const order = new Intl.Collator("en", { numeric: true });
  return (a, b) => key(a) - key(b) || (sort === "name" ? order.compare(a.name, b.name) : b.running - a.running) || a.lane - b.lane;
}

/** The rows: CPUs, then the threads of each process, those with the most first, then counters. */
export function arrange(lanes: Lane[], processes: string[], counters: CounterSeries[], duration: number, arrangement: Arrangement): Row[] {
  const rows: Row[] = [];
  let y = 0;
  const push = (row: Row extends infer One ? (One extends Row ? Omit<One, "y"> : never) : never) => {
    rows.push({ ...row, y } as Row);
    y += row.height;
  };
  const heading = (name: string, text: string): boolean => {
    const closed = arrangement.closed.has(name);
    push({ kind: "heading", name, text, height: HEADING_HEIGHT, closed });
    return !closed;
  };
  const pushLane = (lane: Lane) => {
    const scopes = Math.min(lane.depth, arrangement.depth);
    push({ kind: "lane", lane, scopes, height: LANE_HEIGHT + scopes * SCOPE_HEIGHT });
  };
  const cpus = lanes.filter(({ lane }) => lane < 0);
  if (cpus.length > 0 && heading("cpus", counted(cpus.length, "CPU"))) cpus.forEach(pushLane);
  const order = compare(arrangement.sort);
  /** Idle threads after the others, as one row. A few rows cost less than looking for them. */
  const pushThreads = (name: string, threads: Lane[], noun: string) => {
    const idle = threads.filter((lane) => isIdle(lane, duration)).sort(order);
    threads.filter((lane) => !isIdle(lane, duration)).sort(order).forEach(pushLane);
    const folds = idle.length > 2;
    const shown = arrangement.idleShown.has(name);
    if (folds) push({ kind: "idle", name, text: counted(idle.length, noun), shown, height: HEADING_HEIGHT });
    if (!folds || shown) idle.forEach(pushLane);
  };
  const groups = byProcess(lanes.filter(({ lane }) => lane >= 0), arrangement.sort);
  // Processes of one thread, if there are many, need no heading each.
  const areAlone = ([process, threads]: [number, Lane[]]) => groups.length > 3 && threads.length === 1 && processes[process] !== undefined;
  for (const [process, threads] of groups.filter((group) => !areAlone(group))) {
    const name = `process ${process}`;
    const label = processes[process] || (processes.length > 1 ? "other threads" : "threads");
    if (heading(name, `${label} · ${counted(threads.length, "thread")}`)) pushThreads(name, threads, "idle thread");
  }
  const alone = groups.filter(areAlone).map(([process, [thread]]) => ({ ...thread, name: processes[process] || thread.name }));
  if (alone.length > 0 && heading("alone", counted(alone.length, "process of one thread", "processes of one thread"))) {
    pushThreads("alone", alone, "idle process");
  }
  if (counters.length > 0 && heading("counters", counted(counters.length, "counter"))) {
    const inOrder = counters.map((series, index) => ({ series, index })).sort((a, b) => rankOf(a.series.name) - rankOf(b.series.name) || a.index - b.index);
    for (const { series, index } of inOrder) {
      const process = processes.length > 1 && series.process >= 0 ? ` · ${processes[series.process]}` : "";
      push({ kind: "counter", series: index, text: counterText(series.name) + process, height: COUNTER_HEIGHT });
    }
  }
  return rows;
}

/** Order of counters: CPU, memory, faults, page cache, the program's own ones, then what is rarely asked for. */
function rankOf(name: string): number {
  const ranks = [/^cpu_/, /^(rss|pss|memory|heap)/, /fault/, /page_cache|cached|dirty/];
  const rank = ranks.findIndex((pattern) => pattern.test(name));
  if (rank >= 0) return rank;
  return /^(machine_speed|context_switches|threads$|fds$|io_|steal|pressure)/.test(name) ? 9 : 5;
}

/** The name of a counter without its unit, which its readings have. */
function counterText(name: string): string {
  return name.replace(/_(ns|bytes)$/, "").replace(/_/g, " ");
}

/** Threads by process, the process with the most first. */
function byProcess(lanes: Lane[], sort: Sort): [number, Lane[]][] {
  const groups = new Map<number, Lane[]>();
  for (const lane of lanes) {
    const group = groups.get(lane.process);
    if (group) group.push(lane);
    else groups.set(lane.process, [lane]);
  }
  const key = (lane: Lane) => (sort === "wait" ? lane.runnable : sort === "path" ? lane.path : lane.running);
  const sum = (group: Lane[]) => group.reduce((sum, lane) => sum + key(lane), 0);
  return [...groups].map(([process, group]) => ({ process, group, sum: sum(group) })).sort((a, b) => b.sum - a.sum || a.process - b.process).map(({ process, group }) => [process, group]);
}

/** Height of all rows. */
export function heightOf(rows: Row[]): number {
  const last = rows.at(-1);
  return last ? last.y + last.height : 0;
}

/** The rows that meet a range of heights. */
export function rowsIn(rows: Row[], top: number, bottom: number): Row[] {
  return rows.slice(firstAfter(rows, top), firstFrom(rows, bottom));
}

/** The row at a height. */
export function rowAt(rows: Row[], y: number): Row | undefined {
  const row = rows[firstAfter(rows, y)];
  return row && row.y <= y ? row : undefined;
}

function firstAfter(rows: Row[], y: number): number {
  return count(rows.length, (at) => rows[at].y + rows[at].height <= y);
}

function firstFrom(rows: Row[], y: number): number {
  return count(rows.length, (at) => rows[at].y < y);
}

/** How many of the first numbers are `early`: all that are come first. */
export function count(length: number, early: (at: number) => boolean): number {
  let [low, high] = [0, length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (early(middle)) low = middle + 1;
    else high = middle;
  }
  return low;
}
