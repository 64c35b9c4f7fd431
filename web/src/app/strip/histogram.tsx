// The histogram beside the strip. Clicking or brushing bins selects the steps of these times.

import { useMemo, useState } from "preact/hooks";
import { binOf, budgetOf, countsIn, histogramOf, type Histogram, type Loop } from "../../profile/steps.ts";
import { counted, grouped, weight } from "../../units.ts";

const BINS = 40;
const WIDTH = 220;
const AXIS = 14;

interface Props {
  loop: Loop;
  selected: Uint8Array;
  height: number;
  onSelect(histogram: Histogram, first: number, last: number): void;
}

export function StepHistogram({ loop, selected, height, onSelect }: Props) {
  const histogram = useMemo(() => histogramOf(loop, BINS), [loop]);
  const chosen = useMemo(() => countsIn(histogram, loop, selected), [histogram, loop, selected]);
  const budget = useMemo(() => budgetOf(loop), [loop]);
  const [brush, setBrush] = useState<[number, number]>();
  const { edges, counts } = histogram;
  if (counts.length === 0) return null;
  const most = Math.max(...counts);
  const base = height - AXIS;
  // The square root keeps bins of a few steps visible beside bins of thousands.
  const rise = (count: number) => (count === 0 ? 0 : Math.max(2, Math.sqrt(count / most) * (base - 12)));
  const width = WIDTH / counts.length;
  const binAt = (event: PointerEvent) => {
    const box = (event.currentTarget as Element).getBoundingClientRect();
    return Math.min(counts.length - 1, Math.max(0, Math.floor(((event.clientX - box.left) / box.width) * counts.length)));
  };
  const [first, last] = brush ? [Math.min(...brush), Math.max(...brush)] : [-1, -1];
  const down = (event: PointerEvent) => {
    (event.currentTarget as Element).setPointerCapture(event.pointerId);
    setBrush([binAt(event), binAt(event)]);
  };
  const up = () => {
    if (brush) onSelect(histogram, first, last);
    setBrush(undefined);
  };
  const isBudgetShown = budget !== undefined && budget >= edges[0] && budget <= edges[counts.length];
  const budgetX = isBudgetShown ? (binOf(histogram, budget) + 0.5) * width : 0;
  return (
    <svg
      class="step-histogram"
      width={WIDTH}
      height={height}
      role="img"
      aria-label={`Histogram of step times, ${weight(edges[0], "ns")} to ${weight(edges[counts.length], "ns")}; drag over bins to select their steps`}
      onPointerDown={down}
      onPointerMove={(event) => brush && setBrush([brush[0], binAt(event)])}
      onPointerUp={up}
      onPointerCancel={() => setBrush(undefined)}
    >
      {Array.from(counts, (count, bin) => (
        <g key={bin} class={bin >= first && bin <= last ? "brushed" : undefined}>
          <rect class="ground" x={bin * width} y={0} width={width} height={base}>
            <title>
              {counted(count, "step")} of {weight(edges[bin], "ns")} to {weight(edges[bin + 1], "ns")}
              {chosen[bin] > 0 ? `, ${grouped(chosen[bin])} selected` : ""}
            </title>
          </rect>
          <rect class="count" x={bin * width + 0.5} y={base - rise(count)} width={width - 1} height={rise(count)} />
          <rect class="chosen" x={bin * width + 0.5} y={base - rise(chosen[bin])} width={width - 1} height={rise(chosen[bin])} />
        </g>
      ))}
      {isBudgetShown && <line class="budget" x1={budgetX} x2={budgetX} y1={0} y2={base} />}
      <text x={0} y={height - 3}>
        {weight(edges[0], "ns")}
      </text>
      <text x={WIDTH / 2} y={height - 3} text-anchor="middle">
        {weight(Math.sqrt(edges[0] * edges[counts.length]), "ns")}
      </text>
      <text x={WIDTH} y={height - 3} text-anchor="end">
        {weight(edges[counts.length], "ns")}
      </text>
    </svg>
  );
}
