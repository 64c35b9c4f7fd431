// The details of an interval of the timeline: thread, state, length, stack, and the thread that ended it.

import { useEffect, useState } from "preact/hooks";
import { holdersOf, PREEMPTED, RUNNING, WOKEN, type Interval } from "../../profile/intervals.ts";
import type { Answer } from "../../worker/queries.ts";
import type { StackFrame } from "../../worker/timeline.ts";
import { moment } from "../../profile/ticks.ts";
import { counted, grouped, weight } from "../../units.ts";
import { useAnswer } from "../answers.ts";
import { Icon } from "../icons.tsx";
import { capture, entry, go, link, select } from "../state.ts";
import { shownLanes, type LaneSource } from "./source.ts";
import { stateText } from "./timeline.tsx";

/** Frames of a stack that are shown at first. */
const FIRST = 12;

export function IntervalDetails({ lane: wanted, time }: { lane: number; time: number }) {
  // The last one stays until the next one is here.
  const [found, setFound] = useState<{ lane: number; interval: Interval | undefined }>();
  const source = shownLanes.value;
  useEffect(() => {
    let isOld = false;
    void source
      ?.findInterval(wanted, time)
      .then((interval) => isOld || setFound({ lane: wanted, interval }));
    return () => {
      isOld = true;
    };
  }, [wanted, time, source]);
  const interval = found?.interval;
  const sampled = useAnswer("ticks", interval?.state === 0 ? { capture: capture.value, event: entry.value?.event ?? 0, from: interval.start, to: interval.end, most: 20_000 } : undefined);
  const samples = interval && sampled.answer ? samplesOf(sampled.answer, interval, time) : undefined;
  const leaf = interval && interval.stack < 0 && samples ? samples.stack : interval?.stack ?? -1;
  const stacks = interval ? [leaf, interval.wakerStack].filter((stack) => stack >= 0) : [];
  const { answer } = useAnswer("stacks", stacks.length > 0 ? { capture: capture.value, stacks } : undefined);
  if (!source || !found) return null;
  const { lane } = found;
  const name = source.laneOf(lane)?.name ?? `lane ${lane}`;
  if (!interval) {
    return (
      <section class="interval" aria-label="Interval">
        <Head title={name} />
        <p class="soft">{absenceOf(source)}</p>
      </section>
    );
  }
  const frames = (stack: number) => (stack >= 0 ? answer?.frames[stacks.indexOf(stack)] : undefined);
  const own = frames(leaf);
  const waker = frames(interval.wakerStack);
  const isCpu = lane < 0;
  const digits = interval.end - interval.start < 10_000 ? 6 : 3;
  const states = entry.value!.lanes.states;
  const threadName = (thread: number) => source.threadNames[thread] ?? `thread ${thread}`;
  const text = () => textOf(isCpu ? threadName(interval.thread) : name, stateText(interval.state, states), interval, own, waker, threadName);
  return (
    <section class="interval" aria-label="Interval">
      <Head title={isCpu ? `${name}: ${threadName(interval.thread)}` : name} />
      <dl>
        <dt>State</dt>
        <dd>{isCpu ? "runs on this CPU" : stateText(interval.state, states)}</dd>
        <dt>Time</dt>
        <dd>{weight(interval.end - interval.start, "ns")}</dd>
        <dt>From</dt>
        <dd>{moment(interval.start, digits)}</dd>
        <dt>To</dt>
        <dd>{moment(interval.end, digits)}</dd>
        {!isCpu && interval.cpu >= 0 && (
          <>
            <dt>{interval.state === 0 ? "On" : "Then on"}</dt>
            <dd>
              <a href={link({ at: { lane: -1 - interval.cpu, time: Math.round(interval.state === 0 ? interval.start : interval.end) } })}>CPU {interval.cpu}</a>
            </dd>
          </>
        )}
        {(interval.state === PREEMPTED || interval.state === WOKEN) && <Holders source={source} lane={lane} interval={interval} threadName={threadName} />}
        {interval.waker >= 0 && (
          <>
            <dt>Woken by</dt>
            <dd>
              <a href={link({ at: { lane: interval.waker, time: Math.max(0, Math.round(interval.state >= 3 ? interval.end : interval.start) - 1) } })}>{threadName(interval.waker)}</a>
            </dd>
          </>
        )}
      </dl>
      {own && own.length > 0 && <Stack title={interval.state > 0 ? "Switched out at" : samples && samples.count > 1 ? `Nearest of ${grouped(samples.count)} samples` : "Sampled at"} frames={own} />}
      {leaf < 0 && interval.state > 0 && <p class="soft">Its stack was not recorded.</p>}
      {leaf < 0 && interval.state === 0 && sampled.answer && <p class="soft">No sample was taken in this time.</p>}
      {waker && waker.length > 0 && <Stack title={`${threadName(interval.waker)} woke it at`} frames={waker} />}
      <div class="buttons">
        <button onClick={() => select({ from: Math.floor(interval.start), to: Math.ceil(interval.end), steps: undefined, stepClass: undefined, stepTime: undefined })}>Select this time</button>
        {interval.thread >= 0 && <button onClick={() => select({ threads: [interval.thread] })}>Select this thread</button>}
        <button onClick={() => void navigator.clipboard?.writeText(text())}>
          <Icon name="copy" /> Copy
        </button>
      </div>
    </section>
  );
}

/** A thread that took the CPU later than this after another lost it did not preempt that one: ns. */
const SWITCHED_WITHIN = 100_000;
/** Intervals of the CPU that are added up, and threads that are named. */
const [MOST_INTERVALS, MOST_HOLDERS] = [5000, 3];

/** Who preempted a thread, and who had the CPU while it waited for it. */
function Holders({ source, lane, interval, threadName }: { source: LaneSource; lane: number; interval: Interval; threadName(thread: number): string }) {
  const [found, setFound] = useState<{ cpu: number; intervals: Interval[] }>();
  const { start, end, state, cpu } = interval;
  useEffect(() => {
    let isOld = false;
    setFound(undefined);
    void (async () => {
      // A preempted thread may go on elsewhere: it lost the CPU that it had before.
      const before = state === PREEMPTED ? await source.findInterval(lane, start - 1) : undefined;
      const on = before?.state === RUNNING && before.cpu >= 0 ? before.cpu : cpu;
      const intervals = on < 0 ? undefined : await source.intervalsIn(-1 - on, start, end, MOST_INTERVALS);
      if (!isOld && intervals && intervals.length < MOST_INTERVALS) setFound({ cpu: on, intervals });
    })();
    return () => {
      isOld = true;
    };
  }, [source, lane, start, end, state, cpu]);
  if (!found) return null;
  const { first, all, others } = holdersOf(found.intervals, start, end);
  const at = (time: number) => link({ at: { lane: -1 - found.cpu, time: Math.ceil(time) } });
  const preempted = first && first.start - start < SWITCHED_WITHIN ? first : undefined;
  return (
    <>
      {state === PREEMPTED && (
        <>
          <dt>Preempted by</dt>
          <dd>{preempted ? <a href={at(preempted.start)}>{threadName(preempted.thread)}</a> : "a thread that was not recorded"}</dd>
        </>
      )}
      <dt title="Who had this CPU in this time">CPU {found.cpu} ran</dt>
      <dd>
        {all.slice(0, MOST_HOLDERS).map(({ thread, start, time }) => (
          <div key={thread}>
            <a href={at(start)}>{threadName(thread)}</a> {weight(time, "ns")}
          </div>
        ))}
        {all.length > MOST_HOLDERS && <div>{counted(all.length - MOST_HOLDERS, "more thread")}</div>}
        {others > 0 && <div class="soft">not recorded, or idle: {weight(others, "ns")}</div>}
      </dd>
    </>
  );
}

/** Why there is no interval. */
function absenceOf({ entry }: LaneSource): string {
  if (entry.lanes.finest) return "This page had no room for single intervals. `stepscope view` shows them.";
  return entry.switches ? "Nothing was recorded here." : "Context switches were not recorded.";
}

/** The samples of the thread within an interval: how many, and the stack of the nearest one. */
function samplesOf({ times, threads, stacks }: Answer<"ticks">, interval: Interval, time: number): { count: number; stack: number } {
  let count = 0;
  let nearest = -1;
  for (let at = 0; at < times.length; at++) {
    if (threads[at] !== interval.thread || times[at] < interval.start || times[at] > interval.end) continue;
    count++;
    if (nearest < 0 || Math.abs(times[at] - time) < Math.abs(times[nearest] - time)) nearest = at;
  }
  return { count, stack: nearest < 0 ? -1 : stacks[nearest] };
}

function Head({ title }: { title: string }) {
  return (
    <h3>
      {title}
      <button class="close" aria-label="Close the interval" onClick={() => go({ at: undefined })}>
        <Icon name="close" />
      </button>
    </h3>
  );
}

/** A stack, the leaf first. A click on a function chooses it. */
function Stack({ title, frames }: { title: string; frames: StackFrame[] }) {
  const [isWhole, setWhole] = useState(false);
  const shown = isWhole ? frames : frames.slice(0, FIRST);
  return (
    <>
      <h4>{title}</h4>
      <ol class="interval-stack">
        {shown.map((frame, index) => (
          <li key={index} title={placeOf(frame)}>
            <a href={link({ function: frame.function })}>{frame.function}</a>
          </li>
        ))}
      </ol>
      {frames.length > FIRST && <button onClick={() => setWhole(!isWhole)}>{isWhole ? "Fewer frames" : `${frames.length - FIRST} more frames`}</button>}
    </>
  );
}

function placeOf({ function: name, file, line }: StackFrame): string {
  return file ? `${name}\n${file}${line > 0 ? `:${line}` : ""}` : name;
}

function textOf(name: string, state: string, interval: Interval, own: StackFrame[] | undefined, waker: StackFrame[] | undefined, threadName: (thread: number) => string): string {
  const lines = [`${name}: ${state} for ${weight(interval.end - interval.start, "ns")}, from ${weight(interval.start, "ns")}`];
  if (interval.waker >= 0) lines.push(`woken by ${threadName(interval.waker)}`);
  for (const [title, frames] of [["stack:", own], ["waker's stack:", waker]] as const) {
    if (frames && frames.length > 0) lines.push("", title, ...frames.map((frame) => `  ${placeOf(frame).replace("\n", "  ")}`));
  }
  return lines.join("\n");
}
