// Queries of the timeline.

import { integers, numbers, texts, type Table } from "../profile/columns.ts";
import { pathRows } from "../profile/intervals.ts";
import { count } from "../profile/lanes.ts";
import { threadTime, type ThreadTime } from "../profile/thread_time.ts";
import type { Answer, Arguments, Selection } from "./queries.ts";
import type { Store } from "./store.ts";

/** A frame of a stack. */
export interface StackFrame {
  function: string;
  file: string;
  line: number;
}

export interface TimelineQueries {
  /** A tile, by its name without the capture. The page keeps it. */
  tile: { arguments: { capture: number; name: string }; answer: Table };
  /** The samples of an event in a range of time, if they are at most `most`. */
  ticks: {
    arguments: { capture: number; event: number; from: number; to: number; most: number };
    answer: { times: Float64Array; threads: Int32Array; stacks: Int32Array; total: number };
  };
  /** The critical path in a range of time: its parts, or the columns of a picture that it has on each thread if there are more parts than that. */
  path: {
    arguments: { capture: number; from: number; to: number; columns: number };
    answer: { threads: Int32Array; starts: Float64Array; ends: Float64Array; states: Int32Array; isExact: boolean };
  };
  /** What the thread of a loop did in the selected steps, and the function in which it waited longest. Without steps there is no answer. */
  threadTime: { arguments: { selection: Selection; states: string[] }; answer: { time: ThreadTime | undefined; place: string } };
  /** The frames of stacks, leaves first. */
  stacks: { arguments: { capture: number; stacks: number[] }; answer: { frames: StackFrame[][] } };
}

type Answers = { [Name in keyof TimelineQueries]: (given: Arguments<Name>) => Promise<Answer<Name>> };

/** Frames of a stack that are shown; damaged stacks may have circles. */
const DEEPEST = 2000;

export function timelineAnswers(store: Store): Answers {
  return {
    tile: ({ capture, name }) => store.once(`${capture}/${name}`),
    ticks: async ({ capture, event, from, to, most }) => ticksOf(await store.table(`${capture}/samples`), event, from, to, most),
    path: async ({ capture, from, to, columns }) => pathOf(await store.table(`${capture}/path`), from, to, columns),
    threadTime: async ({ selection: { capture, ...selection }, states }) => {
      const [steps, waits, nodes, frames] = await Promise.all(["steps", "waits", "stacks", "frames"].map((name) => store.table(`${capture}/${name}`)));
      const time = threadTime(steps, waits, selection, states.length, states.indexOf("sleep"));
      return { time, place: time?.longest ? waitPlaceOf(nodes, frames, time.longest.stack) : "" };
    },
    stacks: async ({ capture, stacks }) => {
      const [nodes, frames] = await Promise.all([store.table(`${capture}/stacks`), store.table(`${capture}/frames`)]);
      return { frames: stacks.map((stack) => framesOf(nodes, frames, stack)) };
    },
  };
}

/** Whether there are too many samples, of all events, to look for those of one event, of which at most `most` are wanted. */
export function areTooMany(samples: number, most: number): boolean {
  return samples > 8 * most;
}

export function ticksOf(samples: Table, event: number, from: number, to: number, most: number): Answer<"ticks"> {
  const none = { times: new Float64Array(), threads: new Int32Array(), stacks: new Int32Array() };
  if (samples.rows === 0) return { ...none, total: 0 };
  const [times, events] = [numbers(samples, "time"), integers(samples, "event")];
  const first = count(samples.rows, (at) => times[at] < from);
  const end = first + count(samples.rows - first, (at) => times[first + at] < to);
  if (areTooMany(end - first, most)) return { ...none, total: end - first };
  const rows: number[] = [];
  for (let row = first; row < end; row++) if (events[row] === event) rows.push(row);
  if (rows.length > most) return { ...none, total: rows.length };
  const [threads, stacks] = [integers(samples, "thread"), integers(samples, "stack")];
  return {
    times: Float64Array.from(rows, (row) => times[row]),
    threads: Int32Array.from(rows, (row) => threads[row]),
    stacks: Int32Array.from(rows, (row) => stacks[row]),
    total: rows.length,
  };
}

export function pathOf(path: Table, from: number, to: number, columns: number): Answer<"path"> {
  const [first, end] = pathRows(path, from, to);
  if (first === end) return { threads: new Int32Array(), starts: new Float64Array(), ends: new Float64Array(), states: new Int32Array(), isExact: true };
  const [threads, states, starts, ends] = [integers(path, "thread"), integers(path, "state"), numbers(path, "start"), numbers(path, "end")];
  if (end - first <= columns) {
    return { threads: threads.slice(first, end), starts: starts.slice(first, end), ends: ends.slice(first, end), states: states.slice(first, end), isExact: true };
  }
  // Of each thread, the last run of columns, which grows as long as parts meet it.
  const length = (to - from) / columns;
  const open = new Map<number, [number, number]>();
  const runs: { thread: number; start: number; end: number }[] = [];
  const close = (thread: number, [low, high]: [number, number]) => runs.push({ thread, start: from + low * length, end: from + high * length });
  for (let row = first; row < end; row++) {
    const low = Math.max(0, Math.floor((starts[row] - from) / length));
    const high = Math.min(columns, Math.max(low + 1, Math.ceil((ends[row] - from) / length)));
    const run = open.get(threads[row]);
    if (run && low <= run[1]) run[1] = Math.max(run[1], high);
    else {
      if (run) close(threads[row], run);
      open.set(threads[row], [low, high]);
    }
  }
  open.forEach((run, thread) => close(thread, run));
  return {
    threads: Int32Array.from(runs, ({ thread }) => thread),
    starts: Float64Array.from(runs, ({ start }) => start),
    ends: Float64Array.from(runs, ({ end }) => end),
    states: new Int32Array(runs.length).fill(-1),
    isExact: false,
  };
}

/** The function in which a thread waits: the nearest of the program's own, not that of the library which it waits in. */
export function waitPlaceOf(nodes: Table, frames: Table, stack: number): string {
  if (nodes.rows === 0 || frames.rows === 0 || stack < 0) return "";
  const [parents, frameOf] = [integers(nodes, "parent"), integers(nodes, "frame")];
  const [functions, owners] = [texts(frames, "function"), integers(frames, "owner")];
  let count = 0;
  for (let node = stack; node >= 0 && node < nodes.rows && count++ < DEEPEST; node = parents[node]) if (owners[frameOf[node]] === 1) return functions[frameOf[node]];
  return functions[frameOf[stack]] ?? "";
}

export function framesOf(nodes: Table, frames: Table, stack: number): StackFrame[] {
  const found: StackFrame[] = [];
  if (nodes.rows === 0 || frames.rows === 0) return found;
  const [parents, frameOf] = [integers(nodes, "parent"), integers(nodes, "frame")];
  const [functions, files, lines] = [texts(frames, "function"), texts(frames, "file"), integers(frames, "line")];
  for (let node = stack; node >= 0 && node < nodes.rows && found.length < DEEPEST; node = parents[node]) {
    const frame = frameOf[node];
    found.push({ function: functions[frame] ?? "unknown", file: files[frame] ?? "", line: lines[frame] ?? -1 });
  }
  return found;
}
