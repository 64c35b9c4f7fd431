// The step strip: each step of the recording as a bar, and a histogram of their times. What is selected here is what all
// other parts show.

import { useMemo } from "preact/hooks";
import { START } from "../../profile/address.ts";
import type { Table } from "../../profile/columns.ts";
import { threadNames } from "../../profile/lanes.ts";
import { isMostlyWaiting } from "../../profile/thread_time.ts";
import {
  budgetOf, countMarked, countOf, figuresOf, loopsOf, MARK, medianOf, nextMarked, realTimeFactor, selectedSteps, selectionOf, selectionOfBins, selectionOfClass,
  selectionOfRange, spanAround, type Loop, type StepClass,
} from "../../profile/steps.ts";
import { counted, grouped, weight } from "../../units.ts";
import { useTable, useTableAnswer } from "../answers.ts";
import { useCommands, useLocalKeys, type Command, type LocalKeys } from "../commands.ts";
import { adjust, adjustSelection, capture, entry, go, goToCompare, hovered, lastPart, select, selection, span, weight as shownWeight } from "../state.ts";
import { askThreadTime } from "./asked.ts";
import { StepBars } from "./bars.tsx";
import { clearSteps } from "./clear.ts";
import { CpuUse } from "./cpu.tsx";
import { StepHistogram } from "./histogram.tsx";
import { StepsTable } from "./table.tsx";

const HEIGHT = 118;

export function StepStrip() {
  const { answer: table, failure } = useTableAnswer("steps");
  const rows = entry.value?.tables["steps"] ?? 0;
  if (failure) return <p class="failure">The steps failed: {failure}</p>;
  if (!table && rows > 0) return <p class="empty" role="status">Reading the steps...</p>;
  if (!table || table.rows === 0) return <CpuUse />;
  return <OfTable table={table} />;
}

const LOCAL_KEYS: LocalKeys[] = [
  { title: "Step before, after", group: "Steps", keys: ["ArrowLeft", "ArrowRight"] },
  { title: "The same, as a range", group: "Steps", keys: ["Shift+ArrowLeft", "Shift+ArrowRight"] },
  { title: "Some steps before, after", group: "Steps", keys: ["PageUp", "PageDown"] },
  { title: "First, last step", group: "Steps", keys: ["Home", "End"] },
  { title: "Zoom in, out, to all", group: "Steps", keys: ["+", "-", "0"] },
];

function OfTable({ table }: { table: Table }) {
  const loops = useMemo(() => loopsOf(table), [table, table.rows]);
  const loop = loops.find(({ number }) => number === (selection.value.loop ?? 0)) ?? loops[0];
  const selected = useMemo(() => selectedSteps(loop, selection.value), [loop, selection.value]);
  const [from, to] = useMemo(() => shownPositions(loop), [loop, span.value, lastPart.value]);
  useCommands(useMemo(() => commandsOf(loop), [loop]));
  useLocalKeys(LOCAL_KEYS);
  const zoom = (from: number, to: number) => {
    const isAll = from <= 0 && to >= loop.rows.length;
    adjust({ span: isAll ? undefined : { from: loop.start[from], to: loop.end[to - 1] } });
  };
  return (
    <div class="step-strip">
      <Header loop={loop} loops={loops} />
      <div class="step-pictures">
        <StepBars
          loop={loop}
          from={from}
          to={to}
          selected={selected}
          height={HEIGHT}
          label="Steps. Arrow keys choose a step, with Shift a range; plus and minus zoom."
          onSelect={(first, last, isDone) => (isDone ? select : adjustSelection)(selectionOfRange(loop, first, last))}
          onClear={clearSteps}
          onHover={(position) => (hovered.value = position === undefined ? {} : { step: loop.rows[position], time: loop.start[position] })}
          onZoom={zoom}
        />
        <StepHistogram loop={loop} selected={selected} height={HEIGHT} onSelect={(histogram, first, last) => select(selectionOfBins(loop, histogram, first, last))} />
      </div>
      <StepsTable loop={loop} />
    </div>
  );
}

/** Positions of the steps that the timeline shows; all of them if it shows the whole recording. */
function shownPositions(loop: Loop): [number, number] {
  const count = loop.rows.length;
  const shown = span.value ?? lastPart.value;
  if (!shown) return [0, count];
  const { from, to } = shown;
  const first = loop.end.findIndex((end) => end > from);
  if (first < 0) return [0, count];
  let last = first;
  while (last < count && loop.start[last] < to) last++;
  return last > first ? [first, last] : [0, count];
}

/** Steps that "next slow step" visits: slow ones and stalls. */
const NOTABLE = MARK.slow | MARK.stall;

/** Selects the next or previous slow step, and brings it into view. */
function visit(loop: Loop, direction: -1 | 1): void {
  const selected = selectedSteps(loop, selection.peek());
  const place = direction > 0 ? selected.lastIndexOf(1) : selected.indexOf(1);
  const isOne = place >= 0 && selected.indexOf(1) === selected.lastIndexOf(1);
  const start = direction > 0 ? -1 : loop.rows.length;
  const marks = loop.marks.some((marks) => marks & NOTABLE) ? NOTABLE : 0;
  const next = nextMarked(loop, isOne ? place : start, marks, direction) ?? nextMarked(loop, start, marks, direction);
  if (next === undefined) return;
  const duration = entry.peek()?.duration ?? 0;
  const around = spanAround(loop, next, span.peek() ?? { from: 0, to: duration }, duration);
  const isAll = around.from <= 0 && around.to >= duration;
  go({ selection: { ...withoutSteps(), ...defined(selectionOf(loop, [next])) }, span: isAll ? undefined : around });
}

function withoutSteps() {
  const { steps: _, stepClass: __, stepTime: ___, from: ____, to: _____, ...others } = selection.peek();
  return others;
}

/** Without the entries that are `undefined`. */
function defined<T extends object>(parts: T): { [Key in keyof T]?: NonNullable<T[Key]> } {
  return Object.fromEntries(Object.entries(parts).filter(([, value]) => value !== undefined)) as { [Key in keyof T]?: NonNullable<T[Key]> };
}

/** Opens the difference of slow steps against typical steps: if slow steps mostly wait longer, of the loop's thread, with its time off the CPU. */
async function compareSlow(): Promise<void> {
  const ofClass = (stepClass: StepClass) => askThreadTime({ capture: capture.peek(), stepClass });
  const [slow, typical] = await Promise.all([ofClass("slow"), ofClass("typical")]);
  const isWaiting = slow?.time && typical?.time && shownWeight.peek() === START.weight && isMostlyWaiting(slow.time, typical.time);
  // Other threads may wait for work all the time, which would be most of the picture.
  const [threads, more] = isWaiting ? [{ threads: [slow.time!.thread] }, { weight: "wall" }] : [{}, {}];
  goToCompare({ stepClass: "slow", ...threads }, { stepClass: "typical", ...threads }, more);
}

function commandsOf(loop: Loop): Command[] {
  const group = "Steps";
  const has = (mark: number) => loop.marks.some((marks) => marks & mark);
  const commands: Command[] = [];
  if (has(NOTABLE)) {
    commands.push({ title: "Next slow step", group, keys: ["n"], run: () => visit(loop, 1) });
    commands.push({ title: "Previous slow step", group, keys: ["p"], run: () => visit(loop, -1) });
  }
  if (has(MARK.slow) && has(MARK.typical)) commands.push({ title: "Compare slow steps with typical steps", group, keys: ["v"], run: () => void compareSlow() });
  for (const { stepClass, title } of CLASSES) {
    if (has(MARK[stepClass])) commands.push({ title: `Select ${title}`, group, run: () => select(selectionOfClass(loop, stepClass)) });
  }
  return commands;
}

const CLASSES: { stepClass: StepClass; title: string; chip: string; about: string }[] = [
  { stepClass: "stall", title: "all stalls", chip: "Stalls", about: "Steps of more than twice the median of the 15 steps on either side." },
  { stepClass: "slow", title: "slow steps", chip: "Slow", about: "Steps beyond a gap in the step times, on the upper of two levels, or the slowest 5 %." },
  { stepClass: "typical", title: "typical steps", chip: "Typical", about: "The middle fifth of the steps; with two levels, of the lower level." },
  { stepClass: "lower", title: "steps on the lower level", chip: "Lower level", about: "Step times have two levels. These are the shorter steps." },
  { stepClass: "upper", title: "steps on the upper level", chip: "Upper level", about: "Step times have two levels. These are the longer steps." },
];

/** Whether some steps wait for the time of the next one. */
function isPaced(loop: Loop): boolean {
  return loop.work.some((work, position) => work < loop.end[position] - loop.start[position]);
}

function Header({ loop, loops }: { loop: Loop; loops: Loop[] }) {
  const figures = useMemo(() => figuresOf(loop, loop.marks.map((marks) => (marks & MARK.first ? 0 : 1))), [loop]);
  const budget = useMemo(() => budgetOf(loop), [loop]);
  const factor = realTimeFactor(loop, 0, loop.rows.length - 1);
  const slow = countMarked(loop, NOTABLE);
  const isComparable = countMarked(loop, MARK.slow) > 0 && countMarked(loop, MARK.typical) > 0;
  return (
    <div class="step-header">
      <h3>Steps</h3>
      {loops.length > 1 && <LoopChooser loop={loop} loops={loops} />}
      <span class="soft step-figures">
        {grouped(countOf(loop))} · median {weight(figures.median, "ns")} · p99 {weight(figures.p99, "ns")}
        {isPaced(loop) && <span title="Time in which the loop waits for the next step is left out."> without pacing</span>}
        {factor !== undefined && ` · RTF ${factor.toFixed(2)}`}
        {budget !== undefined && ` · budget ${weight(budget, "ns")}`}
      </span>
      <span class="step-buttons" role="group" aria-label="Select steps">
        {CLASSES.filter(({ stepClass }) => stepClass !== "typical").map((one) => (
          <ClassButton key={one.stepClass} loop={loop} {...one} />
        ))}
        {slow > 0 && (
          <>
            <button onClick={() => visit(loop, -1)} title="Previous slow step (p)" aria-label="Previous slow step">
              ‹
            </button>
            <button onClick={() => visit(loop, 1)} title="Next slow step (n)">
              Next slow step ›
            </button>
          </>
        )}
        {isComparable && (
          <button onClick={() => void compareSlow()} title="Differential flame graph of slow steps against typical steps (v)">
            Slow against typical
          </button>
        )}
      </span>
    </div>
  );
}

function ClassButton({ loop, stepClass, chip, about }: { loop: Loop } & (typeof CLASSES)[number]) {
  const steps = useMemo(() => loop.work.filter((_, position) => loop.marks[position] & MARK[stepClass]), [loop, stepClass]);
  if (steps.length === 0) return null;
  const isOn = selection.value.stepClass === stepClass && (selection.value.loop ?? 0) === loop.number;
  const time = stepClass === "lower" || stepClass === "upper" ? ` ${weight(medianOf(steps), "ns")}` : "";
  return (
    <button class={`mark-${stepClass}`} aria-pressed={isOn} title={about} onClick={() => (isOn ? clearSteps() : select(selectionOfClass(loop, stepClass)))}>
      {chip}
      {time} <span class="soft">{grouped(steps.length)}</span>
    </button>
  );
}

/** Steps of several threads that overlap are several loops. */
function LoopChooser({ loop, loops }: { loop: Loop; loops: Loop[] }) {
  const threads = useTable("threads");
  const names = threadNames(threads);
  const nameOf = (loop: Loop) => `${names[loop.thread] ?? "?"} (${counted(countOf(loop), "step")})`;
  const choose = (number: number) => select({ loop: number || undefined, steps: undefined, stepClass: undefined, stepTime: undefined });
  return (
    <select aria-label="Loop" value={loop.number} onChange={(event) => choose(Number(event.currentTarget.value))}>
      {loops.map((one) => (
        <option key={one.number} value={one.number}>
          {nameOf(one)}
        </option>
      ))}
    </select>
  );
}
