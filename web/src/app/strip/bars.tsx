// The bars of one loop's steps: drawn, hovered, brushed and walked by keys.

import { useEffect, useMemo, useState } from "preact/hooks";
import { barsOf, budgetOf, factorsOf, MARK, scaleOf, type Bars, type Loop } from "../../profile/steps.ts";
import { grouped, weight } from "../../units.ts";
import { useSurface } from "../surface.ts";
import { isDark } from "../theme.ts";
import { Area, GUTTER, paint, readInks, type Scene } from "./picture.ts";

export interface StepBarsProps {
  loop: Loop;
  /** Positions that are shown, the end excluded. */
  from: number;
  to: number;
  /** One for each step; all 0 without a selection. */
  selected: Uint8Array;
  /** Time at the upper edge, where several strips have one scale. */
  most?: number | undefined;
  /** Steps that fill the width, where several strips have one scale. */
  steps?: number | undefined;
  height: number;
  label: string;
  /** Positions of the selected steps, the last one included. `isDone` is false while the pointer moves. */
  onSelect(first: number, last: number, isDone: boolean): void;
  onClear(): void;
  onHover?: (position: number | undefined) => void;
  /** Shows these positions. */
  onZoom?: (from: number, to: number) => void;
}

export function StepBars(props: StepBarsProps) {
  const { loop, from, to, selected, height, label } = props;
  const { host, surface, width, drawn } = useSurface();
  const [hovered, setHovered] = useState<number>();
  const [brush, setBrush] = useState<[number, number]>();
  const [cursor, setCursor] = useState<number>();

  const pixels = Math.max(1, width - GUTTER - 8);
  const steps = Math.max(1, props.steps ?? to - from);
  const bars = useMemo(() => barsOf(loop, from, to, Math.round(Math.min(1, (to - from) / steps) * pixels)), [loop, from, to, pixels, steps]);
  const across = Math.max(1, props.steps ? Math.round((bars.longest.length * steps) / Math.max(1, to - from)) : bars.longest.length);
  const factors = useMemo(() => {
    const found = factorsOf(loop, bars);
    return found.every(Number.isNaN) ? undefined : found;
  }, [loop, bars]);
  const scale = useMemo(() => scaleOf(loop), [loop]);
  const budget = useMemo(() => budgetOf(loop), [loop]);
  const shares = useMemo(() => sharesOf(bars, selected), [bars, selected]);
  const dark = isDark.value;

  useEffect(() => {
    if (!surface.current || width === 0) return;
    surface.current.resize(width, height);
    const scene: Scene = { bars, selected: shares, factors, budget, most: props.most ?? scale, across, hovered, brushed: brush && ordered(brush) };
    paint(surface.current, scene, readInks());
  }, [bars, shares, factors, budget, props.most, scale, across, hovered, brush, width, height, dark, drawn]);

  const barAt = (event: { clientX: number }): number => {
    const box = host.current!.getBoundingClientRect();
    const bar = new Area(width, height, factors !== undefined, across).bar(event.clientX - box.left);
    return Math.min(bars.longest.length - 1, Math.max(0, bar));
  };
  const positionsOf = ([first, last]: [number, number]): [number, number] => [bars.first[first], bars.first[last + 1] - 1];
  const hover = (bar: number | undefined) => {
    setHovered(bar);
    props.onHover?.(bar === undefined ? undefined : longestIn(loop, bars, bar));
  };

  const down = (event: PointerEvent) => {
    if (event.button !== 0 || bars.longest.length === 0) return;
    (event.currentTarget as HTMLElement).setPointerCapture(event.pointerId);
    setBrush([barAt(event), barAt(event)]);
  };
  const move = (event: PointerEvent) => {
    if (bars.longest.length === 0) return;
    const bar = barAt(event);
    if (bar !== hovered) hover(bar);
    if (!brush || bar === brush[1]) return;
    setBrush([brush[0], bar]);
    props.onSelect(...positionsOf(ordered([brush[0], bar])), false);
  };
  const up = () => {
    if (!brush) return;
    setBrush(undefined);
    const [first, last] = ordered(brush);
    if (first !== last) return props.onSelect(...positionsOf([first, last]), true);
    // A click selects the longest step of a bar: a stall is one click away at any width.
    const position = longestIn(loop, bars, first);
    const isOnly = selected[position] === 1 && selected.reduce((sum, is) => sum + is, 0) === 1;
    if (isOnly) return props.onClear();
    setCursor(position);
    props.onSelect(position, position, true);
  };
  const zoom = (factor: number, share: number) => {
    const length = Math.min(loop.rows.length, Math.max(8, Math.round((to - from) * factor)));
    const start = Math.round(from + (to - from - length) * share);
    const first = Math.min(loop.rows.length - length, Math.max(0, start));
    props.onZoom?.(first, first + length);
  };
  useEffect(() => {
    // Preact's handlers are passive, so that they cannot keep the page from scrolling.
    const element = host.current!;
    const wheel = (event: WheelEvent) => {
      if (!props.onZoom || bars.longest.length === 0) return;
      event.preventDefault();
      const share = Math.min(1, Math.max(0, (event.clientX - element.getBoundingClientRect().left - GUTTER) / pixels));
      zoom(Math.exp(Math.sign(event.deltaY) * Math.min(1, Math.abs(event.deltaY) / 100) * 0.35), share);
    };
    element.addEventListener("wheel", wheel, { passive: false });
    return () => element.removeEventListener("wheel", wheel);
  });
  const key = (event: KeyboardEvent) => {
    const at = cursor ?? Math.max(0, selected.indexOf(1));
    const page = Math.max(1, Math.round((to - from) / 20));
    const by: Record<string, number> = { ArrowRight: 1, ArrowLeft: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (event.key in by) {
      const next = Math.min(loop.rows.length - 1, Math.max(0, at + by[event.key]));
      const anchor = event.shiftKey ? (selected[at] ? at : next) : next;
      const [first, last] = event.shiftKey ? extended(selected, anchor, next) : [next, next];
      setCursor(next);
      props.onSelect(first, last, true);
    } else if (event.key === "+" || event.key === "=") zoom(0.5, 0.5);
    else if (event.key === "-") zoom(2, 0.5);
    else if (event.key === "0") props.onZoom?.(0, loop.rows.length);
    else return;
    event.preventDefault();
  };

  return (
    <div
      class="step-bars"
      ref={host}
      style={{ height: `${height}px` }}
      role="slider"
      tabIndex={0}
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={Math.max(0, loop.rows.length - 1)}
      aria-valuenow={cursor ?? Math.max(0, selected.indexOf(1))}
      aria-valuetext={cursor === undefined ? "no step chosen" : stepText(loop, cursor)}
      onPointerDown={down}
      onPointerMove={move}
      onPointerUp={up}
      onPointerCancel={() => setBrush(undefined)}
      onPointerLeave={() => hover(undefined)}
      onDblClick={() => props.onZoom?.(0, loop.rows.length)}
      onKeyDown={key}
    >
      {hovered !== undefined && hovered < bars.longest.length && <Tip loop={loop} bars={bars} bar={hovered} x={new Area(width, height, false, across).x(hovered)} width={width} />}
    </div>
  );
}

function ordered([a, b]: [number, number]): [number, number] {
  return a <= b ? [a, b] : [b, a];
}

/** The selected run of steps around `anchor`, moved at the end where `next` is. */
function extended(selected: Uint8Array, anchor: number, next: number): [number, number] {
  let [first, last] = [anchor, anchor];
  while (first > 0 && selected[first - 1]) first--;
  while (last < selected.length - 1 && selected[last + 1]) last++;
  if (next > anchor) return first === anchor && last > anchor ? [next, last] : [first, next];
  return last === anchor && first < anchor ? [first, next] : [next, last];
}

/** The part of each bar's steps that is selected; `undefined` if none is. */
function sharesOf(bars: Bars, selected: Uint8Array): Float64Array | undefined {
  if (!selected.includes(1)) return undefined;
  return Float64Array.from(bars.longest, (_, bar) => {
    const steps = selected.subarray(bars.first[bar], bars.first[bar + 1]);
    return steps.reduce((sum, is) => sum + is, 0) / Math.max(1, steps.length);
  });
}

function longestIn(loop: Loop, bars: Bars, bar: number): number {
  let best = bars.first[bar];
  for (let position = best; position < bars.first[bar + 1]; position++) if (loop.work[position] > loop.work[best]) best = position;
  return best;
}

const NAMES: [number, string][] = [
  [MARK.first, "first step of the loop"],
  [MARK.stall, "stall"],
  [MARK.slow, "slow"],
  [MARK.typical, "typical"],
  [MARK.lower, "lower level"],
  [MARK.upper, "upper level"],
];

/** A step in words. */
export function stepText(loop: Loop, position: number): string {
  const marks = NAMES.filter(([mark]) => loop.marks[position] & mark).map(([, name]) => name);
  const clock = loop.end[position] - loop.start[position];
  const pacing = clock - loop.work[position];
  const times = pacing > 0 ? `${weight(loop.work[position], "ns")} + ${weight(pacing, "ns")} pacing` : weight(clock, "ns");
  return [`Step ${grouped(loop.index[position])}: ${times}`, ...marks].join(", ");
}

function Tip({ loop, bars, bar, x, width }: { loop: Loop; bars: Bars; bar: number; x: number; width: number }) {
  const [first, last] = [bars.first[bar], bars.first[bar + 1] - 1];
  const longest = longestIn(loop, bars, bar);
  const side = x > width / 2 ? { right: `${width - x + 8}px` } : { left: `${x + 12}px` };
  return (
    <div class="step-tip" style={side}>
      {last > first && (
        <div>
          Steps {grouped(loop.index[first])} – {grouped(loop.index[last])}: median {weight(bars.median[bar], "ns")}. Longest:
        </div>
      )}
      <b>{stepText(loop, longest)}</b>
      <div class="soft">at {weight(loop.start[longest], "ns")}</div>
    </div>
  );
}
