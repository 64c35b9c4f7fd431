import assert from "node:assert/strict";
import { test } from "node:test";
import { paint, type Inks } from "../src/app/strip/picture.ts";
import type { Surface } from "../src/draw/surface.ts";
import type { Table } from "../src/profile/columns.ts";
import { isMostlyWaiting, threadTime } from "../src/profile/thread_time.ts";
import { waits } from "./drawn.ts";
import {
  barsOf, binOf, budgetOf, countOf, countsIn, factorsOf, figuresOf, histogramOf, loopsOf, MARK, nextMarked, scaleOf, selectedSteps, spanAround, selectionOf, selectionOfBins,
  selectionOfClass, selectionOfRange, stepIntervals, type Loop,
} from "../src/profile/steps.ts";

/** Steps drawn as text: one line per loop, one word per step: its length, then its marks: `!` stall, `s` slow, `t` typical, `u` upper, `l` lower, `f` first. */
function steps(drawing: string, { apart = 0, simulated = 4, pacing = 0 } = {}): Table {
  const rows = drawing.trim().split("\n").flatMap((line, loop) => {
    let time = 0;
    return line.trim().split(/\s+/).map((word, index) => {
      const [length, marks] = [Number.parseInt(word), word.replace(/\d/g, "")];
      const start = time;
      time += length + apart;
      return { loop, index, start, end: start + length, marks };
    });
  });
  rows.sort((a, b) => a.start - b.start || a.loop - b.loop);
  const integers = (of: (row: (typeof rows)[0]) => number) => Int32Array.from(rows, of);
  const numbers = (of: (row: (typeof rows)[0]) => number) => Float64Array.from(rows, of);
  const has = (mark: string) => (row: (typeof rows)[0]) => (row.marks.includes(mark) ? 1 : 0);
  const either = (one: string, zero: string) => (row: (typeof rows)[0]) => (row.marks.includes(one) ? 1 : row.marks.includes(zero) ? 0 : -1);
  return {
    rows: rows.length,
    columns: {
      index: numbers(({ index }) => index), start: numbers(({ start }) => start), end: numbers(({ end }) => end),
      sim: numbers(({ index }) => (index + 1) * simulated), thread: integers(({ loop }) => loop + 10), loop: integers(({ loop }) => loop),
      pacing: numbers(() => pacing), stall: integers(has("!")), first: integers(has("f")),
      level: integers(either("u", "l")), set: integers(either("s", "t")),
    },
  };
}

const MAIN = "9f 4t 4t 20!s 4 4 30!s 4";

test("each loop has its own steps, in order of time", () => {
  const [main, render] = loopsOf(steps(`${MAIN}\n50 50`));
  assert.deepEqual([...main.start], [0, 9, 13, 17, 37, 41, 45, 75]);
  assert.deepEqual([...render.rows], [1, 8]);
  assert.deepEqual([main.thread, render.thread], [10, 11]);
  assert.equal(main.marks[3], MARK.stall | MARK.slow);
});

test("without columns of classes all steps are of one loop", () => {
  const { rows, columns: { index, start, end, sim, thread } } = steps(MAIN);
  const loops = loopsOf({ rows, columns: { index, start, end, sim, thread } });
  assert.deepEqual(loops.map((loop) => [loop.rows.length, loop.marks.some((marks) => marks > 0)]), [[8, false]]);
});

test("bars keep the longest step and the median of what they stand for", () => {
  const [loop] = loopsOf(steps(MAIN, { pacing: 1 }));
  const bars = barsOf(loop, 0, 8, 2);
  assert.deepEqual([...bars.first], [0, 4, 8]);
  assert.deepEqual([...bars.longest], [19, 29]);
  assert.deepEqual([...bars.clock], [20, 30]);
  assert.deepEqual([...bars.median], [3, 3]);
  assert.ok(bars.marks.every((marks) => marks & MARK.stall));
  assert.deepEqual([...barsOf(loop, 2, 5, 100).longest], [3, 19, 3]);
  assert.equal(barsOf(loop, 3, 3, 100).longest.length, 0);
});

test("no stall of a million steps disappears", () => {
  const rows = 1_000_000;
  const start = Float64Array.from({ length: rows }, (_, row) => row * 10);
  const end = start.map((time, row) => time + (row % 100_000 === 77 ? 10 : 1));
  const stall = Int32Array.from({ length: rows }, (_, row) => (row % 100_000 === 77 ? 1 : 0));
  const [loop] = loopsOf({ rows, columns: { start, end, stall } });
  const bars = barsOf(loop, 0, rows, 1000);
  const marked = bars.longest.filter((longest, bar) => longest === 10 && bars.marks[bar] & MARK.stall);
  assert.equal(marked.length, 10);
  assert.ok(bars.median.every((median) => median === 1));
});

test("the budget is the simulated time of a step, and the factor is simulated over wall time", () => {
  const [loop] = loopsOf(steps("2 2 2 2 2 2"));
  assert.equal(budgetOf(loop), 4);
  assert.deepEqual([...factorsOf(loop, barsOf(loop, 0, 6, 3))], [2, 2, 2]);
  const [silent] = loopsOf(steps("2 2 2", { simulated: NaN }));
  assert.equal(budgetOf(silent), undefined);
  assert.ok(factorsOf(silent, barsOf(silent, 0, 3, 3)).every(Number.isNaN));
});

test("the histogram counts every step but the first, and its bins select steps", () => {
  const [loop] = loopsOf(steps(MAIN));
  const histogram = histogramOf(loop, 4);
  assert.deepEqual([...histogram.counts], [5, 0, 0, 2]);
  assert.deepEqual([binOf(histogram, 1), binOf(histogram, 4), binOf(histogram, 30), binOf(histogram, 99)], [0, 0, 3, 3]);
  assert.equal(selectedSteps(loop, selectionOfBins(loop, histogram, 3, 3)).join(""), "00010010");
  assert.equal(selectedSteps(loop, selectionOfBins(loop, histogram, 0, 2)).join(""), "01101101");
  assert.deepEqual([...countsIn(histogram, loop, Uint8Array.of(1, 1, 0, 1, 0, 0, 0, 0))], [1, 0, 0, 1]);
  assert.equal(histogramOf(loopsOf(steps("9f"))[0], 4).counts.length, 0);
});

test("slow steps are visited one by one", () => {
  const [loop] = loopsOf(steps(MAIN));
  assert.deepEqual([nextMarked(loop, -1, MARK.slow, 1), nextMarked(loop, 3, MARK.slow, 1), nextMarked(loop, 6, MARK.slow, 1)], [3, 6, undefined]);
  assert.equal(nextMarked(loop, 6, MARK.slow, -1), 3);
});

test("positions become ranges of rows, which select the same steps again", () => {
  const table = steps(`${MAIN}\n50 50`);
  const [main, render] = loopsOf(table);
  const selection = selectionOf(main, [2, 3, 4, 6]);
  assert.deepEqual(selection.steps, [[3, 5], [7, 7]]);
  assert.deepEqual([...selectedSteps(main, selection)], [0, 0, 1, 1, 1, 0, 1, 0]);
  assert.deepEqual([...selectedSteps(render, selection)], [0, 0]);
  assert.deepEqual([...selectedSteps(main, selectionOfRange(main, 1, 3))], [0, 1, 1, 1, 0, 0, 0, 0]);
  assert.deepEqual([...selectedSteps(render, selectionOf(render, [1]))], [0, 1]);
});

test("a class, a range of time, or both select steps; nothing selects none", () => {
  const [loop] = loopsOf(steps(MAIN));
  const text = (selection: Parameters<typeof selectedSteps>[1]) => selectedSteps(loop, selection).join("");
  assert.equal(text(selectionOfClass(loop, "slow")), "00010010");
  assert.equal(text({ from: 14, to: 40 }), "00111000");
  assert.equal(text({ stepClass: "slow", from: 40, to: 99 }), "00000010");
  assert.equal(text({}), "00000000");
});

test("many ranges are found by bisection as by walking", () => {
  const [loop] = loopsOf(steps("1 ".repeat(100)));
  const positions = Array.from(loop.rows.keys()).filter((position) => position % 3 === 1);
  assert.deepEqual([...selectedSteps(loop, selectionOf(loop, positions))].map((is, at) => (is ? at : -1)).filter((at) => at >= 0), positions);
});

test("neighbouring steps are one interval, and steps that overlap are cut", () => {
  const table = steps(MAIN);
  const times = (selection: Parameters<typeof stepIntervals>[1]) => {
    const { start, end } = stepIntervals(table, selection)!;
    return [...start].map((time, at) => [time, end[at]]);
  };
  assert.deepEqual(times({ steps: [[1, 2], [6, 6]] }), [[9, 17], [45, 75]]);
  assert.deepEqual(times({ stepClass: "lower" }), []);
  assert.equal(stepIntervals(table, { from: 1, to: 2 }), undefined);
  (table.columns.end as Float64Array)[1] = 16;
  assert.deepEqual([...stepIntervals({ ...table }, { steps: [[1, 1]] })!.end], [13]);
});

test("figures are of the selected steps", () => {
  const [loop] = loopsOf(steps(MAIN));
  const figures = figuresOf(loop, selectedSteps(loop, { steps: [[1, 6]] }));
  assert.deepEqual([figures.count, figures.total, figures.median, figures.longest, figures.longestAt, figures.stalls], [6, 66, 4, 30, 6, 2]);
  assert.equal(figures.realTimeFactor, (7 - 1) * 4 / (75 - 9));
  assert.equal(figuresOf(loop, selectedSteps(loop, { stepClass: "slow" })).realTimeFactor, undefined);
  assert.equal(figuresOf(loop, selectedSteps(loop, {})).longestAt, -1);
});

test("a step that stands for others counts as many", () => {
  const table = steps("9f 2 4 30! 4");
  table.columns.count = Int32Array.of(1, 5, 10, 1, 3);
  table.columns.index = Float64Array.of(0, 5, 15, 16, 19);
  table.columns.sim = Float64Array.of(4, 24, 64, 68, 80);
  const [loop] = loopsOf(table);
  assert.equal(countOf(loop), 20);
  assert.equal(budgetOf(loop), 4);
  const { count, shown, total, median, p95, longest, stalls } = figuresOf(loop, Uint8Array.of(0, 1, 1, 1, 1));
  assert.deepEqual({ count, shown, total, median, p95, longest, stalls }, { count: 19, shown: 4, total: 92, median: 4, p95: 30, longest: 30, stalls: 1 });
  const histogram = histogramOf(loop, 4);
  assert.equal(histogram.counts.reduce((sum, steps) => sum + steps), 19);
});

/** Steps of these lengths that wait for the next one; the work is what is left. */
function paced(lengths: number[], work: number): Loop {
  const end = lengths.map((sum => (length: number) => (sum += length))(0));
  const [ends, starts] = [Float64Array.from(end), Float64Array.from(end, (end, at) => end - lengths[at])];
  return loopsOf({ rows: lengths.length, columns: { start: starts, end: ends, pacing: Float64Array.from(lengths, (length) => length - work) } })[0];
}

/** Left and upper edge, width and height of the rectangles in an ink. */
function painted(loop: Loop, most: number, of: keyof Inks): number[][] {
  const names = ["ground", "line", "text", "soft", "bar", "upper", "pacing", "slow", "stall", "budget", "factor", "selected"] as const;
  const inks = Object.fromEntries(names.map((name, at) => [name, (at + 1) * 256 + 255])) as unknown as Inks;
  const found: number[][] = [];
  const surface = {
    width: 166, height: 112, begin() {}, end() {}, text() {}, line() {}, measure: () => 10,
    rectangle: (...[x, y, width, height, ink]: number[]) => void (ink === inks[of] && found.push([x, y, width, height].map(Math.round))),
  } as unknown as Surface;
  paint(surface, { bars: barsOf(loop, 0, loop.rows.length, 100), selected: undefined, factors: undefined, budget: undefined, most, across: loop.rows.length, hovered: undefined, brushed: undefined }, inks);
  return found;
}

test("the scale holds usual steps with their pacing, so that they differ", () => {
  const lengths = Array.from({ length: 40 }, (_, at) => 5e6 + (at % 4) * 1e6);
  const loop = paced([...lengths, 90e6], 1e6);
  const most = scaleOf(loop);
  assert.ok(most >= 8e6 && most < 9e6, String(most));
  const heights = painted(loop, most, "pacing").map(([, , , height]) => height);
  assert.equal(new Set(heights.slice(0, 4)).size, 4);
});

test("pacing of many times the work is cut, with a cap", () => {
  const loop = paced([20e6, 2e6, 20e6, 20e6], 1e6);
  assert.ok(scaleOf(loop) < 2e6, "the work stays visible");
  // Of the four bars, in 100 pixels from the axis on.
  assert.deepEqual(painted(loop, 3e6, "soft").map(([x]) => x), [58, 108, 133]);
  assert.deepEqual(painted(loop, 30e6, "soft"), []);
});

test("the thread of selected steps ran, waited for a CPU, was blocked by class, and waited longest at a place", () => {
  // Two steps of 100, of which the second has 40 of pacing. The states are: for a CPU, lock, sleep.
  const table: Table = { rows: 2, columns: { start: Float64Array.of(0, 100), end: Float64Array.of(100, 200), pacing: Float64Array.of(0, 40), thread: Int32Array.of(7, 7) } };
  const slept = waits("10-40:7:3:1+10 50-60:7:2:0 90-110:7:4:1 120-130:7:5:2 160-200:7:6:2 20-90:8:9:1");
  slept.columns["waker"] = Int32Array.of(8, -1, 8, -1, -1, 7);
  const of = (selection: object) => {
    const { blocked, longest, ...sums } = threadTime(table, slept, selection, 3, 2)!;
    return { ...sums, blocked: [...blocked], longest: longest && Object.values(longest) };
  };
  assert.deepEqual(of({ steps: [[0, 0]] }), {
    thread: 7, steps: 1, total: 100, pacing: 0, running: 50, runnable: 20, blocked: [0, 30, 0], longest: [1, 10, 20, 2],
  });
  // Of a wait over the edge of a step, the part inside counts. The sleep of 40 is pacing, that of 10 before it is not.
  assert.deepEqual(of({ steps: [[1, 1]] }), {
    thread: 7, steps: 1, total: 100, pacing: 40, running: 40, runnable: 0, blocked: [0, 10, 10], longest: [1, 100, 10, 3],
  });
  assert.deepEqual([of({ steps: [[0, 1]] }).steps, of({ steps: [[0, 1]] }).running], [2, 90]);
  assert.equal(threadTime(table, slept, {}, 3, 2), undefined);
});

test("steps are slow for waiting if less than half of what they take longer is running", () => {
  const time = (total: number, running: number, pacing = 0) => ({ thread: 0, steps: 2, total, pacing, running, runnable: 0, blocked: new Float64Array(0), longest: undefined });
  assert.equal(isMostlyWaiting(time(200, 40), time(100, 30)), true);
  assert.equal(isMostlyWaiting(time(200, 140), time(100, 80)), false);
  assert.equal(isMostlyWaiting(time(200, 90, 90), time(100, 10)), false, "pacing is no waiting of the step");
});

test("what is shown around a step makes it wide enough to see", () => {
  const [loop] = loopsOf(steps("100 4 100 20 100"));
  const shown = { from: 0, to: 324 };
  assert.deepEqual(spanAround(loop, 3, shown, 324), shown, "a step of 20 is seen");
  assert.deepEqual(spanAround(loop, 1, shown, 324), { from: 78, to: 126 });
  assert.deepEqual(spanAround(loop, 1, { from: 200, to: 240 }, 324), { from: 82, to: 122 }, "it is elsewhere");
  assert.deepEqual(spanAround(loop, 4, { from: 0, to: 240 }, 324), { from: 84, to: 324 }, "no further than the end");
  assert.deepEqual(spanAround(loop, 0, { from: 200, to: 210 }, 324), { from: 0, to: 324 }, "no longer than the recording");
});
