// The selection in words: how many steps, how long, RTF, the slowest.

import { useMemo } from "preact/hooks";
import { countOf, figuresOf, loopsOf, MARK, selectedSteps, selectionOf } from "../../profile/steps.ts";
import { grouped, weight } from "../../units.ts";
import { useTable } from "../answers.ts";
import { entry, link, selection } from "../state.ts";
import { stepText } from "./bars.tsx";

export function SelectionDetails() {
  const table = useTable("steps");
  const loop = table && loopsOf(table).find(({ number }) => number === (selection.value.loop ?? 0));
  const isSelected = useMemo(() => loop && selectedSteps(loop, selection.value), [loop, selection.value]);
  const { from, to } = selection.value;
  const hasSteps = isSelected?.includes(1) ?? false;
  const figures = useMemo(() => loop && figuresOf(loop, hasSteps ? isSelected! : loop.marks.map((marks) => (marks & MARK.first ? 0 : 1))), [loop, isSelected, hasSteps]);
  if (!loop || !figures) {
    if (from === undefined || to === undefined) return null;
    return <p class="soft">{weight(to - from, "ns")} of {weight(entry.value?.duration ?? 0, "ns")} are selected.</p>;
  }
  const { steps } = selectionOf(loop, [figures.longestAt]);
  return (
    <section class="step-details" aria-label="Selected steps">
      <h3>{hasSteps ? (figures.count === 1 ? "1 step selected" : `${grouped(figures.count)} steps selected`) : `All ${grouped(countOf(loop))} steps`}</h3>
      <dl>
        {hasSteps && figures.count === 1 ? (
          <>
            <dt>Step</dt>
            <dd>{stepText(loop, figures.longestAt)}</dd>
            <dt>Start</dt>
            <dd>{weight(loop.start[figures.longestAt], "ns")}</dd>
          </>
        ) : (
          <>
            <dt>Time</dt>
            <dd>
              {weight(figures.total, "ns")} ({percentOf(figures.total, entry.value?.duration ?? 0)} of the recording)
            </dd>
            <dt>Median</dt>
            <dd>{weight(figures.median, "ns")}</dd>
            <dt>p95, p99</dt>
            <dd>
              {weight(figures.p95, "ns")}, {weight(figures.p99, "ns")}
            </dd>
            <dt>Longest</dt>
            <dd>
              <a href={link({ selection: { steps: steps! } })}>{stepText(loop, figures.longestAt)}</a>
            </dd>
            <dt>Stalls</dt>
            <dd>{grouped(figures.stalls)}</dd>
          </>
        )}
        {figures.realTimeFactor !== undefined && (
          <>
            <dt>RTF</dt>
            <dd>{figures.realTimeFactor.toFixed(2)}</dd>
          </>
        )}
      </dl>
    </section>
  );
}

function percentOf(part: number, whole: number): string {
  return whole > 0 ? weight((part / whole) * 100, "percent") : "-";
}
