// The timeline's logic: rows, intervals, wake-ups, path, axis, gestures and columns of pixels. Lanes are drawn as text.

import assert from "node:assert/strict";
import { test } from "node:test";
import { bounded, moved, zoomed } from "../src/app/timeline/gestures.ts";
import { LaneColumns } from "../src/draw/lane_columns.ts";
import { growth } from "../src/draw/timeline_lanes.ts";
import type { Table } from "../src/profile/columns.ts";
import { BLOCKED, holdersOf, intervalOf, measure, rowAtTime, tileOf, wakeUps, type Interval, type Tile } from "../src/profile/intervals.ts";
import { arrange, heightOf, readLanes, rowAt, rowsIn, threadNames, type Arrangement, type Lane, type Row } from "../src/profile/lanes.ts";
import { moment, ticks } from "../src/profile/ticks.ts";
import { framesOf, pathOf, ticksOf } from "../src/worker/timeline.ts";

/** One lane a line: its number, then a character per 10 ns: `#` runs, `r` woken, `p` preempted, `c` condition, `.` not alive; `c2` woken by lane 2. */
function drawn(text: string): Tile {
  const rows: number[][] = [];
  for (const line of text.trim().split("\n")) {
    const [, number, life] = /^\s*(-?\d+)\s+(.*)$/.exec(line)!;
    let time = 0;
    for (const [, state, waker] of life.matchAll(/([#rpc.?])(\d?)/g)) {
      const kind = { "#": 0, p: 1, r: 2, c: BLOCKED + 1, "?": 11, ".": -1 }[state]!;
      const last = rows.at(-1);
      const isLonger = last && last[0] === Number(number) && last[3] === kind && last[2] === time;
      if (isLonger) last[2] += 10;
      else if (kind >= 0) rows.push([Number(number), time, time + 10, kind, -1, -1]);
      if (waker && rows.length > 0) rows.at(-1)![5] = Number(waker);
      time += 10;
    }
  }
  const whole = (at: number) => Int32Array.from(rows, (row) => row[at] ?? -1);
  const columns = {
    lane: whole(0),
    start: Float64Array.from(rows, (row) => row[1]),
    end: Float64Array.from(rows, (row) => row[2]),
    state: whole(3),
    stack: whole(4),
    waker: whole(5),
    waker_stack: whole(4),
    thread: whole(0),
    cpu: whole(4),
  };
  return tileOf({ rows: rows.length, columns }, ["lane"]);
}

test("the interval at a moment is found, and the nearest one if there is none", () => {
  const tile = drawn("0 ##cc##..\n1 ....####");
  const at = (lane: number, time: number, reach = 0) => {
    const row = rowAtTime(tile, lane, time, reach);
    return row < 0 ? "none" : `${intervalOf(tile, row).start} ${intervalOf(tile, row).state}`;
  };
  assert.deepEqual([at(0, 5), at(0, 20), at(0, 39), at(0, 40), at(0, 65), at(2, 5)], ["0 0", "20 4", "20 4", "40 0", "none", "none"]);
  assert.deepEqual([at(1, 35), at(1, 35, 10)], ["none", "40 0"]);
  const late = tileOf({ rows: 2, columns: { lane: Int32Array.of(0, 0), start: Float64Array.of(0, 165_371_000_123), end: Float64Array.of(165_371_000_123, 2e11) } }, ["lane"]);
  assert.equal(rowAtTime(late, 0, 165_371_000_123), 1, "times have no room for fractions late in a recording");
});

test("who had a CPU while a thread waited for it: the first one, all by their time, and the rest", () => {
  const intervals = [[1, 0, 120], [2, 120, 150], [3, 160, 170], [2, 170, 250]].map(([thread, start, end]): Interval => ({ lane: -1, start, end, state: 0, stack: -1, waker: -1, wakerStack: -1, thread, cpu: 0 }));
  assert.deepEqual(holdersOf(intervals, 120, 200), {
    first: { thread: 2, start: 120, time: 60 },
    all: [
      { thread: 2, start: 120, time: 60 },
      { thread: 3, start: 160, time: 10 },
    ],
    others: 10,
  });
  assert.deepEqual(holdersOf([], 5, 8), { first: undefined, all: [], others: 3 });
});

test("wake-ups are where blocked intervals end", () => {
  const tile = drawn("0 #cc1rr##\n1 ####c0##\n2 ########");
  assert.deepEqual(wakeUps(tile, [0, 1, 2], 0, 80), [
    { time: 30, waker: 1, woken: 0 },
    { time: 50, waker: 0, woken: 1 },
  ]);
  assert.deepEqual(wakeUps(tile, [0, 1], 35, 80).map(({ woken }) => woken), [1]);
});

test("columns of a pixel add up to the life of the lane", () => {
  const tile = drawn("0 ##ccrr##..\n-1 ###.##....");
  const columns = new LaneColumns();
  const grid = { base: 1, levels: 1, blocks: 1 };
  const cover = { address: { level: 0, block: 0, tile: 0 }, from: 0, to: 1024 };
  const parts = (lane: number, from: number, to: number, width: number) => {
    columns.begin(width);
    columns.add(tile, grid, cover, lane, { from, to, width });
    const sum = (part: Float32Array) => Math.round(part.reduce((sum, share) => sum + share, 0) * ((to - from) / width) * 100) / 100;
    return [columns.running, columns.runnable, columns.blocked, columns.unknown].map(sum);
  };
  for (const width of [1, 3, 10, 77, 400]) assert.deepEqual(parts(0, 0, 100, width), [40, 20, 20, 0], `${width} columns`);
  assert.deepEqual(parts(0, 15, 55, 7), [5, 15, 20, 0]);
  assert.deepEqual(parts(-1, 0, 100, 9), [50, 0, 0, 0]);
  columns.begin(10);
  columns.add(tile, grid, cover, 0, { from: 0, to: 100, width: 10 });
  assert.equal(columns.most[2], BLOCKED + 1);
  assert.equal(columns.most[0], -1);
});

test("buckets give the same columns as intervals", () => {
  const table: Table = {
    rows: 2,
    columns: {
      lane: Int32Array.of(0, 0),
      bucket: Int32Array.of(0, 3),
      length: Int32Array.of(2, 1),
      running: Int32Array.of(255, 51),
      runnable: Int32Array.of(0, 51),
      blocked: Int32Array.of(0, 153),
      unknown: Int32Array.of(0, 0),
      state: Int32Array.of(-1, 5),
      thread: Int32Array.of(0, 0),
    },
  };
  const columns = new LaneColumns();
  columns.begin(8);
  const grid = { base: 10, levels: 2, blocks: 1 };
  columns.add(tileOf(table, ["lane"]), grid, { address: { level: 1, block: 0, tile: 0 }, from: 0, to: 40960 }, 0, { from: 0, to: 160, width: 8 });
  assert.deepEqual([...columns.running].map((share) => Math.round(share * 10) / 10), [1, 1, 1, 1, 0, 0, 0.2, 0.2]);
  assert.deepEqual([...columns.most], [-1, -1, -1, -1, -1, -1, 5, 5]);
});

const lane = (number: number, process: number, running: number, more: Partial<Lane> = {}): Lane => ({
  lane: number, block: 0, name: `t${number}`, tid: 100 + number, process, running, runnable: 0, blocked: 0, unknown: 0, path: 0, depth: 0, switches: 0, ...more,
});
const ARRANGEMENT: Arrangement = { sort: "cpu", closed: new Set(), idleShown: new Set(), depth: 4 };
const said = (rows: Row[]) => rows.map((row) => (row.kind === "lane" ? row.lane.name : row.kind === "counter" ? `${row.text} (counter)` : row.text));
const LANES = [
  lane(-1, -1, 900, { name: "CPU 0" }),
  lane(0, 0, 100),
  lane(1, 0, 5_000, { depth: 9 }),
  lane(2, 1, 900),
  lane(3, 1, 0, { runnable: 800 }),
  ...[4, 5, 6, 7].map((number) => lane(number, 1, 0)),
];
const DURATION = 10_000;

test("lanes stand under their process, the busiest first; idle threads are folded", () => {
  const rows = arrange(LANES, ["sim", "gui"], [{ name: "rss_bytes", unit: "bytes", process: -1, thread: -1 }], DURATION, ARRANGEMENT);
  assert.deepEqual(said(rows), ["1 CPU", "CPU 0", "sim · 2 threads", "t1", "t0", "gui · 6 threads", "t2", "t3", "4 idle threads", "1 counter", "rss (counter)"]);
  const open = arrange(LANES, ["sim", "gui"], [], DURATION, { ...ARRANGEMENT, sort: "wait", closed: new Set(["cpus"]), idleShown: new Set(["process 1"]) });
  assert.deepEqual(said(open), ["1 CPU", "gui · 6 threads", "t3", "t2", "4 idle threads", "t4", "t5", "t6", "t7", "sim · 2 threads", "t1", "t0"]);
});

test("many processes of one thread are one group", () => {
  const single = [lane(0, 0, 9_000), lane(1, 0, 10), ...[1, 2, 3, 4, 5].map((process) => lane(process + 1, process, process === 2 ? 700 : 0))];
  const rows = arrange(single, ["sim", "cat #1", "cat #2", "cat #3", "cat #4", "cat #5"], [], DURATION, ARRANGEMENT);
  assert.deepEqual(said(rows), ["sim · 2 threads", "t0", "t1", "5 processes of one thread", "cat #2", "4 idle processes"]);
});

test("rows are found by their height", () => {
  const rows = arrange(LANES, ["sim", "gui"], [], DURATION, ARRANGEMENT);
  const t1 = rows.find((row) => row.kind === "lane" && row.lane.lane === 1)!;
  assert.ok(t1.height > rows[1].height, "nested scopes have rows of their own");
  assert.equal(rowAt(rows, t1.y + t1.height - 1), t1);
  assert.equal(rowAt(rows, heightOf(rows)), undefined);
  assert.deepEqual(rowsIn(rows, t1.y + 1, t1.y + 2), [t1]);
  assert.deepEqual(rowsIn(rows, -50, 0), []);
});

test("lanes without threads or names are read", () => {
  const order: Table = { rows: 0, columns: {} };
  assert.deepEqual(readLanes(order, { rows: 0, columns: {} }), []);
});

test("a long path is shown by the columns that it has on each thread", () => {
  const rows = 1000;
  const path: Table = {
    rows,
    columns: {
      thread: Int32Array.from({ length: rows }, (_, at) => at % 2),
      start: Float64Array.from({ length: rows }, (_, at) => at * 10),
      end: Float64Array.from({ length: rows }, (_, at) => at * 10 + 10),
      state: new Int32Array(rows).fill(-1),
    },
  };
  const all = pathOf(path, 0, 10_000, 100);
  assert.deepEqual([all.isExact, [...all.threads], [...all.starts], [...all.ends]], [false, [0, 1], [0, 0], [10_000, 10_000]]);
  const few = pathOf(path, 105, 145, 100);
  assert.deepEqual([few.isExact, [...few.starts]], [true, [100, 110, 120, 130, 140]]);
  assert.equal(pathOf({ rows: 0, columns: {} }, 0, 1, 10).threads.length, 0);
});

test("samples are given if they are few enough", () => {
  const samples: Table = {
    rows: 6,
    columns: { time: Float64Array.of(0, 10, 20, 30, 40, 50), event: Int32Array.of(0, 1, 0, 0, 1, 0), thread: Int32Array.of(0, 1, 2, 3, 4, 5), stack: Int32Array.of(0, 1, 2, 3, 4, 5) },
  };
  assert.deepEqual([...ticksOf(samples, 0, 10, 50, 10).times], [20, 30]);
  const many = ticksOf(samples, 0, 0, 60, 3);
  assert.deepEqual([many.total, many.times.length], [4, 0]);
});

test("frames of a stack come leaf first, and circles end", () => {
  const nodes: Table = { rows: 3, columns: { parent: Int32Array.of(-1, 0, 2), frame: Int32Array.of(0, 1, 1) } };
  const frames: Table = { rows: 2, columns: { function: ["main", "work"], file: ["", "a.cc"], line: Int32Array.of(-1, 7) } };
  assert.deepEqual(framesOf(nodes, frames, 1).map((frame) => frame.function), ["work", "main"]);
  assert.ok(framesOf(nodes, frames, 2).length <= 2000);
  assert.deepEqual(framesOf(nodes, frames, 99), []);
});

test("ticks are round, in one unit, and few", () => {
  const texts = (from: number, to: number, spacing: number) => {
    const { times, text } = ticks(from, to, spacing);
    return times.map(text);
  };
  assert.deepEqual(texts(0, 2e9, 4e8), ["0.0 s", "0.5 s", "1.0 s", "1.5 s", "2.0 s"]);
  assert.deepEqual(texts(2_000_000_000, 2_004_000_000, 900_000), ["2.000 s", "2.001 s", "2.002 s", "2.003 s", "2.004 s"]);
  assert.deepEqual(texts(2_000_000_000, 2_000_004_000, 900), ["2000.000 ms", "2000.001 ms", "2000.002 ms", "2000.003 ms", "2000.004 ms"]);
  assert.deepEqual(texts(0, 300e9, 60e9), ["0 min", "1 min", "2 min", "3 min", "4 min", "5 min"]);
  assert.equal(texts(0, 1e18, 1).length <= 500, true);
  assert.equal(moment(2_000_964_376), "2,000.964 ms");
});

test("zooming keeps the moment under the pointer, and no view leaves the recording", () => {
  const span = { from: 200, to: 600 };
  const near = zoomed(span, 300, 0.5, 100_000);
  assert.deepEqual(near, { from: 250, to: 450 });
  assert.deepEqual(zoomed(span, 300, 1e9, 1000), { from: 0, to: 1000 });
  assert.deepEqual(moved(span, 1e9, 1000), { from: 600, to: 1000 });
  assert.deepEqual(moved(span, -1e9, 1000), { from: 0, to: 400 });
  const least = zoomed(span, 300, 0, 100_000);
  assert.ok(least.to - least.from >= 100);
  assert.deepEqual(bounded(-50, 50, 1000), { from: 0, to: 100 });
  assert.deepEqual(bounded(0, 10, 10), { from: 0, to: 10 });
});

test("a measure counts the steps that end in it, whichever point was first", () => {
  assert.deepEqual(measure(30, 10, Float64Array.of(10, 20, 30, 40)), { from: 10, to: 30, length: 20, steps: 2 });
});

test("running totals grow from reading to reading, and from the end of a bucket to the next", () => {
  const reading = (time: number, last: number, read = time) => ({ time, until: time + 7, least: last, most: last, last, read });
  const drawn = (points: Parameters<typeof growth>[0]) => growth(points).map(({ time, until, most }) => [time, until, most]);
  // A reading every second, the last one early: each rate is of its own interval.
  assert.deepEqual(drawn([reading(0, 0), reading(1e9, 1e9), reading(2e9, 2e9), reading(2.5e9, 2.5e9)]), [[0, 1e9, 1e9], [1e9, 2e9, 1e9], [2e9, 2.5e9, 1e9]]);
  assert.deepEqual(drawn([reading(0, 5, 1e9), reading(1e9, 6, 3e9)]), [[1e9, 3e9, 0.5]]);
  assert.deepEqual(drawn([reading(0, 5)]), []);
});

test("threads of one name differ by their ids", () => {
  const threads = { rows: 4, columns: { tid: Int32Array.of(70, 71, 72, 73), process: Int32Array.of(0, 0, 0, 1), name: ["sim", "worker", "worker", ""] } };
  assert.deepEqual(threadNames(threads), ["sim", "worker 71", "worker 72", "thread 73"]);
  assert.deepEqual(threadNames({ rows: 0, columns: {} }), []);
  const zeros = new Float64Array(2);
  const order = {
    rows: 2,
    columns: { lane: Int32Array.of(2, -1), block: new Int32Array(2), depth: new Int32Array(2), switches: new Int32Array(2), running: zeros, runnable: zeros, blocked: zeros, unknown: zeros, path: zeros },
  };
  assert.deepEqual(readLanes(order, threads).map(({ name, tid }) => [name, tid]), [["worker 72", 72], ["CPU 0", -1]]);
});
