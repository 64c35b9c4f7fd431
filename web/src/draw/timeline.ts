// The timeline's picture: an overview, an axis, lanes of threads and CPUs with nested scopes, counters, and over them steps, the critical path,
// wake-ups and the selection.

import { cut } from "../label.ts";
import { weight } from "../units.ts";
import type { WakeUp } from "../profile/intervals.ts";
import { LANE_HEIGHT, rowsIn, type Row } from "../profile/lanes.ts";
import { ticks } from "../profile/ticks.ts";
import { faded } from "./ink.ts";
import { painterOf, type Painter } from "./raster.ts";
import type { Surface } from "./surface.ts";
import { LanePainter, type Label, type Lanes } from "./timeline_lanes.ts";
import type { Palette } from "./timeline_palette.ts";

export const OVERVIEW_HEIGHT = 26;
export const AXIS_HEIGHT = 20;
/** Where the lanes start. */
export const HEAD = OVERVIEW_HEIGHT + AXIS_HEIGHT;

export interface PathParts {
  threads: Int32Array;
  starts: Float64Array;
  ends: Float64Array;
  isExact: boolean;
}

/** All that the picture shows. Times in ns, heights in CSS pixels. */
export interface Scene {
  from: number;
  to: number;
  duration: number;
  rows: Row[];
  /** The height of the rows that is at the upper edge. */
  top: number;
  /** Width of the names. */
  gutter: number;
  lanes: Lanes;
  palette: Palette;
  /** Share of the CPUs in use, over the whole recording. */
  overview: Float32Array;
  stepStarts: Float64Array;
  path: PathParts | undefined;
  wakeUps: WakeUp[];
  ticks: { times: Float64Array; threads: Int32Array } | undefined;
  /** Selected ranges of time. */
  selected: [number, number][];
  /** Selected threads. */
  threads: readonly number[];
  hover: { x: number; y: number } | undefined;
  at: { lane: number; time: number } | undefined;
  measure: [number, number] | undefined;
}

/** Draws scenes on a surface. */
export class TimelinePicture {
  private readonly surface: Surface;
  private readonly painter: Painter;
  private readonly lanePainter: LanePainter;

  constructor(surface: Surface) {
    this.surface = surface;
    this.painter = painterOf(surface);
    this.lanePainter = new LanePainter(this.painter);
  }

  draw(scene: Scene): void {
    const { surface } = this;
    surface.begin(scene.palette.ground);
    const rows = rowsIn(scene.rows, scene.top, scene.top + surface.height - HEAD);
    const labels = this.drawRows(scene, rows);
    this.drawNames(scene, rows);
    surface.clip(scene.gutter, 0, surface.width - scene.gutter, surface.height);
    this.drawSteps(scene);
    this.drawLabels(scene, labels);
    this.drawTicks(scene, rows);
    this.drawPath(scene, rows);
    this.drawWakeUps(scene, rows);
    this.drawSelection(scene);
    this.drawChosen(scene, rows);
    this.drawMeasure(scene);
    surface.unclip();
    this.drawAxis(scene);
    this.drawOverview(scene);
    this.drawScrollbar(scene);
    surface.end();
  }

  private x(scene: Scene, time: number): number {
    return scene.gutter + ((time - scene.from) / (scene.to - scene.from)) * (this.surface.width - scene.gutter);
  }

  private y(scene: Scene, row: Row): number {
    return HEAD + row.y - scene.top;
  }

  private drawRows(scene: Scene, rows: Row[]): Label[] {
    const { surface, painter } = this;
    const { ratio } = surface;
    const width = Math.round((surface.width - scene.gutter) * ratio);
    const height = Math.round((surface.height - HEAD) * ratio);
    painter.begin(width, height, scene.palette.ground);
    const labels: Label[] = [];
    const window = { from: scene.from, to: scene.to, width };
    for (const row of rows) this.lanePainter.draw(row, Math.round((row.y - scene.top) * ratio), ratio, window, scene, labels);
    painter.end(scene.gutter, HEAD);
    return labels;
  }

  private drawNames(scene: Scene, rows: Row[]): void {
    const { surface } = this;
    const { palette, gutter } = scene;
    surface.clip(0, HEAD, surface.width, surface.height - HEAD);
    surface.rectangle(0, HEAD, gutter, surface.height - HEAD, palette.panel);
    for (const row of rows) {
      const y = this.y(scene, row);
      if (row.kind === "heading" || row.kind === "idle") {
        surface.rectangle(0, y, surface.width, row.height, row.kind === "heading" ? palette.raised : palette.panel);
        const isClosed = row.kind === "heading" ? row.closed : !row.shown;
        surface.text(isClosed ? "▸" : "▾", 6, y + row.height / 2, palette.soft, "small");
        surface.text(row.text, 18, y + row.height / 2, row.kind === "heading" ? palette.text : palette.soft);
        continue;
      }
      const middle = y + (row.kind === "lane" ? LANE_HEIGHT : row.height) / 2;
      const detail = row.kind === "lane" ? this.shareOf(scene, row.lane) : "";
      const name = row.kind === "lane" ? row.lane.name : row.text;
      if (row.kind === "lane" && scene.threads.includes(row.lane.lane)) {
        surface.rectangle(0, y, gutter, row.height - 1, palette.selected);
        surface.rectangle(0, y, 4, row.height - 1, palette.accent);
      }
      const room = gutter - 22 - (detail ? surface.measure(detail, "small") + 8 : 0);
      surface.text(row.kind === "lane" ? this.fittedName(row.lane, room) : this.fitted(name, room), 16, middle, palette.text);
      if (detail) surface.text(detail, gutter - 6 - surface.measure(detail, "small"), middle, palette.soft, "small");
      surface.rectangle(0, y + row.height - 1, surface.width, 1, faded(palette.line, 0.6));
    }
    surface.rectangle(gutter - 1, HEAD, 1, surface.height - HEAD, palette.strongLine);
    surface.unclip();
  }

  /** The part of the recording that a thread runs, or a CPU is in use. */
  private shareOf({ duration }: Scene, { running }: { running: number }): string {
    const share = (running / duration) * 100;
    return share >= 10 ? `${share.toFixed(0)} %` : share >= 0.05 ? `${share.toFixed(1)} %` : "";
  }

  /** An id at the end of a name tells it apart from others, so the name is cut before it. */
  private fittedName({ name, tid }: { name: string; tid: number }, room: number): string {
    const end = ` ${tid}`;
    if (!name.endsWith(end) || this.surface.measure(name) <= room) return this.fitted(name, room);
    return this.fitted(name.slice(0, -end.length), room - this.surface.measure(end)) + end;
  }

  private fitted(text: string, room: number): string {
    const whole = this.surface.measure(text);
    return whole <= room ? text : cut(text, Math.max(2, Math.floor((room / whole) * text.length)));
  }

  private drawLabels({ gutter, palette }: Scene, labels: Label[]): void {
    const { surface } = this;
    const { ratio } = surface;
    for (const { text, left, middle, isSoft } of labels) {
      surface.text(text, gutter + left / ratio + 4, HEAD + middle / ratio, isSoft ? palette.soft : palette.stateText, "small");
    }
  }

  /** Borders of steps, where they are not too close. */
  private drawSteps(scene: Scene): void {
    const { stepStarts, from, to, palette } = scene;
    const first = lowerBound(stepStarts, from);
    const end = lowerBound(stepStarts, to);
    if (end - first > (this.surface.width - scene.gutter) / 5) return;
    for (let step = first; step < end; step++) {
      this.surface.rectangle(this.x(scene, stepStarts[step]), HEAD - 5, 1, this.surface.height, faded(palette.strongLine, 0.75));
    }
  }

  private drawTicks(scene: Scene, rows: Row[]): void {
    if (!scene.ticks) return;
    const places = placesOf(rows);
    const { times, threads } = scene.ticks;
    for (let at = 0; at < times.length; at++) {
      const row = places.get(threads[at]);
      if (row) this.surface.rectangle(this.x(scene, times[at]), this.y(scene, row) + LANE_HEIGHT - 5, 1, 4, scene.palette.text);
    }
  }

  private drawPath(scene: Scene, rows: Row[]): void {
    const { path, palette } = scene;
    if (!path) return;
    const { surface } = this;
    const places = placesOf(rows);
    let before: number | undefined;
    for (let at = 0; at < path.threads.length; at++) {
      const row = places.get(path.threads[at]);
      const y = row && this.y(scene, row);
      const [left, right] = [this.x(scene, path.starts[at]), this.x(scene, path.ends[at])];
      if (y !== undefined) surface.rectangle(left, y, Math.max(1, right - left), 3, palette.critical);
      const isNext = path.isExact && at > 0 && path.threads[at] !== path.threads[at - 1] && path.starts[at] === path.ends[at - 1];
      if (isNext && y !== undefined && before !== undefined) surface.rectangle(left - 1, Math.min(y, before), 2, Math.abs(y - before) + 3, palette.critical);
      before = y;
    }
  }

  private drawWakeUps(scene: Scene, rows: Row[]): void {
    const { surface } = this;
    const places = placesOf(rows);
    const ink = scene.palette.accent;
    for (const { time, waker, woken } of scene.wakeUps) {
      const [from, to] = [places.get(waker), places.get(woken)];
      if (!from || !to) continue;
      const x = this.x(scene, time);
      const [start, end] = [this.y(scene, from) + LANE_HEIGHT / 2, this.y(scene, to) + LANE_HEIGHT / 2];
      const back = end > start ? -5 : 5;
      surface.line(x, start, x, end, 1, ink);
      surface.line(x, end, x - 3, end + back, 1, ink);
      surface.line(x, end, x + 3, end + back, 1, ink);
      surface.rectangle(x - 1, start - 1, 3, 3, ink);
    }
  }

  /** What is not selected is dimmed. */
  private drawSelection(scene: Scene): void {
    const { selected, palette } = scene;
    if (selected.length === 0) return;
    const { surface } = this;
    const height = surface.height - HEAD;
    const veil = faded(palette.ground, 0.55);
    let x = scene.gutter;
    for (const [from, to] of selected) {
      const [left, right] = [Math.max(x, this.x(scene, from)), this.x(scene, to)];
      if (right <= scene.gutter) continue;
      if (left > x) surface.rectangle(x, HEAD, Math.min(left, surface.width) - x, height, veil);
      surface.rectangle(left, HEAD - 3, Math.max(1, right - left), 3, palette.accent);
      if (selected.length < 50) {
        surface.rectangle(left, HEAD, 1, height, palette.accent);
        surface.rectangle(right - 1, HEAD, 1, height, palette.accent);
      }
      x = Math.max(x, right);
      if (x > surface.width) return;
    }
    surface.rectangle(x, HEAD, surface.width - x, height, veil);
  }

  private drawChosen(scene: Scene, rows: Row[]): void {
    const { at, hover, palette } = scene;
    const { surface } = this;
    const row = at && placesOf(rows).get(at.lane);
    if (at && row) {
      const x = this.x(scene, at.time);
      const y = this.y(scene, row);
      surface.rectangle(x - 1, y - 3, 3, LANE_HEIGHT + 6, palette.text);
    }
    if (hover && hover.x > scene.gutter) surface.rectangle(hover.x, HEAD, 1, surface.height, faded(palette.soft, 0.5));
  }

  private drawMeasure(scene: Scene): void {
    if (!scene.measure) return;
    const { surface } = this;
    const [from, to] = [Math.min(...scene.measure), Math.max(...scene.measure)];
    const [left, right] = [this.x(scene, from), this.x(scene, to)];
    const { accent, ground } = scene.palette;
    surface.rectangle(left, HEAD, 1, surface.height, accent);
    surface.rectangle(right, HEAD, 1, surface.height, accent);
    surface.rectangle(left, HEAD + 10, right - left, 1, accent);
    const text = weight(to - from, "ns");
    const width = surface.measure(text) + 10;
    const x = Math.min(Math.max((left + right - width) / 2, scene.gutter), surface.width - width);
    surface.rectangle(x, HEAD + 2, width, 17, accent);
    surface.text(text, x + 5, HEAD + 10.5, ground);
  }

  private drawAxis(scene: Scene): void {
    const { surface } = this;
    const { palette, from, to, gutter } = scene;
    const y = OVERVIEW_HEIGHT;
    surface.rectangle(0, y, surface.width, AXIS_HEIGHT, palette.panel);
    surface.rectangle(0, y + AXIS_HEIGHT - 1, surface.width, 1, palette.strongLine);
    const { times, text } = ticks(from, to, ((to - from) / Math.max(1, surface.width - gutter)) * 92);
    for (const time of times) {
      const x = this.x(scene, time);
      if (x < gutter) continue;
      surface.rectangle(x, y + AXIS_HEIGHT - 6, 1, 6, palette.strongLine);
      const label = text(time);
      if (x + surface.measure(label, "small") < surface.width) surface.text(label, x + 3, y + 8, palette.soft, "small");
    }
    surface.text(`${weight(to - from, "ns")} shown`, 8, y + AXIS_HEIGHT / 2, palette.soft, "small");
  }

  /** The whole recording: how much of the CPUs is used, and which part the lanes show. */
  private drawOverview(scene: Scene): void {
    const { surface } = this;
    const { palette, gutter, overview, duration } = scene;
    const width = surface.width - gutter;
    surface.rectangle(0, 0, surface.width, OVERVIEW_HEIGHT, palette.panel);
    surface.text("Recording", 8, OVERVIEW_HEIGHT / 2, palette.soft, "small");
    const height = OVERVIEW_HEIGHT - 4;
    const column = width / Math.max(1, overview.length);
    for (let at = 0; at < overview.length; at++) {
      const high = Math.min(1, overview[at]) * height;
      if (high > 0) surface.rectangle(gutter + at * column, OVERVIEW_HEIGHT - 2 - high, Math.ceil(column), Math.max(1, high), palette.states[0]);
    }
    const left = gutter + Math.max(0, scene.from / duration) * width;
    const right = gutter + Math.min(1, scene.to / duration) * width;
    const veil = faded(palette.panel, 0.65);
    surface.rectangle(gutter, 0, left - gutter, OVERVIEW_HEIGHT, veil);
    surface.rectangle(right, 0, surface.width - right, OVERVIEW_HEIGHT, veil);
    surface.rectangle(left, 0, 2, OVERVIEW_HEIGHT, palette.accent);
    surface.rectangle(right - 2, 0, 2, OVERVIEW_HEIGHT, palette.accent);
    surface.rectangle(0, OVERVIEW_HEIGHT - 1, surface.width, 1, palette.line);
  }

  private drawScrollbar(scene: Scene): void {
    const { surface } = this;
    const room = surface.height - HEAD;
    const last = scene.rows.at(-1);
    const height = last ? last.y + last.height : 0;
    if (height <= room) return;
    const length = Math.max(24, (room / height) * room);
    const y = HEAD + (scene.top / (height - room)) * (room - length);
    surface.rectangle(surface.width - 7, HEAD, 7, room, faded(scene.palette.panel, 0.8));
    surface.rectangle(surface.width - 6, y, 5, length, faded(scene.palette.soft, 0.6));
  }
}

/** The row of each lane. */
function placesOf(rows: Row[]): Map<number, Row> {
  return new Map(rows.flatMap((row) => (row.kind === "lane" ? [[row.lane.lane, row] as const] : [])));
}

/** The first index whose value is not less. */
function lowerBound(values: Float64Array, least: number): number {
  let [low, high] = [0, values.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (values[middle] < least) low = middle + 1;
    else high = middle;
  }
  return low;
}

