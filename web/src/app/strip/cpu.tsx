// Without steps: CPU use over time, and how to record steps.

import { useEffect, useMemo, useState } from "preact/hooks";
import { weight } from "../../units.ts";
import { useAnswer } from "../answers.ts";
import { useLocalKeys, type LocalKeys } from "../commands.ts";
import { adjustSelection, capture, entry, hasTime, manifest, select, selection, selected } from "../state.ts";
import { useSurface } from "../surface.ts";
import { isDark } from "../theme.ts";
import { clearSteps } from "./clear.ts";
import { GUTTER, readInks, ticks } from "./picture.ts";

const HEIGHT = 74;
/** Most parts that CPU use is drawn in, and the samples that each needs: with fewer, it would show when a timer fired. */
const MOST_BUCKETS = 400;
const LEAST_SAMPLES = 25;
/** The event of builds, which have no steps. */
const OF_BUILDS = "cpu";
const MARGIN = 8;

export function CpuUse() {
  const { duration = 0, tables = {}, events = [] } = entry.value ?? {};
  const event = Math.max(0, events.findIndex(({ unit }) => unit === "ns"));
  const rows = tables["samples"] ?? 0;
  const buckets = Math.min(MOST_BUCKETS, Math.floor(rows / LEAST_SAMPLES));
  const hasSamples = buckets > 0 && duration > 0;
  const { answer } = useAnswer("usage", hasSamples ? { capture: capture.value, event, duration, buckets } : undefined, rows);
  if (!hasTime.value) return null;
  return (
    <div class="step-strip">
      <div class="step-header">
        <h3>CPU use</h3>
        {!events.some(({ name }) => name === OF_BUILDS) && <span class="soft">
          {manifest.value.live ? "No step has ended so far." : "No steps were recorded."} Record them with <code>stepscope record --step-function NAME -- PROGRAM</code>, or mark steps in the program with{" "}
          <code>STEPSCOPE_STEP</code>.
        </span>}
      </div>
      {answer && <Usage usage={answer} duration={duration} unit={events[event]?.unit ?? "ns"} />}
    </div>
  );
}

const LOCAL_KEYS: LocalKeys[] = [
  { title: "Select a part before, after", group: "CPU use", keys: ["ArrowLeft", "ArrowRight"] },
  { title: "Make the part shorter, longer", group: "CPU use", keys: ["Shift+ArrowLeft", "Shift+ArrowRight"] },
];

function Usage({ usage, duration, unit }: { usage: Float64Array; duration: number; unit: string }) {
  const { host, surface, width, drawn } = useSurface();
  useLocalKeys(LOCAL_KEYS);
  const [brush, setBrush] = useState<number>();
  // Time on CPUs per time is a number of CPUs.
  const values = useMemo(() => (unit === "ns" ? usage.map((sum) => (sum * usage.length) / duration) : usage), [usage, unit, duration]);
  const most = Math.max(unit === "ns" ? 1 : 0, ...values) || 1;
  const { from, to } = selected.value;
  const dark = isDark.value;

  const across = Math.max(1, width - GUTTER - MARGIN);
  useEffect(() => {
    const picture = surface.current;
    if (!picture || width === 0) return;
    const inks = readInks();
    picture.resize(width, HEIGHT);
    picture.begin(inks.ground);
    const x = (time: number) => GUTTER + (time / duration) * across;
    if (from !== undefined && to !== undefined) picture.rectangle(x(from), 2, Math.max(1, x(to) - x(from)), HEIGHT - 4, inks.selected);
    for (const value of ticks(most)) {
      const y = HEIGHT - 4 - (value / most) * (HEIGHT - 12);
      picture.rectangle(GUTTER, y, across, 1, inks.line);
      const label = unit === "ns" ? `${Number(value.toFixed(2))} CPU` : weight(value, unit);
      picture.text(label, GUTTER - 6 - picture.measure(label, "small"), y, inks.soft, "small");
    }
    values.forEach((value, bucket) => {
      const rise = (value / most) * (HEIGHT - 12);
      const left = x((bucket * duration) / values.length);
      picture.rectangle(left, HEIGHT - 4 - rise, Math.max(1, x(((bucket + 1) * duration) / values.length) - left), rise, inks.bar);
    });
    picture.end();
  }, [values, most, width, from, to, dark, drawn]);

  const timeAt = (event: PointerEvent) => {
    const left = host.current!.getBoundingClientRect().left + GUTTER;
    return Math.round(Math.min(1, Math.max(0, (event.clientX - left) / across)) * duration);
  };
  const range = (time: number) => ({ from: Math.min(brush ?? time, time), to: Math.max(brush ?? time, time) });
  const up = (event: PointerEvent) => {
    const { from, to } = range(timeAt(event));
    if (brush !== undefined) to > from ? select({ from, to }) : clearSteps();
    setBrush(undefined);
  };
  const key = (event: KeyboardEvent) => {
    const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (by === 0) return;
    event.preventDefault();
    const step = duration / 50;
    const { from = 0, to = step } = selection.peek();
    const move = event.shiftKey ? { from, to: to + by * step } : { from: from + by * step, to: to + by * step };
    select({ from: Math.max(0, move.from), to: Math.min(duration, Math.max(move.from + 1, move.to)) });
  };
  return (
    <div
      class="step-bars"
      ref={host}
      style={{ height: `${HEIGHT}px` }}
      role="slider"
      tabIndex={0}
      aria-label="CPU use over the recording. Arrow keys select a part, with Shift a longer one."
      aria-valuemin={0}
      aria-valuemax={duration}
      aria-valuenow={from ?? 0}
      aria-valuetext={from === undefined ? "nothing selected" : `${weight(from, "ns")} to ${weight(to ?? duration, "ns")}`}
      onPointerDown={(event) => {
        (event.currentTarget as HTMLElement).setPointerCapture(event.pointerId);
        setBrush(timeAt(event));
      }}
      onPointerMove={(event) => brush !== undefined && adjustSelection(range(timeAt(event)))}
      onPointerUp={up}
      onPointerCancel={() => setBrush(undefined)}
      onKeyDown={key}
    />
  );
}
