// Rows of the timeline as rectangles: states of threads, threads on CPUs, nested scopes, counters.

import { cut, fit, formsOf, type Forms } from "../label.ts";
import { weight } from "../units.ts";
import { integers, numbers } from "../profile/columns.ts";
import { PREEMPTED, rowsBetween, scopeKey, UNKNOWN, type Tile } from "../profile/intervals.ts";
import { count, LANE_HEIGHT, SCOPE_HEIGHT, type CounterSeries, type Row } from "../profile/lanes.ts";
import { bucketLength, tileLength, type Cover, type Grid } from "../profile/tiles.ts";
import { LaneColumns, type Window } from "./lane_columns.ts";
import type { Painter } from "./raster.ts";
import type { Ink } from "./surface.ts";
import { seriesInk, type Palette } from "./timeline_palette.ts";

/** Text within the picture, in device pixels. */
export interface Label {
  text: string;
  left: number;
  right: number;
  middle: number;
  isSoft: boolean;
}

export interface Drawn {
  tile: Tile;
  cover: Cover;
}

/** Where the rows' content comes from. */
export interface Lanes {
  grids: { lanes: Grid; scopes: Grid; counters: Grid };
  /** What to draw of a block, in order. */
  lanes(block: number): Drawn[];
  scopes(block: number): Drawn[];
  counters(block: number): Drawn[];
  scopeNames: string[];
  stateNames: string[];
  threadName(thread: number): string;
  series: (CounterSeries & { isTotal: boolean })[];
}

/** Series of counters in a block. */
const SERIES_OF_BLOCK = 32;
/** Width of a character of small text. */
const CHARACTER = 5.6;
const BAR = 15;

export class LanePainter {
  private readonly painter: Painter;
  private readonly columns = new LaneColumns();
  private readonly forms = new Map<string, Forms>();

  constructor(painter: Painter) {
    this.painter = painter;
  }

  /** Draws a row at a height in device pixels. */
  draw(row: Row, y: number, ratio: number, window: Window, scene: { lanes: Lanes; palette: Palette }, labels: Label[]): void {
    if (row.kind === "counter") return this.drawCounter(row.series, y, row.height, ratio, window, scene, labels);
    if (row.kind !== "lane") return;
    const { lane } = row;
    this.columns.begin(window.width);
    for (const { tile, cover } of scene.lanes.lanes(lane.block)) this.columns.add(tile, scene.lanes.grids.lanes, cover, lane.lane, window);
    const top = y + Math.round(3 * ratio);
    const bottom = top + Math.round(BAR * ratio);
    this.drawStates(lane.lane < 0, top, bottom, ratio, scene, labels);
    for (let depth = 0; depth < row.scopes; depth++) {
      this.drawScopes(lane.lane, lane.block, depth, y + Math.round((LANE_HEIGHT + depth * SCOPE_HEIGHT) * ratio), ratio, window, scene, labels);
    }
  }

  /** Columns from below: running, runnable, blocked, unknown. Equal neighbours are one rectangle. */
  private drawStates(isCpu: boolean, top: number, bottom: number, ratio: number, { lanes, palette }: { lanes: Lanes; palette: Palette }, labels: Label[]): void {
    const { painter, columns } = this;
    const { running, runnable, blocked, unknown, most } = columns;
    const height = bottom - top;
    const levels = (share: number) => (share > 0 ? Math.max(1, Math.round(Math.min(1, share) * height)) : 0);
    const width = running.length;
    let start = 0;
    let [a, b, c, d, e] = [0, 0, 0, 0, -1];
    const flush = (end: number) => {
      if (a + b + c + d === 0 || end === start) return;
      // Rounding up may exceed the bar.
      const green = Math.min(a, height);
      const orange = Math.min(b, height - green);
      const grey = Math.min(c, height - green - orange);
      let y = bottom;
      const part = (high: number, ink: Ink) => {
        if (high > 0) painter.fill(start, y - high, end, y, ink);
        y -= high;
      };
      part(green, isCpu ? seriesInk(palette, e) : palette.states[0]);
      part(orange, palette.states[PREEMPTED]);
      part(grey, palette.states[e] ?? palette.states[9]);
      part(Math.min(d, height - green - orange - grey), palette.states[UNKNOWN]);
      // A line through what waits for a CPU, so that it shows without colours.
      if (orange === height && end - start > 3) painter.fill(start + 1, bottom - Math.round(3 * ratio), end - 1, bottom - Math.round(2 * ratio), palette.runnableMark);
      const isPure = green === height || orange === height || grey === height;
      if (isPure && end - start > 40 * ratio) {
        const name = isCpu ? lanes.threadName(e) : lanes.stateNames[green === height ? 0 : orange === height ? PREEMPTED : e];
        const text = isCpu ? name : orange === height ? "waits for a CPU" : said(name);
        const fitted = cutTo(text, (end - start) / ratio - 8);
        if (fitted) labels.push({ text: fitted, left: start, right: end, middle: (top + bottom) / 2, isSoft: grey === height });
      }
    };
    for (let column = 0; column < width; column++) {
      const [p, q, r, s] = [levels(running[column]), levels(runnable[column]), levels(blocked[column]), levels(unknown[column])];
      const kind = r > 0 || isCpu ? most[column] : -1;
      if (p === a && q === b && r === c && s === d && kind === e) continue;
      flush(column);
      [start, a, b, c, d, e] = [column, p, q, r, s, kind];
    }
    flush(width);
  }

  private drawScopes(thread: number, block: number, depth: number, y: number, ratio: number, window: Window, { lanes, palette }: { lanes: Lanes; palette: Palette }, labels: Label[]): void {
    const key = scopeKey(thread, depth);
    const [top, bottom] = [y + Math.round(ratio), y + Math.round((SCOPE_HEIGHT - 1) * ratio)];
    const scale = window.width / (window.to - window.from);
    let drawn = -1;
    const draw = (start: number, end: number, name: number, share: number) => {
      const left = Math.max(0, Math.round((start - window.from) * scale));
      const right = Math.min(window.width, Math.max(left + 1, Math.round((end - window.from) * scale)));
      if (right <= drawn || left >= window.width) return;
      const from = Math.max(left, drawn);
      drawn = right;
      // A border between neighbours that are wide enough.
      const isWide = right - from > 4 * ratio;
      const high = Math.max(1, Math.round((bottom - top) * Math.min(1, share)));
      this.painter.fill(from, bottom - high, isWide ? right - 1 : right, bottom, seriesInk(palette, name));
      const room = (right - from) / ratio - 8;
      if (room < 16) return;
      const text = fit(this.formsOf(lanes.scopeNames[name] ?? ""), Math.floor(room / CHARACTER));
      if (text && tells(text)) labels.push({ text, left: from, right, middle: (top + bottom) / 2, isSoft: false });
    };
    for (const { tile, cover } of lanes.scopes(block)) {
      const { table, rows } = tile;
      const { level, tile: number } = cover.address;
      const [from, to] = [Math.max(cover.from, window.from), Math.min(cover.to, window.to)];
      if (level === 0) {
        const [first, end] = rowsBetween(tile, key, from, to);
        if (first === end) continue;
        const [starts, ends, names] = [numbers(table, "start"), numbers(table, "end"), integers(table, "name")];
        for (let row = first; row < end; row++) draw(starts[row], ends[row], names[row], 1);
        continue;
      }
      const [first, end] = rows.get(key) ?? [0, 0];
      if (first === end) continue;
      const [buckets, lengths, shares, names] = ["bucket", "length", "share", "name"].map((name) => integers(table, name));
      const length = bucketLength(lanes.grids.scopes, level);
      const origin = number * tileLength(lanes.grids.scopes, level);
      const low = first + count(end - first, (at) => origin + (buckets[first + at] + lengths[first + at]) * length <= from);
      for (let row = low; row < end; row++) {
        const start = origin + buckets[row] * length;
        if (start >= to) break;
        draw(Math.max(start, from), Math.min(start + lengths[row] * length, to), names[row], shares[row] / 255);
      }
    }
  }

  private formsOf(name: string): Forms {
    let forms = this.forms.get(name);
    if (!forms) {
      if (this.forms.size > 5000) this.forms.clear();
      this.forms.set(name, (forms = formsOf(name)));
    }
    return forms;
  }

  /** A band from the least to the greatest reading of each column. Of running totals, how fast they grow. */
  private drawCounter(series: number, y: number, height: number, ratio: number, window: Window, { lanes, palette }: { lanes: Lanes; palette: Palette }, labels: Label[]): void {
    const { unit, isTotal } = lanes.series[series];
    const readings = lanes.counters(Math.floor(series / SERIES_OF_BLOCK)).flatMap(({ tile, cover }) => readingsOf(tile, cover, lanes.grids.counters, series));
    // Neighbouring tiles of level 0 share readings.
    const points = readings.sort((a, b) => a.time - b.time).filter(({ time }, at) => at === 0 || time > readings[at - 1].time);
    const bands = isTotal ? growth(points) : points.map((point, at) => ({ ...point, until: points[at + 1]?.time ?? Infinity }));
    const shown = bands.filter(({ time, until }) => until > window.from && time < window.to);
    if (shown.length === 0) return;
    const greatest = shown.reduce((greatest, { most }) => Math.max(greatest, most), 0);
    // A CPU in full is the least height, so that idle processes look idle.
    const scaleTop = isTotal && unit === "ns" ? Math.max(greatest, 1e9) : greatest;
    const least = shown.reduce((least, band) => Math.min(least, band.least), 0);
    const [top, bottom] = [y + Math.round(4 * ratio), y + Math.round((height - 3) * ratio)];
    const at = (value: number) => bottom - ((value - least) / (scaleTop - least || 1)) * (bottom - top);
    const scale = window.width / (window.to - window.from);
    const [line, area] = [palette.series[0], palette.selected];
    for (const band of shown) {
      const left = Math.max(0, Math.round((band.time - window.from) * scale));
      const right = Math.min(window.width, Math.max(left + 1, Math.round((band.until - window.from) * scale)));
      const [high, low] = [Math.round(at(band.most)), Math.round(at(band.least))];
      this.painter.fill(left, high, right, bottom, area);
      this.painter.fill(left, high, right, Math.max(low, high + Math.max(1, Math.round(ratio))), line);
    }
    const text = isTotal && unit === "ns" ? `${(greatest / 1e7).toFixed(0)} % of a CPU` : weight(greatest, isTotal ? `${unit}/s` : unit);
    labels.push({ text: `at most ${text}`, left: 0, right: window.width, middle: top + Math.round(5 * ratio), isSoft: true });
  }
}

export interface Band {
  time: number;
  until: number;
  least: number;
  most: number;
  last: number;
  /** When the last value was read: the end of a bucket. */
  read: number;
}

function readingsOf({ table, rows }: Tile, { address, from, to }: Cover, grid: Grid, series: number): Band[] {
  const [first, end] = rows.get(series) ?? [0, 0];
  if (first === end) return [];
  const bands: Band[] = [];
  if (address.level === 0) {
    const [times, values] = [numbers(table, "time"), numbers(table, "value")];
    for (let row = first; row < end; row++) {
      const value = values[row];
      bands.push({ time: times[row], until: times[Math.min(row + 1, end - 1)], least: value, most: value, last: value, read: times[row] });
    }
    return bands;
  }
  const length = bucketLength(grid, address.level);
  const origin = address.tile * tileLength(grid, address.level);
  const [buckets, lengths] = [integers(table, "bucket"), integers(table, "length")];
  const [least, most, last] = ["least", "most", "last"].map((name) => numbers(table, name));
  for (let row = first; row < end; row++) {
    const time = origin + buckets[row] * length;
    const until = time + lengths[row] * length;
    if (until > from && time < to) bands.push({ time, until, least: least[row], most: most[row], last: last[row], read: until });
  }
  return bands;
}

/** Growth per second between readings. */
export function growth(points: Band[]): Band[] {
  return points.slice(1).flatMap((point, at) => {
    const before = points[at];
    const seconds = (point.read - before.read) / 1e9;
    if (seconds <= 0) return [];
    const rate = Math.max(0, (point.last - before.last) / seconds);
    return [{ time: before.read, until: point.read, least: rate, most: rate, last: rate, read: point.read }];
  });
}

/** A state in words. */
export function said(state: string): string {
  return state === "no_stack" ? "blocked, no stack" : state.replace("_", " ");
}

function cutTo(text: string, room: number): string {
  const columns = Math.floor(room / CHARACTER);
  const fitted = text.length <= columns ? text : cut(text, Math.max(2, columns));
  return tells(fitted) ? fitted : "";
}

/** Whether enough of a name is left to be of use. */
function tells(text: string): boolean {
  return !text.endsWith("…") || text.length > 6;
}
