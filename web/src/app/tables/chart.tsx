// A chart of a report: columns of a table over one of them. The table itself stands behind the picture.

import { useEffect, useMemo, useRef } from "preact/hooks";
import uPlot from "uplot";
import { numberOf } from "../../profile/cells.ts";
import type { ChartBlock, ChartMark, DocumentColumn, DocumentTable } from "../../profile/document.ts";
import { kindOfUnit, quantity, unitBesideNumber, type QuantityKind } from "../../units.ts";
import { isDark } from "../theme.ts";
import { DataTable } from "./table.tsx";

const HEIGHT = 210;
/** Beyond this ratio of the largest value to the median, a linear axis shows a flat line and a few spikes. */
const FLAT = 25;
/** Colours of lines that have names: of Okabe and Ito. */
const HUES = ["--chart-1", "--chart-2", "--chart-3", "--chart-4", "--chart-5", "--chart-6", "--chart-7"];

export function Chart({ block, id, capture }: { block: ChartBlock; id: string; capture: number | undefined }) {
  const drawing = useMemo(() => drawingOf(block), [block]);
  const box = useRef<HTMLDivElement>(null);
  const dark = isDark.value;
  useEffect(() => {
    const element = box.current;
    if (!element || !drawing) return;
    // Charts far below are drawn when they come near.
    let plot: uPlot | undefined;
    let isPrinting = false;
    const draw = () => {
      if (plot || element.clientWidth === 0) return;
      plot = new uPlot(optionsOf(drawing, element), drawing.data as uPlot.AlignedData, element);
    };
    // On paper all charts are drawn, in the colours of paper, and scaled to its width.
    const redraw = (printing: boolean) => {
      isPrinting = printing;
      plot?.destroy();
      plot = undefined;
      draw();
    };
    const [before, after] = [() => redraw(true), () => redraw(false)];
    addEventListener("beforeprint", before);
    addEventListener("afterprint", after);
    const seen = new IntersectionObserver((entries) => entries.some(({ isIntersecting }) => isIntersecting) && draw(), { rootMargin: "400px" });
    seen.observe(element);
    const sized = new ResizeObserver(() => !isPrinting && plot?.setSize({ width: element.clientWidth, height: HEIGHT }));
    sized.observe(element);
    return () => {
      seen.disconnect();
      sized.disconnect();
      removeEventListener("beforeprint", before);
      removeEventListener("afterprint", after);
      plot?.destroy();
    };
  }, [drawing, dark]);
  if (!drawing) return null;
  return (
    <figure class="chart" id={id} aria-label={block.table.title}>
      <figcaption>
        <h4>{block.table.title}</h4>
        <span class="soft">{captionOf(block, drawing)}</span>
      </figcaption>
      <div class="plot-area" ref={box} role="img" aria-label={`${block.table.title}: ${captionOf(block, drawing)}. The table below has the values.`} style={{ minHeight: `${HEIGHT}px` }} />
      <details>
        <summary>Values</summary>
        <DataTable table={{ ...block.table, title: "" }} id={`${id}/values`} capture={capture} />
      </details>
    </figure>
  );
}

interface Series {
  mark: ChartMark;
  up: DocumentColumn;
  /** Where its values are in `data`: one place, or two for the lower and the upper. */
  places: number[];
  color: string;
  /** Of lines beyond the last colour, which repeat the first ones. */
  isDashed: boolean;
}

interface Drawing {
  block: ChartBlock;
  /** The horizontal values, then those of each series, in ascending order of the first. */
  data: (number | null)[][];
  across: DocumentColumn;
  /** Whether the horizontal values are places of rows, as of texts. */
  isByRow: boolean;
  /** The rows in the order of `data`. */
  rows: number[];
  series: Series[];
  rules: { at: number; title: string }[];
  isLogX: boolean;
  isLogY: boolean;
  range: [number, number];
  /** The lines have names of their own. */
  isNamed: boolean;
}

function columnOf(table: DocumentTable, name: string | undefined): DocumentColumn | undefined {
  return table.columns.find((column) => column.name === name);
}

function drawingOf(block: ChartBlock): Drawing | undefined {
  const { table } = block;
  const across = columnOf(table, block.across);
  if (!across) return undefined;
  const isByRow = across.values.every((value) => typeof value !== "number");
  const xOf = (row: number) => (isByRow ? row : numberOf(across.values[row]));
  const rows = across.values.map((_, row) => row).filter((row) => xOf(row) !== null);
  rows.sort((a, b) => xOf(a)! - xOf(b)!);
  const data: (number | null)[][] = [rows.map(xOf)];
  const series: Series[] = [];
  const hues = new Map<string, number>();
  for (const mark of block.marks) {
    if (mark.kind === "rules") continue;
    const columns = mark.columns.map((name) => columnOf(table, name));
    const up = columns[columns.length - 1];
    if (!up || columns.some((column) => !column)) continue;
    if (mark.kind === "line" && !hues.has(up.header)) hues.set(up.header, hues.size);
    const places = columns.map((column) => data.push(rows.map((row) => numberOf(column!.values[row]))) - 1);
    const hue = hues.get(up.header) ?? 0;
    series.push({ mark, up, places, color: HUES[hue % HUES.length], isDashed: hue >= HUES.length });
  }
  if (series.length === 0) return undefined;
  const rules = block.marks
    .filter(({ kind }) => kind === "rules")
    .flatMap(({ columns }) => {
      const column = columnOf(table, columns[0]);
      return rows.flatMap((row) => {
        const value = column?.values[row];
        return value === true ? [{ at: xOf(row)!, title: column!.header }] : typeof value === "string" && value !== "" ? [{ at: xOf(row)!, title: value }] : [];
      });
    });
  const hasBars = series.some(({ mark }) => mark.kind === "bars");
  const ups = series.flatMap(({ places, mark }) => (mark.kind === "bars" ? places.slice(1) : places).flatMap((place) => data[place])).filter((value): value is number => value !== null);
  if (ups.length === 0) return undefined;
  ups.sort((a, b) => a - b);
  const [least, most] = [ups[0], ups[ups.length - 1]];
  const isLogY = !hasBars && least > 0 && (block.floor === "ratios" || most / ups[ups.length >> 1] > FLAT);
  const places = data[0].concat(...series.filter(({ mark }) => mark.kind === "bars").map(({ places }) => data[places[0]])).filter((value): value is number => value !== null);
  const [first, last] = [Math.min(...places), Math.max(...places)];
  const isLogX = !isByRow && first > 0 && ((hasBars && last / first > 10) || block.floor === "ratios");
  const air = (most - least) * 0.08 || Math.abs(most) * 0.1 || 1;
  const range: [number, number] = isLogY ? [least / 1.1, most * 1.1] : block.floor === "least" && !hasBars ? [least - air, most + air] : [Math.min(0, least), most + air];
  return { block, data, across, isByRow, rows, series, rules, isLogX, isLogY, range, isNamed: hues.size > 1 };
}

function captionOf({ caption }: ChartBlock, { series, across, isLogX, isLogY }: Drawing): string {
  const scale = isLogX && isLogY ? " (both axes logarithmic)" : isLogY ? " (logarithmic)" : "";
  return (caption || `${series[0].up.header} over ${across.header}`) + scale;
}

/** Shows values of a column as its cells do, with the unit. */
function shownBy(column: DocumentColumn): (value: number) => string {
  const kind = (column.kind === "inrowunit" ? kindOfUnit(column.unit) : column.kind) as QuantityKind;
  const isNumber = ["count", "duration", "bytes", "percent", "number"].includes(kind);
  const beside = isNumber && column.unit ? unitBesideNumber(column.unit) : "";
  return (value) => {
    if (!isNumber) return String(value);
    const { number, unit } = quantity(value, kind);
    // `1.00 k` reads as an axis when it is `1 k`.
    return [number.replace(/\.0+$/, ""), unit || (kind === "percent" ? "%" : ""), kind === "percent" || !beside.startsWith("/") ? "" : beside].filter(Boolean).join(" ").replace(" /", "/");
  };
}

/** Distances of ticks between whole numbers. */
const WHOLE = Array.from({ length: 10 }, (_, power) => [1, 2, 5].map((digit) => digit * 10 ** power)).flat();

/** Whether the axis counts, as of runs: 1.5 means nothing there. */
function isWhole({ across, isByRow, isLogX }: Drawing): boolean {
  return !isLogX && (isByRow || (across.kind === "count" && across.values.every((value) => value === null || Number.isInteger(value))));
}

function optionsOf(drawing: Drawing, element: HTMLElement): uPlot.Options {
  const style = getComputedStyle(element);
  const color = (name: string) => style.getPropertyValue(name).trim();
  const { series, across, isByRow, rows, isNamed } = drawing;
  const showY = shownBy(series[0].up);
  const showX = isByRow ? (value: number) => String(across.values[rows[Math.round(value)]] ?? "") : shownBy(across);
  const axis: uPlot.Axis = { stroke: color("--soft"), grid: { stroke: color("--line"), width: 1 }, ticks: { stroke: color("--line"), width: 1, size: 4 }, font: "11px system-ui, sans-serif" };
  const plotted: uPlot.Series[] = [{ label: across.header, value: (_, value) => (value === null || value === undefined ? "–" : showX(value)) }];
  const bands: uPlot.Band[] = [];
  for (const { mark, up, places, color: hue, isDashed } of series) {
    places.forEach((_, index) => {
      const isPart = mark.kind === "band" || mark.kind === "interval" || mark.kind === "bars";
      const isPoints = mark.kind === "points";
      const entry: uPlot.Series = {
        label: isPart && places.length > 1 ? columnOf(drawing.block.table, mark.columns[index])!.header : up.header,
        stroke: isPart ? "transparent" : isPoints ? color("--critical") : color(hue),
        width: mark.kind === "line" ? 1.75 : mark.kind === "steps" ? 1.5 : 0,
        spanGaps: true,
        ...(isDashed ? { dash: [6, 4] } : {}),
        points: { show: isPoints || (mark.kind === "line" && drawing.rows.length <= 40), size: isPoints ? 6 : 5, fill: isPoints ? color("--critical") : color(hue) },
        value: (_, value) => (value === null || value === undefined ? "–" : showY(value)),
      };
      if (mark.kind === "steps" && uPlot.paths.stepped) entry.paths = uPlot.paths.stepped({ align: 1 });
      if (isPart) entry.points = { show: false };
      plotted.push(entry);
    });
    if (mark.kind === "band") bands.push({ series: [places[1], places[0]], fill: color("--chart-band") });
  }
  return {
    width: Math.max(100, element.clientWidth),
    height: HEIGHT,
    padding: [8, 14, 0, 0],
    scales: {
      x: { time: false, ...(drawing.isLogX ? { distr: 3 as const } : {}), ...xRange(drawing) },
      y: { range: drawing.range, ...(drawing.isLogY ? { distr: 3 as const } : {}) },
    },
    axes: [
      { ...axis, values: (_, splits) => splits.map((value) => (value === null ? "" : isByRow && !Number.isInteger(value) ? "" : showX(value))), space: isByRow ? 90 : 70, ...(isWhole(drawing) ? { incrs: WHOLE } : {}) },
      { ...axis, values: (_, splits) => splits.map((value) => (value === null ? "" : showY(value))), size: 74 },
    ],
    series: plotted,
    bands,
    legend: { show: isNamed || drawing.rows.length > 1, live: true, markers: { dash: (_, index) => (plotted[index].dash ? "dashed" : "solid") } },
    cursor: { y: false, drag: { x: true, y: false } },
    hooks: { drawAxes: [(plot) => drawBelow(plot, drawing, color)], draw: [(plot) => drawAbove(plot, drawing, color)] },
  };
}

function xRange({ data, series, isByRow }: Drawing): { range?: [number, number] } {
  const bars = series.find(({ mark }) => mark.kind === "bars");
  const values = [...data[0], ...(bars ? data[bars.places[0]] : [])].filter((value): value is number => value !== null);
  const [least, most] = [Math.min(...values), Math.max(...values)];
  if (isByRow) return { range: [-0.5, Math.max(0.5, most + 0.5)] };
  return bars || least === most ? { range: [least, most > least ? most : least + 1] } : {};
}

/** Bars, which stand behind the lines. */
function drawBelow(plot: uPlot, { data, series }: Drawing, color: (name: string) => string): void {
  for (const { mark, places, color: hue } of series) {
    if (mark.kind !== "bars") continue;
    const context = plot.ctx;
    context.save();
    context.fillStyle = color(hue);
    const zero = plot.valToPos(0, "y", true);
    data[0].forEach((from, index) => {
      const [to, height] = [data[places[0]][index], data[places[1]][index]];
      if (from === null || to === null || height === null) return;
      const [left, right, top] = [plot.valToPos(from, "x", true), plot.valToPos(to, "x", true), plot.valToPos(height, "y", true)];
      context.fillRect(left + 0.5, top, Math.max(1, right - left - 1), zero - top);
    });
    context.restore();
  }
}

/** Intervals and rules, which stand above the lines. */
function drawAbove(plot: uPlot, { data, series, rules }: Drawing, color: (name: string) => string): void {
  const context = plot.ctx;
  context.save();
  context.lineWidth = devicePixelRatio;
  for (const { mark, places, color: hue } of series) {
    if (mark.kind !== "interval") continue;
    context.strokeStyle = color(hue);
    data[0].forEach((at, index) => {
      const [low, high] = places.map((place) => data[place][index]);
      if (at === null || low === null || high === null) return;
      const x = Math.round(plot.valToPos(at, "x", true)) + 0.5;
      line(context, x, plot.valToPos(low, "y", true), plot.valToPos(high, "y", true));
    });
  }
  context.setLineDash([4 * devicePixelRatio, 3 * devicePixelRatio]);
  context.strokeStyle = color("--soft");
  context.fillStyle = color("--soft");
  context.font = `${10 * devicePixelRatio}px system-ui, sans-serif`;
  const { top, height } = plot.bbox;
  let free = -Infinity;
  for (const { at, title } of rules) {
    const x = Math.round(plot.valToPos(at, "x", true)) + 0.5;
    line(context, x, top, top + height);
    const width = context.measureText(title).width;
    if (x < free || width > 220 * devicePixelRatio) continue;
    context.fillText(title, x + 3 * devicePixelRatio, top + 10 * devicePixelRatio);
    free = x + width + 8 * devicePixelRatio;
  }
  context.restore();
}

function line(context: CanvasRenderingContext2D, x: number, from: number, to: number): void {
  context.beginPath();
  context.moveTo(x, from);
  context.lineTo(x, to);
  context.stroke();
}
