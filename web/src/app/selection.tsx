// What is selected and which transforms apply, each with a button that undoes it.

import { texts } from "../profile/columns.ts";
import type { Transform } from "../profile/address.ts";
import { threadNames } from "../profile/lanes.ts";
import type { StepClass } from "../profile/steps.ts";
import { fit, formsOf } from "../label.ts";
import { grouped, weight as quantity } from "../units.ts";
import { useTable } from "./answers.ts";
import { Choice } from "./choice.tsx";
import { Icon } from "./icons.tsx";
import { clearSelection, entry, go, last, search, select, selection, transforms, undoTransform } from "./state.ts";

const SAID: Record<Transform["kind"], string> = {
  focus: "Focus",
  path: "Path",
  drop: "Drop",
  merge: "Merge",
  collapse: "Collapse",
  recursion: "Collapse recursion",
  owned: "Owned only",
};

export function SelectionBar() {
  const { from, to, steps, stepClass, stepTime, threads, processes, scopes, states } = selection.value;
  const threadTable = useTable("threads");
  const processNames = useTable("processes");
  const classes = entry.value?.states ?? [];
  const isAll = Object.keys(selection.value).length === 0 && transforms.value.length === 0 && !search.value && last.value === undefined;
  return (
    <div class="selection" role="group" aria-label="Selection">
      {isAll && <span class="hint">The whole recording. {hintOf()}</span>}
      {last.value !== undefined && <Chip kind="Last" text={quantity(last.value, "ns")} undo={() => go({ last: undefined })} />}
      {from !== undefined && to !== undefined && (
        <Chip kind="Time" text={`${quantity(from, "ns")} – ${quantity(to, "ns")} (${quantity(to - from, "ns")})`} undo={() => select({ from: undefined, to: undefined })} />
      )}
      {steps && <Chip kind={steps.length === 1 && steps[0][0] === steps[0][1] ? "Step" : "Steps"} text={rangesText(steps)} undo={() => select({ steps: undefined })} />}
      {stepClass && <Chip kind="Steps" text={CLASSES_SAID[stepClass]} undo={() => select({ stepClass: undefined })} />}
      {stepTime && <Chip kind="Step time" text={stepTime.map((time) => quantity(time, "ns")).join(" – ")} undo={() => select({ stepTime: undefined })} />}
      {processes && <Chip kind="Process" text={named(processes, processNames && texts(processNames, "label"))} undo={() => select({ processes: undefined })} />}
      {threads && <Chip kind="Thread" text={named(threads, threadNames(threadTable))} undo={() => select({ threads: undefined })} />}
      {scopes && <Chip kind="Scope" text={scopes.join(", ")} undo={() => select({ scopes: undefined })} />}
      {states && <Chip kind="State" text={states.map((state) => classes[state] ?? String(state)).join(", ")} undo={() => select({ states: undefined })} />}
      {transforms.value.map(({ kind, name }, index) => (
        <Chip key={index} kind={SAID[kind]} {...chipText(kind, name)} undo={() => undoTransform(index)} />
      ))}
      {search.value && <Chip kind="Search" text={search.value} undo={() => go({ search: "" })} />}
      <Choice />
      {!isAll && (
        <button class="clear" onClick={() => (clearSelection(), go({ transforms: [], search: "" }))}>
          Clear all
        </button>
      )}
    </div>
  );
}

/** What selects a part of what is shown. */
function hintOf(): string {
  const { tables = {} } = entry.value ?? {};
  const strip = (tables["steps"] ?? 0) > 0 ? "steps" : "CPU use";
  return tables["lane_order"] ? `Drag over the ${strip} or the time scale to select a part; over the lanes, drag with Shift.` : `Drag over the ${strip} to select a part.`;
}

const CLASSES_SAID: Record<StepClass, string> = {
  slow: "slow",
  typical: "typical",
  stall: "stalls",
  lower: "on the lower level",
  upper: "on the upper level",
};

/** The first ranges, and how many more there are. */
function rangesText(ranges: [number, number][]): string {
  const more = ranges.length - 3;
  return ranges.slice(0, 3).map(stepsText).join(", ") + (more > 0 ? ` and ${grouped(more)} more ranges` : "");
}

/** A path is written with its hash, which tells a reader nothing. */
function chipText(kind: Transform["kind"], name: string): { text: string; whole: string } {
  const whole = kind === "path" ? name.slice(name.indexOf(".") + 1) : name;
  return { text: fit(formsOf(whole), 48) ?? whole, whole };
}

function stepsText([first, last]: [number, number]): string {
  return first === last ? grouped(first) : `${grouped(first)} – ${grouped(last)}`;
}

/** The first names, and how many more there are. */
function named(rows: number[], names: string[] | undefined): string {
  const shown = rows.slice(0, 3).map((row) => names?.[row] ?? `#${row}`);
  return shown.join(", ") + (rows.length > shown.length ? ` and ${rows.length - shown.length} more` : "");
}

function Chip({ kind, text, whole, undo }: { kind: string; text: string; whole?: string; undo: () => void }) {
  return (
    <span class="chip" title={whole || text}>
      <b>{kind}</b>
      {text && <span>{text}</span>}
      <button aria-label={`Remove: ${kind} ${text}`} onClick={undo}>
        <Icon name="close" />
      </button>
    </span>
  );
}
