// The steps of a capture: their loops and classes, the bars of the strip, and which steps a selection holds. Classes come
// with the table `steps`, as the program found them: nothing is judged here.

import type { Selection } from "../worker/queries.ts";
import type { Span } from "./address.ts";
import type { Table } from "./columns.ts";

/** Bits of `Loop.marks`. */
export const MARK = { stall: 1, slow: 2, typical: 4, lower: 8, upper: 16, first: 32 } as const;

/** Classes of steps that can be selected as a whole. */
export const STEP_CLASSES = ["slow", "typical", "stall", "lower", "upper"] as const;
export type StepClass = (typeof STEP_CLASSES)[number];

/** The steps of one simulation loop, in order of time. A place in these arrays is a *position*. */
export interface Loop {
  /** 0 is the main loop. */
  number: number;
  /** Row of `threads` of its first step. */
  thread: number;
  /** Rows in the table `steps`. */
  rows: Int32Array;
  /** The step's number, as the recorder counted. */
  index: Float64Array;
  start: Float64Array;
  end: Float64Array;
  /** Duration without pacing. */
  work: Float64Array;
  /** Simulated time after the step; NaN if unknown. */
  sim: Float64Array;
  marks: Uint8Array;
  /** How many steps it stands for: of too many steps only some are in the page. */
  stands: Float64Array;
}

const known = new WeakMap<Table, { rows: number; loops: Loop[] }>();

/** The loops of a capture, the main one first. */
export function loopsOf(table: Table): Loop[] {
  const before = known.get(table);
  if (before?.rows === table.rows) return before.loops;
  const loops = separated(table);
  known.set(table, { rows: table.rows, loops });
  return loops;
}

function separated(table: Table): Loop[] {
  const { rows, columns } = table;
  const column = (name: string, missing: number) => {
    const found = columns[name];
    return found && !Array.isArray(found) ? found : new Float64Array(rows).fill(missing);
  };
  const number = column("loop", 0);
  const [index, start, end, sim, thread] = [column("index", 0), column("start", 0), column("end", 0), column("sim", NaN), column("thread", -1)];
  const [pacing, stall, level, set, first] = [column("pacing", 0), column("stall", 0), column("level", -1), column("set", -1), column("first", 0)];
  const count = column("count", 1);
  const counts = new Map<number, number>();
  for (let row = 0; row < rows; row++) counts.set(number[row], (counts.get(number[row]) ?? 0) + 1);
  const rowsOf = new Map([...counts].map(([number, count]) => [number, { rows: new Int32Array(count), filled: 0 }]));
  const order = isSorted(start) ? undefined : inOrder(start);
  for (let at = 0; at < rows; at++) {
    const row = order ? order[at] : at;
    const of = rowsOf.get(number[row])!;
    of.rows[of.filled++] = row;
  }
  const loop = ([number, { rows: of }]: [number, { rows: Int32Array }]): Loop => {
    const marks = new Uint8Array(of.length);
    const work = new Float64Array(of.length);
    for (let position = 0; position < of.length; position++) {
      const row = of[position];
      let mark = 0;
      if (stall[row] > 0) mark |= MARK.stall;
      if (set[row] === 1) mark |= MARK.slow;
      if (set[row] === 0) mark |= MARK.typical;
      if (level[row] === 0) mark |= MARK.lower;
      if (level[row] === 1) mark |= MARK.upper;
      if (first[row] > 0) mark |= MARK.first;
      marks[position] = mark;
      work[position] = Math.max(0, end[row] - start[row] - pacing[row]);
    }
    const gathered = (from: ArrayLike<number>) => {
      const values = new Float64Array(of.length);
      for (let position = 0; position < of.length; position++) values[position] = from[of[position]];
      return values;
    };
    return { number, thread: thread[of[0]], rows: of, index: gathered(index), start: gathered(start), end: gathered(end), work, sim: gathered(sim), marks, stands: gathered(count) };
  };
  return [...rowsOf].sort(([a], [b]) => a - b).map(loop);
}

function inOrder(start: ArrayLike<number>): Int32Array {
  const order = new Int32Array(start.length);
  for (let row = 0; row < order.length; row++) order[row] = row;
  return order.sort((a, b) => start[a] - start[b] || a - b);
}

function isSorted(values: ArrayLike<number>): boolean {
  for (let row = 1; row < values.length; row++) if (values[row] < values[row - 1]) return false;
  return true;
}

/** Groups of consecutive steps, each as wide as one bar. */
export interface Bars {
  /** Position of the first step of each bar, and the end of the last one. */
  first: Int32Array;
  /** Longest and median time without pacing. */
  longest: Float64Array;
  median: Float64Array;
  /** Longest time with pacing. */
  clock: Float64Array;
  /** Marks of any of its steps. */
  marks: Uint8Array;
}

/** The steps of positions `from` to `to` in at most `most` bars. The longest step of each bar is known, so no stall is lost. */
export function barsOf(loop: Loop, from: number, to: number, most: number): Bars {
  const steps = Math.max(0, to - from);
  const count = Math.min(steps, Math.max(1, Math.floor(most)));
  const bars: Bars = {
    first: Int32Array.from({ length: count + 1 }, (_, bar) => from + Math.floor((bar * steps) / Math.max(1, count))),
    longest: new Float64Array(count),
    median: new Float64Array(count),
    clock: new Float64Array(count),
    marks: new Uint8Array(count),
  };
  for (let bar = 0; bar < count; bar++) {
    const [first, end] = [bars.first[bar], bars.first[bar + 1]];
    let [longest, clock, marks] = [0, 0, 0];
    for (let position = first; position < end; position++) {
      longest = Math.max(longest, loop.work[position]);
      clock = Math.max(clock, loop.end[position] - loop.start[position]);
      marks |= loop.marks[position];
    }
    bars.longest[bar] = longest;
    bars.clock[bar] = clock;
    bars.marks[bar] = marks;
    bars.median[bar] = medianOf(loop.work.subarray(first, end));
  }
  return bars;
}

/** The median; of an even number of values the lower one of the two, so that it is a value that occurred. */
export function medianOf(values: Float64Array): number {
  return quantileOf(values, 0.5);
}

/** The value at this share of the sorted values: one that occurred. NaN if there are none. */
export function quantileOf(values: Float64Array, share: number): number {
  if (values.length === 0) return NaN;
  if (values.length === 1) return values[0];
  return values.slice().sort()[Math.min(values.length - 1, Math.max(0, Math.ceil(values.length * share) - 1))];
}

/** Real time that a step may take: the median simulated time per step. `undefined` if steps have no simulated time. */
export function budgetOf(loop: Loop): number | undefined {
  const simulated: number[] = [];
  for (let position = 1; position < loop.sim.length; position++) {
    const steps = loop.index[position] - loop.index[position - 1];
    const advance = (loop.sim[position] - loop.sim[position - 1]) / Math.max(1, steps);
    if (advance > 0) simulated.push(advance);
  }
  return simulated.length > 0 ? medianOf(Float64Array.from(simulated)) : undefined;
}

/** The scale holds the usual steps with their pacing up to this multiple of their work: more of it would make the work too low to see. */
const MOST_PACING = 8;

/** The upper edge of the bars: rare stalls and long pacing may reach beyond it, so that other steps stay visible. */
export function scaleOf(loop: Loop): number {
  const [longest, usual] = [quantileOf(loop.work, 1), quantileOf(loop.work, 0.95)];
  const clock = quantileOf(loop.end.map((end, position) => end - loop.start[position]), 0.95);
  const budget = budgetOf(loop) ?? 0;
  const work = Math.min(longest * 1.04, Math.max(usual * 3, budget * 1.2));
  return Math.max(1, work, clock <= usual * MOST_PACING ? clock * 1.04 : 0);
}

/** Simulated time over wall time, from the end of the step at `from` to that of the step at `to`. */
export function realTimeFactor(loop: Loop, from: number, to: number): number | undefined {
  const factor = (loop.sim[to] - loop.sim[from]) / (loop.end[to] - loop.end[from]);
  return Number.isFinite(factor) && factor >= 0 ? factor : undefined;
}

/** The fewest steps that one point of the RTF line stands for. */
const FEWEST_OF_FACTOR = 16;

/** The RTF around each bar; NaN where it is unknown. */
export function factorsOf(loop: Loop, bars: Bars): Float64Array {
  const last = loop.rows.length - 1;
  return Float64Array.from(bars.longest, (_, bar) => {
    const [first, end] = [bars.first[bar], bars.first[bar + 1]];
    const more = Math.max(0, Math.ceil((FEWEST_OF_FACTOR - (end - first)) / 2));
    return realTimeFactor(loop, Math.max(0, first - 1 - more), Math.min(last, end - 1 + more)) ?? NaN;
  });
}

/** Bins of equal ratio. */
export interface Histogram {
  /** One more than there are bins. */
  edges: Float64Array;
  counts: Int32Array;
}

/** How many steps take how long, without the loop's first step, which loads data for later steps. */
export function histogramOf(loop: Loop, most: number): Histogram {
  let [shortest, longest] = [Infinity, 0];
  loop.work.forEach((time, position) => {
    if (!counts(loop, position)) return;
    shortest = Math.min(shortest, time);
    longest = Math.max(longest, time);
  });
  if (longest === 0) return { edges: new Float64Array(0), counts: new Int32Array(0) };
  const bins = longest > shortest ? most : 1;
  const ratio = Math.log(longest / shortest) / bins;
  const edges = Float64Array.from({ length: bins + 1 }, (_, edge) => (edge === bins ? longest : shortest * Math.exp(ratio * edge)));
  const histogram = { edges, counts: new Int32Array(bins) };
  loop.work.forEach((time, position) => {
    if (counts(loop, position)) histogram.counts[binOf(histogram, time)] += loop.stands[position];
  });
  return histogram;
}

function counts(loop: Loop, position: number): boolean {
  return (loop.marks[position] & MARK.first) === 0 && loop.work[position] > 0;
}

/** The bin of a time; times outside are in the first or last bin. */
export function binOf({ edges }: Histogram, time: number): number {
  const bins = edges.length - 1;
  if (bins < 2 || !(time > edges[0])) return 0;
  const bin = Math.floor((Math.log(time / edges[0]) / Math.log(edges[bins] / edges[0])) * bins);
  return Math.min(bins - 1, Math.max(0, bin));
}

/** How many of these steps are in each bin. */
export function countsIn(histogram: Histogram, loop: Loop, isSelected: Uint8Array): Int32Array {
  const found = new Int32Array(histogram.counts.length);
  isSelected.forEach((is, position) => {
    if (is && counts(loop, position)) found[binOf(histogram, loop.work[position])] += loop.stands[position];
  });
  return found;
}

/** The next step with any of these marks before (-1) or after (1) a position; `undefined` if there is none. */
export function nextMarked(loop: Loop, position: number, marks: number, direction: -1 | 1): number | undefined {
  for (let at = position + direction; at >= 0 && at < loop.marks.length; at += direction) {
    if (loop.marks[at] & marks) return at;
  }
  return undefined;
}

/** A step that is narrower than this part of the shown time is hard to see. */
const NARROWEST = 1 / 25;
/** How many times as long as a step the time is that is shown around it. */
const AROUND = 12;

/** The part of the recording to show so that a step can be seen: the one that is shown, or one of the same length around the step, if it is wide enough there. */
export function spanAround(loop: Loop, position: number, shown: Span, duration: number): Span {
  const [start, end] = [loop.start[position], loop.end[position]];
  const length = shown.to - shown.from;
  const fits = end - start >= length * NARROWEST && end - start <= length;
  if (fits && start >= shown.from && end <= shown.to) return shown;
  const wanted = Math.min(duration, fits ? length : (end - start) * AROUND);
  const from = Math.min(Math.max(0, (start + end - wanted) / 2), duration - wanted);
  return { from: Math.round(from), to: Math.round(from + wanted) };
}

/** How many steps a loop has. */
export function countOf(loop: Loop): number {
  return loop.stands.reduce((sum, count) => sum + count, 0);
}

/** How many steps have this mark. */
export function countMarked(loop: Loop, mark: number): number {
  return loop.marks.reduce((count, marks, position) => count + (marks & mark ? loop.stands[position] : 0), 0);
}

// Selections

/** The part of a selection that says which steps. */
export type StepSelection = { [Key in "from" | "to" | "steps" | "stepClass" | "stepTime" | "loop"]?: Selection[Key] | undefined };

/** What a selection of steps replaces. */
const NO_STEPS = { steps: undefined, stepClass: undefined, stepTime: undefined, from: undefined, to: undefined };

/** Steps at these positions, in order, as a selection by rows. */
export function selectionOf(loop: Loop, positions: ArrayLike<number>): StepSelection {
  const steps: [number, number][] = [];
  let previous = NaN;
  for (let at = 0; at < positions.length; at++) {
    const position = positions[at];
    const row = loop.rows[position];
    if (position === previous + 1) steps[steps.length - 1][1] = row;
    else steps.push([row, row]);
    previous = position;
  }
  return { ...NO_STEPS, steps, loop: loop.number || undefined };
}

/** The steps from one position to another as a selection, however many there are. */
export function selectionOfRange(loop: Loop, first: number, last: number): StepSelection {
  return { ...NO_STEPS, steps: [[loop.rows[first], loop.rows[last]]], loop: loop.number || undefined };
}

/** The steps of these bins as a selection. */
export function selectionOfBins(loop: Loop, { edges }: Histogram, first: number, last: number): StepSelection {
  return { ...NO_STEPS, stepTime: [Math.floor(edges[first]), Math.ceil(edges[last + 1])], loop: loop.number || undefined };
}

/** All steps of a class as a selection. */
export function selectionOfClass(loop: Loop, stepClass: StepClass): StepSelection {
  return { ...NO_STEPS, stepClass, loop: loop.number || undefined };
}

/** Whether a selection says anything about steps. */
export function selectsSteps(selection: StepSelection): boolean {
  return selection.steps !== undefined || selection.stepClass !== undefined || selection.stepTime !== undefined;
}

/**
 * Which steps of a loop are selected, 1 each. With steps or a class these; else those that a selected range of time meets.
 * Nothing selected: none.
 */
export function selectedSteps(loop: Loop, selection: StepSelection): Uint8Array {
  const found = new Uint8Array(loop.rows.length);
  const { from = -Infinity, to = Infinity, steps, stepClass, stepTime } = selection;
  const hasRange = selection.from !== undefined || selection.to !== undefined;
  if (!selectsSteps(selection) && !hasRange) return found;
  if (selectsSteps(selection) && (selection.loop ?? 0) !== loop.number) return found;
  const mark = stepClass ? MARK[stepClass] : 0;
  const ranges = steps ?? [];
  for (let position = 0; position < found.length; position++) {
    const isMet = loop.end[position] > from && loop.start[position] < to;
    const isOfClass = !stepClass || (loop.marks[position] & mark) !== 0;
    const isOfTime = !stepTime || (loop.work[position] >= stepTime[0] && loop.work[position] <= stepTime[1] && counts(loop, position));
    found[position] = isMet && isOfClass && isOfTime && (!steps || isInRanges(ranges, loop.rows[position])) ? 1 : 0;
  }
  return found;
}

function isInRanges(ranges: [number, number][], row: number): boolean {
  if (ranges.length < 8 || !areOrdered(ranges)) return ranges.some(([first, last]) => row >= first && row <= last);
  let [low, high] = [0, ranges.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ranges[middle][1] < row) low = middle + 1;
    else high = middle;
  }
  return low < ranges.length && ranges[low][0] <= row;
}

const ordered = new WeakMap<[number, number][], boolean>();
function areOrdered(ranges: [number, number][]): boolean {
  let known = ordered.get(ranges);
  if (known === undefined) {
    known = ranges.every(([first], at) => at === 0 || first > ranges[at - 1][1]);
    ordered.set(ranges, known);
  }
  return known;
}

/** Times of the selected steps, in order, none overlapping another. Neighbours are joined. */
export interface Intervals {
  start: Float64Array;
  end: Float64Array;
}

/** The times of the steps that a selection names; `undefined` if it names none. For whatever adds up by time. */
export function stepIntervals(steps: Table, selection: StepSelection): Intervals | undefined {
  if (!selectsSteps(selection)) return undefined;
  const loop = loopsOf(steps).find(({ number }) => number === (selection.loop ?? 0));
  const [start, end]: [number[], number[]] = [[], []];
  if (loop) {
    selectedSteps(loop, selection).forEach((is, position) => {
      if (!is) return;
      // A step ends at the latest where the next one of its loop starts.
      const until = Math.min(loop.end[position], loop.start[position + 1] ?? Infinity);
      if (end.length > 0 && end[end.length - 1] === loop.start[position]) end[end.length - 1] = until;
      else {
        start.push(loop.start[position]);
        end.push(until);
      }
    });
  }
  return { start: Float64Array.from(start), end: Float64Array.from(end) };
}

/** Figures of some steps of a loop. */
export interface StepFigures {
  count: number;
  /** How many of them are in the page. */
  shown: number;
  /** Sum of the durations, with pacing. */
  total: number;
  /** Quantiles without pacing. */
  median: number;
  p95: number;
  p99: number;
  longest: number;
  /** Position of the longest step; -1 if there is none. */
  longestAt: number;
  stalls: number;
  /** Over the whole time from the first to the last of them; `undefined` where it is unknown. */
  realTimeFactor: number | undefined;
}

export function figuresOf(loop: Loop, isSelected: Uint8Array): StepFigures {
  let filled = 0;
  const positions = new Uint32Array(isSelected.reduce((sum, is) => sum + is, 0));
  isSelected.forEach((is, position) => is && (positions[filled++] = position));
  let [count, total, longestAt, stalls] = [0, 0, -1, 0];
  for (const position of positions) {
    const stands = loop.stands[position];
    count += stands;
    total += (loop.end[position] - loop.start[position]) * stands;
    if (longestAt < 0 || loop.work[position] > loop.work[longestAt]) longestAt = position;
    if (loop.marks[position] & MARK.stall) stalls += stands;
  }
  const [first, last] = [positions[0], positions[positions.length - 1]];
  const isWhole = count > 0 && last - first + 1 === positions.length;
  const times = quantilesOf(loop, positions, count);
  return {
    count,
    shown: positions.length,
    total,
    median: times(0.5),
    p95: times(0.95),
    p99: times(0.99),
    longest: times(1),
    longestAt,
    stalls,
    realTimeFactor: isWhole ? realTimeFactor(loop, Math.max(0, first - 1), last) : undefined,
  };
}

/** Quantiles of the work of these steps, each as often as it stands for steps. */
function quantilesOf(loop: Loop, positions: Uint32Array, count: number): (share: number) => number {
  if (count === positions.length) {
    const times = Float64Array.from(positions, (position) => loop.work[position]).sort();
    return (share) => (count === 0 ? NaN : times[Math.max(0, Math.ceil(count * share) - 1)]);
  }
  const ordered = positions.slice().sort((a, b) => loop.work[a] - loop.work[b]);
  const upTo = new Float64Array(ordered.length);
  ordered.forEach((position, at) => (upTo[at] = (upTo[at - 1] ?? 0) + loop.stands[position]));
  return (share) => loop.work[ordered[upTo.findIndex((steps) => steps >= Math.ceil(count * share))]];
}
