// Two captures, or two selections of steps, side by side: what changed, both strips on one scale, the differential flame
// graph, and the tables of the comparison.

import { useMemo } from "preact/hooks";
import type { CaptureEntry } from "../../profile/columns.ts";
import type { DocumentSection } from "../../profile/document.ts";
import type { Picked } from "../../profile/address.ts";
import { threadNames } from "../../profile/lanes.ts";
import { countOf, figuresOf, loopsOf, MARK, scaleOf, selectedSteps, selectionOfRange, selectsSteps, STEP_CLASSES, type Loop, type StepClass, type StepFigures } from "../../profile/steps.ts";
import type { Verdict } from "../../tree.ts";
import { counted, grouped, weight } from "../../units.ts";
import { useAnswer } from "../answers.ts";
import { captureName } from "../capture_name.ts";
import { useCommands, type Command } from "../commands.ts";
import { report, sections } from "../links.ts";
import { isAnalysing } from "../loading.tsx";
import { Prose } from "../prose.tsx";
import { adjust, against, base, capture, go, manifest, selection } from "../state.ts";
import { StepBars } from "../strip/bars.tsx";
import { Section } from "../tables/tables.tsx";
import { DifferenceGraph } from "./graph.tsx";
import { after, before, namesOf, shown, type Side } from "./sides.ts";

/** Anchors of the comparison's sections start with this; several comparisons have it below sections of their own. */
const OURS = /(^|\/)compare-/;

export function Compare() {
  const [one, other] = [after.value, before.value];
  useCommands(COMMANDS);
  if (!one || !other) return <p class="empty">There is nothing to compare with: the page has one capture.</p>;
  return <Sides after={one} before={other} />;
}

const COMMANDS: Command[] = [{ title: "Swap the sides", group: "Comparison", keys: ["x"], run: swap }];

function swap(): void {
  const [one, other] = [after.value, before.value];
  if (one && other) go({ capture: other.capture, base: one.capture, selection: other.selection, against: one.selection, zoom: "" });
}

function Sides({ after, before }: { after: Side; before: Side }) {
  const loops = [useLoop(after), useLoop(before)] as const;
  const selected = [useSelected(loops[0], after.selection), useSelected(loops[1], before.selection)] as const;
  const figures = [useFigures(loops[0], selected[0]), useFigures(loops[1], selected[1])] as const;
  const names = namesOf(after, before);
  const both = loops.filter((loop) => loop !== undefined);
  const most = Math.max(...both.map(scaleOf));
  const steps = Math.max(...both.map((loop) => loop.rows.length));
  const isPerStep = figures.every((one) => one !== undefined && one.count > 0);
  const seconds = (side: Side) => ((side.selection.to ?? side.entry.duration) - (side.selection.from ?? 0)) / 1e9;
  const divisors: [number, number] = isPerStep ? [countedSteps(after, figures[0]!), countedSteps(before, figures[1]!)] : [seconds(after), seconds(before)];
  const isReported = isOfReport(after, before);
  const verdicts = useMemo(() => (isReported ? verdictsOf() : undefined), [isReported, report.value]);
  const isLoading = (side: Side, loop: Loop | undefined) => (side.entry.tables["steps"] ?? 0) > 0 && !loop;
  return (
    <div class="compare">
      <header>
        <Sentence names={names} figures={figures} reported={isReported ? reportedSentence() : ""} />
        <OfThreads after={after} before={before} />
      </header>
      <Strip side={before} name={names[1]} loop={loops[1]} selected={selected[1]} figures={figures[1]} most={most} steps={steps} select={(picked) => go(shown({ before: picked }))} />
      <Strip side={after} name={names[0]} loop={loops[0]} selected={selected[0]} figures={figures[0]} most={most} steps={steps} select={(picked) => go(shown({ after: picked }))} />
      <Choices loops={both} />
      {!isLoading(after, loops[0]) && !isLoading(before, loops[1]) && (
        <section class="difference-of" aria-label="Differential flame graph">
          <DifferenceGraph after={after} before={before} names={names} divisors={divisors} per={isPerStep ? "step" : "second"} verdicts={verdicts} />
        </section>
      )}
      <Tables />
    </div>
  );
}

/** Whether what the report says of its comparison is about these sides: all steps of two variants, or of the only two runs, of one scenario and phase. */
function isOfReport(after: Side, before: Side): boolean {
  if (selectsSteps(after.selection) || selectsSteps(before.selection) || after.capture === before.capture) return false;
  const isAlike = ({ scenario, phase }: CaptureEntry) => scenario === after.entry.scenario && phase === after.entry.phase;
  return isAlike(before.entry) && (after.entry.variant !== before.entry.variant || manifest.value.captures.filter(isAlike).length === 2);
}

function useLoop(side: Side): Loop | undefined {
  const rows = side.entry.tables["steps"] ?? 0;
  const { answer } = useAnswer("table", rows > 0 ? { capture: side.capture, name: "steps" } : undefined, rows);
  return useMemo(() => {
    const loops = answer ? loopsOf(answer) : [];
    return loops.find(({ number }) => number === (side.selection.loop ?? 0)) ?? loops[0];
  }, [answer, side.selection.loop]);
}

function useSelected(loop: Loop | undefined, picked: Picked): Uint8Array | undefined {
  return useMemo(() => loop && selectedSteps(loop, picked), [loop, picked]);
}

/** How many steps a side's weight is of: a selection of steps weighs what the page has of them. */
function countedSteps(side: Side, figures: StepFigures): number {
  return selectsSteps(side.selection) ? figures.shown : figures.count;
}

/** Of the selected steps; of all but the first if none is selected. */
function useFigures(loop: Loop | undefined, selected: Uint8Array | undefined): StepFigures | undefined {
  return useMemo(() => {
    if (!loop || !selected) return undefined;
    return figuresOf(loop, selected.includes(1) ? selected : new Uint8Array(loop.rows.length).fill(1));
  }, [loop, selected]);
}

/** What changed, as the report says: of a run with several variants in its section, of a comparison below the title. */
function reportedSentence(): string {
  const ofRun = sections.value.get("comparison")?.section.notes[0]?.text;
  return ofRun ?? (comparisonSections().length > 0 ? report.value.subtitle : "");
}

function comparisonSections(): DocumentSection[] {
  return [...sections.value.values()].map(({ section }) => section).filter(({ anchor }) => OURS.test(anchor));
}

/** What changed. Where the page has no comparison of repeated runs, it says what the recordings show and no more. */
function Sentence({ names, figures, reported }: { names: [string, string]; figures: readonly [StepFigures | undefined, StepFigures | undefined]; reported: string }) {
  const [now, then] = figures;
  const isOneRecording = capture.value === base.value;
  const ratio = now && then && then.median > 0 ? now.median / then.median : undefined;
  return (
    <>
      <h2>
        {sentenceCase(names[0])} against {names[1]}
      </h2>
      {reported && (
        <p class="sentence">
          <Prose text={reported} />
        </p>
      )}
      {now && then && ratio !== undefined && !reported && (
        <p class="sentence">
          Median step {weight(then.median, "ns")} → {weight(now.median, "ns")}: ×{ratio.toFixed(2)}; p99 {weight(then.p99, "ns")} → {weight(now.p99, "ns")}.{" "}
          {isOneRecording || isAnalysing.value ? null : (
            <span class="soft">
              One recording of each. <code>stepscope ab</code> repeats the runs and shows what is significant.
            </span>
          )}
        </p>
      )}
    </>
  );
}

/** Says of which threads the difference is, if it is not of all. */
function OfThreads({ after, before }: { after: Side; before: Side }) {
  const { threads } = after.selection;
  const { answer } = useAnswer("table", threads ? { capture: after.capture, name: "threads" } : undefined);
  if (!threads) return null;
  const names = threadNames(answer);
  const others = ({ threads: _, ...others }: Picked): Picked => others;
  return (
    <p class="of-threads">
      Only {threads.length === 1 ? "thread" : "threads"} {threads.map((thread) => names[thread] ?? `#${thread}`).join(", ")}.{" "}
      <button onClick={() => go(shown({ after: others(after.selection), before: others(before.selection) }))}>All threads</button>
    </p>
  );
}

interface StripProps {
  side: Side;
  name: string;
  loop: Loop | undefined;
  selected: Uint8Array | undefined;
  figures: StepFigures | undefined;
  most: number;
  steps: number;
  select(picked: Picked): void;
}

function Strip({ side, name, loop, selected, figures, most, steps, select }: StripProps) {
  const { captures } = manifest.value;
  const isAfter = side.role === "after";
  const choose = (index: number) => go(isAfter ? { ...shown({ after: {} }), capture: index } : { ...shown({ before: {} }), base: index });
  const pick = (first: number, last: number): Picked => defined({ ...side.selection, ...selectionOfRange(loop!, first, last) });
  return (
    <section class="side" aria-label={isAfter ? "After" : "Before"}>
      <div class="step-header">
        <b>{capture.value === base.value ? sentenceCase(name) : isAfter ? "After" : "Before"}</b>
        {captures.length > 1 && (
          <select aria-label={isAfter ? "Capture after" : "Capture before"} value={side.capture} onChange={(event) => choose(Number(event.currentTarget.value))}>
            {captures.map((entry, index) => (
              <option key={index} value={index}>
                {captureName(entry, captures)}
              </option>
            ))}
          </select>
        )}
        {figures && (
          <span class="soft">
            {selected?.includes(1) ? `${grouped(figures.count)} of ${counted(countOf(loop!), "step")}` : counted(figures.count, "step")} · median {weight(figures.median, "ns")} · p99{" "}
            {weight(figures.p99, "ns")}
            {figures.realTimeFactor !== undefined && ` · RTF ${figures.realTimeFactor.toFixed(2)}`}
          </span>
        )}
        {selected?.includes(1) && <button onClick={() => select(withoutSteps(side.selection))}>All steps</button>}
      </div>
      {loop && selected ? (
        <StepBars
          loop={loop}
          from={0}
          to={loop.rows.length}
          selected={selected}
          most={most}
          steps={steps}
          height={92}
          label={`Steps of ${name}. Arrow keys choose a step, with Shift a range.`}
          onSelect={(first, last, isDone) => {
            if (isDone) select(pick(first, last));
            else adjust(shown(isAfter ? { after: pick(first, last) } : { before: pick(first, last) }));
          }}
          onClear={() => select(withoutSteps(side.selection))}
        />
      ) : (
        <p class="soft no-steps">No steps were recorded: both sides are compared per second.</p>
      )}
    </section>
  );
}

/** Words begin with a capital; identifiers stay as they are. */
function sentenceCase(text: string): string {
  return /^[a-z][a-z ]*(:|$)/.test(text) ? text.charAt(0).toUpperCase() + text.slice(1) : text;
}

function withoutSteps({ steps: _, stepClass: __, stepTime: ___, from: ____, to: _____, ...others }: Picked): Picked {
  return others;
}

function defined(parts: { [Key in keyof Picked]?: Picked[Key] | undefined }): Picked {
  return Object.fromEntries(Object.entries(parts).filter(([, value]) => value !== undefined)) as Picked;
}

const CHOICES: Record<StepClass, string> = { slow: "Slow steps", typical: "Typical steps", stall: "Stalls", lower: "Lower level", upper: "Upper level" };

/** Selects the same class on both sides, or slow against typical steps. */
function Choices({ loops }: { loops: Loop[] }) {
  const has = (stepClass: StepClass) => loops.length > 0 && loops.every((loop) => loop.marks.some((marks) => marks & MARK[stepClass]));
  const both = (stepClass: StepClass | undefined) => {
    const picked = defined({ ...withoutSteps(selection.value), stepClass });
    go({ ...shown({ after: picked }), against: undefined });
  };
  const isOne = capture.value === base.value;
  const current = against.value === undefined ? selection.value.stepClass : undefined;
  return (
    <div class="step-buttons" role="group" aria-label="Steps of both sides">
      {!isOne && (
        <>
          <span class="soft">Both sides:</span>
          <button aria-pressed={current === undefined && against.value === undefined && !selectsSteps(selection.value)} onClick={() => both(undefined)}>
            All steps
          </button>
          {STEP_CLASSES.filter(has).map((stepClass) => (
            <button key={stepClass} aria-pressed={current === stepClass} onClick={() => both(stepClass)}>
              {CHOICES[stepClass]}
            </button>
          ))}
        </>
      )}
      <button onClick={swap} title="Swap the sides (x)">
        Swap
      </button>
    </div>
  );
}

/** The verdicts of the report's functions. */
function verdictsOf(): Map<string, Verdict> | undefined {
  const tables = comparisonSections().flatMap(({ blocks }) => blocks.flatMap((block) => (block.kind === "table" ? [block.table] : [])));
  const table = tables.find(({ name }) => name === "compare_inclusive") ?? tables.find(({ name }) => name === "compare_attributed");
  const column = (name: string) => table?.columns.find((column) => column.name === name)?.values;
  const [functions, verdicts] = [column("function"), column("verdict")];
  if (!functions || !verdicts) return undefined;
  const known = new Map<string, Verdict>();
  functions.forEach((name, row) => {
    if (typeof name === "string" && typeof verdicts[row] === "string") known.set(name, verdicts[row] as Verdict);
  });
  return known;
}

function Tables() {
  const shown = comparisonSections().filter(({ blocks, notes }) => blocks.length + notes.length > 0);
  if (shown.length === 0) return null;
  return (
    <article class="compare-tables">
      {shown.map((section) => (
        <Section key={section.anchor} section={{ ...section, blocks: section.blocks.filter(({ kind }) => kind !== "difference") }} level={2} />
      ))}
    </article>
  );
}
