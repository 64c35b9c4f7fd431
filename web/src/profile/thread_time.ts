// What the thread of a loop did in some of its steps: for how long it ran, waited for a CPU and was blocked, and where it waited longest.

import { integers, numbers, type Table } from "./columns.ts";
import { loopsOf, selectedSteps, type StepSelection } from "./steps.ts";

/** State of waits of threads that wait for a CPU. */
const WAITING_FOR_CPU = 0;
/** The part of a wait that the rest of a step's pacing has to have for the wait to be pacing. */
const NEARLY = 0.9;

export interface ThreadTime {
  thread: number;
  steps: number;
  /** Sums over the steps, in ns. */
  total: number;
  /** Waiting for the time of the next step. */
  pacing: number;
  running: number;
  runnable: number;
  /** By state of waits, without pacing. */
  blocked: Float64Array;
  /** The longest wait in one step, pacing left out. */
  longest: LongestWait | undefined;
}

export interface LongestWait {
  state: number;
  start: number;
  /** How much of it is in the step. */
  time: number;
  stack: number;
}

interface Part {
  state: number;
  start: number;
  time: number;
  stack: number;
  /** Whether no thread ended it, as if a timer did. */
  isTimed: boolean;
}

/** Of the selected steps. `undefined` without any. `sleep` is the state of waits for a time; `states` is the number of states. */
export function threadTime(steps: Table, waits: Table, selection: StepSelection, states: number, sleep: number): ThreadTime | undefined {
  const loop = steps.rows > 0 ? loopsOf(steps).find(({ number }) => number === (selection.loop ?? 0)) : undefined;
  const selected = loop && selectedSteps(loop, selection);
  if (!loop || !selected?.includes(1)) return undefined;
  const found: ThreadTime = { thread: loop.thread, steps: 0, total: 0, pacing: 0, running: 0, runnable: 0, blocked: new Float64Array(states), longest: undefined };
  const ofThread = waitsOf(waits, loop.thread);
  let first = 0;
  selected.forEach((is, position) => {
    const [start, end] = [loop.start[position], loop.end[position]];
    while (first < ofThread.length && ofThread[first].end <= start) first++;
    if (!is) return;
    const parts: Part[] = [];
    for (let at = first; at < ofThread.length && ofThread[at].start < end; at++) parts.push(...partsOf(ofThread[at], start, end));
    addStep(found, parts, end - start, end - start - loop.work[position], sleep);
  });
  return found;
}

interface ThreadWait {
  start: number;
  end: number;
  /** When it was woken. */
  woken: number;
  state: number;
  stack: number;
  isTimed: boolean;
}

/** The waits of a thread, by start: a thread waits for one thing at a time. */
function waitsOf(waits: Table, of: number): ThreadWait[] {
  if (waits.rows === 0) return [];
  const [thread, state, stack, waker] = ["thread", "state", "stack", "waker"].map((name) => integers(waits, name));
  const [starts, ends, runnable] = ["start", "end", "runnable"].map((name) => numbers(waits, name));
  const found: ThreadWait[] = [];
  for (let row = 0; row < waits.rows; row++) {
    if (thread[row] !== of) continue;
    const [start, end] = [starts[row], ends[row]];
    found.push({ start, end, woken: Math.max(start, end - Math.max(0, runnable[row])), state: state[row], stack: stack[row], isTimed: waker[row] < 0 });
  }
  return found;
}

/** Blocked until woken, then waiting for a CPU: as far as it is in a range of time. */
function partsOf({ start, end, woken, state, stack, isTimed }: ThreadWait, from: number, to: number): Part[] {
  const part = (state: number, start: number, end: number): Part => {
    const inside = Math.max(start, from);
    return { state, start: inside, time: Math.min(end, to) - inside, stack, isTimed };
  };
  const parts = state === WAITING_FOR_CPU ? [part(WAITING_FOR_CPU, start, end)] : [part(state, start, woken), part(WAITING_FOR_CPU, woken, end)];
  return parts.filter(({ time }) => time > 0);
}

function addStep(sum: ThreadTime, parts: Part[], total: number, pacing: number, sleep: number): void {
  sum.steps++;
  sum.total += total;
  sum.running += total - parts.reduce((sum, { time }) => sum + time, 0);
  // Which waits are pacing is not in the tables, but how long they are in all.
  let paced = pacing;
  const longestFirst = parts.sort((a, b) => b.time - a.time);
  for (const { state, start, time, stack, isTimed } of longestFirst) {
    if (state === WAITING_FOR_CPU) sum.runnable += time;
    else if ((state === sleep || isTimed) && paced >= time * NEARLY) {
      paced -= time;
      sum.pacing += time;
      continue;
    } else if (state < sum.blocked.length) sum.blocked[state] += time;
    if (time > (sum.longest?.time ?? 0)) sum.longest = { state, start, time, stack };
  }
}

/** Whether steps take longer than others mostly because their thread does not run. */
export function isMostlyWaiting(long: ThreadTime, usual: ThreadTime): boolean {
  const perStep = (of: ThreadTime, time: number) => time / Math.max(1, of.steps);
  const extra = perStep(long, long.total - long.pacing) - perStep(usual, usual.total - usual.pacing);
  const running = perStep(long, long.running) - perStep(usual, usual.running);
  return extra > 0 && running < extra / 2;
}
