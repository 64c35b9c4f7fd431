// The selection in words: how many steps, how long, RTF, the slowest.

import { Fragment } from "preact";
import { useMemo } from "preact/hooks";
import { said } from "../../draw/timeline_lanes.ts";
import { fit, formsOf } from "../../label.ts";
import { threadNames } from "../../profile/lanes.ts";
import { countOf, figuresOf, loopsOf, MARK, selectedSteps, selectionOf } from "../../profile/steps.ts";
import { counted, grouped, weight } from "../../units.ts";
import { useAnswer, useTable } from "../answers.ts";
import { capture, entry, link, selection } from "../state.ts";
import { threadTimeOf } from "./asked.ts";
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
      <h3>{hasSteps ? `${counted(figures.count, "step")} selected` : countOf(loop) === 1 ? "The only step" : `All ${grouped(countOf(loop))} steps`}</h3>
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
      {hasSteps && <OfThread />}
    </section>
  );
}

/** What the loop's thread did in the selected steps, and where it waited longest. */
function OfThread() {
  const threads = useTable("threads");
  const { answer } = useAnswer("threadTime", threadTimeOf({ ...selection.value, capture: capture.value }));
  if (!answer?.time) return null;
  const { thread, steps, total, pacing, running, runnable, blocked, longest } = answer.time;
  const states = entry.value?.states ?? [];
  const name = threadNames(threads)[thread] ?? `#${thread}`;
  const rows: [string, number][] = [
    ["Running", running],
    ["Runnable", runnable],
    ...Array.from(blocked, (time, state): [string, number] => [waitTitle(states[state]), time]).sort((a, b) => b[1] - a[1]),
    ["Pacing", pacing],
  ];
  return (
    <>
      <h4>
        Thread {name}
        {steps > 1 && <span class="soft"> per step</span>}
      </h4>
      <dl aria-label="What the thread of the loop did">
        {rows
          .filter(([, time], row) => time > 0 || row < 2)
          .map(([title, time]) => (
            <Fragment key={title}>
              <dt title={TITLES[title]}>{title}</dt>
              <dd>
                {weight(time / steps, "ns")} ({percentOf(time, total)})
              </dd>
            </Fragment>
          ))}
        {longest && (
          <>
            <dt>Longest wait</dt>
            <dd>
              <a href={link({ at: { lane: thread, time: Math.round(longest.start) + 1 } })}>
                {weight(longest.time, "ns")}, {longest.state === 0 ? "runnable" : waitTitle(states[longest.state]).toLowerCase()}
              </a>
              {answer.place && (
                <>
                  {" "}
                  in <a href={link({ function: answer.place })}>{fit(formsOf(answer.place), 60) ?? answer.place}</a>
                </>
              )}
            </dd>
          </>
        )}
      </dl>
    </>
  );
}

const TITLES: Record<string, string> = { Runnable: "It waited for a CPU: preempted, or woken and not running yet.", Pacing: "It waited for the time of the next step." };

/** A state of waits as a row's title. */
function waitTitle(state = "unknown"): string {
  const words = said(state);
  return state === "no_stack" ? "Blocked, no stack" : `Blocked: ${words}`;
}

function percentOf(part: number, whole: number): string {
  return whole > 0 ? weight((part / whole) * 100, "percent") : "-";
}
