// The timeline's picture in the page: follows the view's state, asks for what it shows, and draws once per frame.

import { effect, signal } from "@preact/signals";
import { HEAD, TimelinePicture, type PathParts, type Scene } from "../../draw/timeline.ts";
import { readPalette, type Palette } from "../../draw/timeline_palette.ts";
import { createSurface, type Surface } from "../../draw/surface.ts";
import type { Span } from "../../profile/address.ts";
import { integers, type Table } from "../../profile/columns.ts";
import { rowAtTime, scopeKey, type Interval } from "../../profile/intervals.ts";
import { arrange, heightOf, LANE_HEIGHT, rowAt, rowsIn, SCOPE_HEIGHT, type Lane, type Row } from "../../profile/lanes.ts";
import { loopsOf, stepIntervals } from "../../profile/steps.ts";
import type { Answer } from "../../worker/queries.ts";
import { areTooMany } from "../../worker/timeline.ts";
import { adjust, adjustSelection, at, capture, client, closed, entry, go, hidden, idleShown, laneSort, lastPart, select, selection, span } from "../state.ts";
import { isDark } from "../theme.ts";
import { bounded, keyed, listen, type Target } from "./gestures.ts";
import { measured, measuring, scopeRows, shows, toggle, toggleMeasuring } from "./options.ts";
import type { LaneSource } from "./source.ts";

/** What is under the pointer. */
export interface Pointed {
  x: number;
  y: number;
  time: number;
  lane: Lane | undefined;
  /** What the thread does there, if single intervals are shown. */
  interval: Interval | undefined;
  /** The scope under the pointer. */
  scope: { name: string; start: number; end: number } | undefined;
}

/** Samples beyond this number are not drawn. */
const MOST_TICKS = 4000;
/** Evidence over the lanes is asked for when the view has been still for this long, in ms. */
const STILL = 80;
/** Columns of the overview. */
const OVERVIEW = 600;

export class Timeline {
  readonly pointed = signal<Pointed | undefined>(undefined);
  /** Rows in view, for the table of screen readers. */
  readonly visible = signal<Lane[]>([]);
  /** A sentence on evidence that is too dense to show. */
  readonly hint = signal("");
  private readonly surface: Surface;
  private readonly picture: TimelinePicture;
  private source: LaneSource;
  /** What takes the source's place as soon as its tiles are here. */
  private next: LaneSource | undefined;
  private steps: Table | undefined;
  private readonly arranged = signal(0);
  private rows: Row[] = [];
  private top = 0;
  private shown: Span;
  private frame = 0;
  private still: ReturnType<typeof setTimeout> | undefined;
  private written: ReturnType<typeof setTimeout> | undefined;
  private path: PathParts | undefined;
  private ticks: Answer<"ticks"> | undefined;
  private colours: Palette | undefined;
  private overview: Float32Array = new Float32Array();
  private isOverviewNew = true;
  private width = 0;
  private height = 0;
  private isEnded = false;
  private isMarked = false;
  private readonly ends: (() => void)[] = [];

  constructor(host: HTMLElement, source: LaneSource, steps: Table | undefined) {
    this.source = source;
    this.steps = steps;
    this.shown = wantedSpan(source);
    this.surface = createSurface(() => this.redraw());
    this.surface.canvas.setAttribute("aria-hidden", "true");
    host.prepend(this.surface.canvas);
    this.picture = new TimelinePicture(this.surface);
    const observer = new ResizeObserver(([{ contentRect }]) => this.resize(contentRect.width, contentRect.height));
    observer.observe(host);
    this.ends.push(() => observer.disconnect(), listen(host, this.target));
    this.follow();
  }

  /** Ends it. */
  end(): void {
    this.isEnded = true;
    this.ends.forEach((end) => end());
    clearTimeout(this.still);
    clearTimeout(this.written);
    cancelAnimationFrame(this.frame);
    this.surface.dispose();
  }

  /** Shows other lanes, as those of a recording that went on. What is shown stays until they are here. */
  use(source: LaneSource, steps: Table | undefined): void {
    this.steps = steps;
    this.next = source;
    this.redraw();
  }

  /** Takes the next source if its tiles are here. */
  private turn(): void {
    const { next } = this;
    if (!next) return;
    const { from, to } = span.peek() ? this.shown : wantedSpan(next);
    const blocks = [...new Set(this.rowsShown().flatMap((row) => (row.kind === "lane" ? [next.laneOf(row.lane.lane)?.block ?? 0] : [])))];
    next.want("lanes", blocks.length > 0 ? blocks : [0], from, to, ((to - from) / (this.shown.to - this.shown.from)) * this.perPixel);
    if (!next.isComplete) return;
    this.source = next;
    this.next = undefined;
    this.isOverviewNew = true;
    this.arranged.value++;
    this.askForMore();
  }

  /** A tile has come. */
  tileCame(): void {
    this.isOverviewNew = true;
    this.redraw();
  }

  private follow(): void {
    this.ends.push(
      effect(() => {
        void this.arranged.value;
        const { processes, series, lanes, duration } = this.source;
        const arrangement = { sort: laneSort.value, closed: new Set(closed.value), idleShown: new Set(idleShown.value), depth: scopeRows.value };
        this.rows = arrange(lanes, processes, series, duration, arrangement);
        this.scroll(this.top);
      }),
      effect(() => {
        void this.arranged.value;
        const wanted = wantedSpan(this.source);
        // The state follows the picture with a delay while it moves.
        if (this.written === undefined) this.see(bounded(wanted.from, wanted.to, this.source.duration));
      }),
      effect(() => {
        void [selection.value, at.value, measured.value, isDark.value];
        this.redraw();
      }),
      effect(() => {
        void hidden.value;
        this.askForMore();
        this.redraw();
      }),
    );
  }

  private resize(width: number, height: number): void {
    this.width = Math.floor(width);
    this.height = Math.floor(height);
    this.surface.resize(this.width, this.height);
    this.scroll(this.top);
    this.askForMore();
  }

  private see(shown: Span): void {
    if (shown.from === this.shown.from && shown.to === this.shown.to) return;
    this.shown = shown;
    this.pointAgain();
    this.redraw();
    this.askForMore();
  }

  /** Something else is at the pointer after the picture has moved. */
  private pointAgain(): void {
    const pointed = this.pointed.peek();
    if (pointed) this.pointed.value = this.point(pointed.x, pointed.y);
  }

  private redraw(): void {
    if (!this.frame && !this.isEnded) this.frame = requestAnimationFrame(() => this.draw());
  }

  private scroll(top: number): void {
    const last = Math.max(0, heightOf(this.rows) - (this.height - HEAD));
    this.top = Math.min(Math.max(0, top), last);
    this.pointAgain();
    this.redraw();
  }

  private get gutter(): number {
    return this.width < 560 ? 96 : 190;
  }

  private get perPixel(): number {
    return (this.shown.to - this.shown.from) / Math.max(1, (this.width - this.gutter) * this.surface.ratio);
  }

  private rowsShown(): Row[] {
    return rowsIn(this.rows, this.top, this.top + this.height - HEAD);
  }

  private draw(): void {
    this.frame = 0;
    if (this.width < 20 || this.height < HEAD) return;
    this.turn();
    const { from, to } = this.shown;
    const { source } = this;
    const rows = this.rowsShown();
    const lanes = rows.flatMap((row) => (row.kind === "lane" ? [row.lane] : []));
    this.want(rows, lanes);
    if (this.isOverviewNew) {
      this.overview = source.overview(OVERVIEW);
      this.isOverviewNew = false;
    }
    const wakeUps = shows("wakeups") && source.showsIntervals(this.perPixel) ? source.wakeUps(lanes, from, to) : [];
    this.picture.draw({
      from,
      to,
      duration: source.duration,
      rows: this.rows,
      top: this.top,
      gutter: this.gutter,
      lanes: source.view(from, to, this.perPixel),
      palette: this.palette(),
      overview: this.overview,
      stepStarts: this.stepStarts(),
      path: shows("path") ? this.path : undefined,
      wakeUps: wakeUps ?? [],
      ticks: shows("samples") ? this.ticks : undefined,
      selected: this.selectedRanges(),
      threads: selection.peek().threads ?? [],
      hover: this.pointed.peek(),
      at: at.peek(),
      measure: measured.peek(),
    } satisfies Scene);
    this.visible.value = same(this.visible.peek(), lanes) ? this.visible.peek() : lanes;
    this.hint.value = this.hintOf(wakeUps === undefined);
    if (!this.isMarked && source.isComplete) {
      this.isMarked = true;
      performance.mark("stepscope-timeline");
    }
  }

  private hintOf(hidesWakeUps: boolean): string {
    if (this.source.entry.lanes.finest) return "This page had no room for finer lanes. `stepscope view` shows them.";
    if (!this.source.entry.switches) return "Context switches were not recorded: threads are known to run only where they have samples.";
    const parts = [shows("wakeups") && (hidesWakeUps || !this.source.showsIntervals(this.perPixel)) && "wake-ups", shows("samples") && (this.ticks?.total ?? 0) > MOST_TICKS && "samples"];
    const hidden = parts.filter(Boolean).join(" and ");
    return hidden && `Zoom in for ${hidden}.`;
  }

  private want(rows: Row[], lanes: Lane[]): void {
    const { from, to } = this.shown;
    const blocks = [...new Set(lanes.map(({ block }) => block))];
    this.source.want("lanes", blocks, from, to, this.perPixel);
    const nested = [...new Set(rows.flatMap((row) => (row.kind === "lane" && row.scopes > 0 ? [row.lane.block] : [])))];
    if (nested.length > 0) this.source.want("scopes", nested, from, to, this.perPixel);
    const counters = [...new Set(rows.flatMap((row) => (row.kind === "counter" ? [Math.floor(row.series / 32)] : [])))];
    if (counters.length > 0) this.source.want("counters", counters, from, to, this.perPixel);
  }

  /** Asks for the critical path and the samples of the view when it is still. */
  private askForMore(): void {
    clearTimeout(this.still);
    this.still = setTimeout(() => {
      const { from, to } = this.shown;
      const tables = entry.peek()?.tables ?? {};
      const margin = (to - from) / 2;
      const common = { capture: capture.peek(), from: from - margin, to: to + margin };
      const take = <T>(answer: Promise<T>, keep: (answer: T) => void) =>
        answer.then(
          (answer) => {
            keep(answer);
            this.redraw();
          },
          () => undefined,
        );
      if (shows("path") && tables["path"]) void take(client().ask("path", { ...common, columns: this.width * 2 }), (path) => (this.path = path));
      const samples = tables["samples"] ?? 0;
      const isWhole = common.from <= 0 && common.to >= (entry.peek()?.duration ?? Infinity);
      if (isWhole && areTooMany(samples, MOST_TICKS)) {
        // They would all be fetched to see that they are too many.
        this.ticks = { times: new Float64Array(), threads: new Int32Array(), stacks: new Int32Array(), total: samples };
        this.redraw();
      } else if (shows("samples") && samples > 0) {
        const event = entry.peek()?.event ?? 0;
        void take(client().ask("ticks", { ...common, event, most: MOST_TICKS }), (ticks) => (this.ticks = ticks));
      }
    }, STILL);
  }

  /** Reading styles takes longer than drawing, so colours are read once for each theme. */
  private palette(): Palette {
    if (this.colours?.isDark !== isDark.peek()) this.colours = readPalette(document.documentElement, this.source.entry.states, isDark.peek());
    return this.colours;
  }

  private stepStarts(): Float64Array {
    return this.steps && this.steps.rows > 0 ? loopsOf(this.steps)[selection.peek().loop ?? 0]?.start ?? new Float64Array() : new Float64Array();
  }

  private selectedRanges(): [number, number][] {
    const { from, to } = selection.peek();
    if (from !== undefined && to !== undefined) return [[from, to]];
    const intervals = this.steps && this.steps.rows > 0 ? stepIntervals(this.steps, selection.peek()) : undefined;
    return intervals ? Array.from(intervals.start, (start, index): [number, number] => [start, intervals.end[index]]) : [];
  }

  /** From the start of what is selected to its end. */
  selectedSpan(): Span | undefined {
    const ranges = this.selectedRanges();
    return ranges.length > 0 ? { from: ranges[0][0], to: ranges[ranges.length - 1][1] } : undefined;
  }

  private point(x: number, y: number): Pointed {
    const time = this.shown.from + ((x - this.gutter) / Math.max(1, this.width - this.gutter)) * (this.shown.to - this.shown.from);
    const row = y >= HEAD ? rowAt(this.rows, y - HEAD + this.top) : undefined;
    const lane = row?.kind === "lane" ? row.lane : undefined;
    const reach = this.perPixel * 2;
    const isInBar = lane && row && y - HEAD + this.top - row.y < LANE_HEIGHT;
    const interval = isInBar && x >= this.gutter ? this.source.intervalAt(lane.lane, time, reach) : undefined;
    const depth = row && lane && !isInBar ? Math.floor((y - HEAD + this.top - row.y - LANE_HEIGHT) / SCOPE_HEIGHT) : -1;
    return { x, y, time, lane, interval, scope: lane && depth >= 0 && x >= this.gutter ? this.scopeAt(lane, depth, time, reach) : undefined };
  }

  private scopeAt(lane: Lane, depth: number, time: number, reach: number): Pointed["scope"] {
    const { from, to } = this.shown;
    for (const { tile, cover } of this.source.view(from, to, this.perPixel).scopes(lane.block)) {
      if (cover.address.level > 0 || time < cover.from || time >= cover.to) continue;
      const row = rowAtTime(tile, scopeKey(lane.lane, depth), time, reach);
      if (row < 0) return undefined;
      const { start, end } = tile.table.columns as { start: Float64Array; end: Float64Array };
      return { name: this.source.scopeNames[integers(tile.table, "name")[row]] ?? "", start: start[row], end: end[row] };
    }
    return undefined;
  }

  /** What the recording shows at a point, for gestures. */
  readonly target: Target = {
    width: () => this.width,
    height: () => this.height,
    gutter: () => this.gutter,
    duration: () => this.source.duration,
    span: () => this.shown,
    show: (shown) => this.show(shown),
    top: () => this.top,
    rowsHeight: () => heightOf(this.rows),
    scroll: (top) => this.scroll(top),
    hover: (point) => {
      this.pointed.value = point && this.point(point.x, point.y);
      this.redraw();
    },
    brush: (from, to, isDone) => {
      const range = { from: Math.max(0, Math.round(from)), to: Math.min(this.source.duration, Math.round(to)), steps: undefined, stepClass: undefined, stepTime: undefined };
      (isDone ? select : adjustSelection)(range);
    },
    click: (x, y) => this.click(x, y),
    open: (x, y) => void this.open(x, y),
    measures: () => measuring.peek(),
    measure: (from, to) => (measured.value = [from, to]),
  };

  /** Shows another part. The state follows when the picture is still for a moment. */
  show(shown: Span): void {
    this.see(shown);
    clearTimeout(this.written);
    this.written = setTimeout(() => {
      this.written = undefined;
      const { from, to } = this.shown;
      const isAll = from <= 0 && to >= this.source.duration;
      adjust({ span: isAll ? undefined : { from: Math.round(from), to: Math.round(to) } });
    }, 120);
  }

  private click(x: number, y: number): void {
    const row = y >= HEAD ? rowAt(this.rows, y - HEAD + this.top) : undefined;
    if (row?.kind === "heading") return toggle("closed", row.name);
    if (row?.kind === "idle") return toggle("idleShown", row.name);
    if (x < this.gutter) return row?.kind === "lane" && row.lane.lane >= 0 ? this.selectThread(row.lane.lane) : undefined;
    const { lane, time, interval } = this.point(x, y);
    if (!lane) return at.peek() && go({ at: undefined });
    const moment = interval ? Math.min(Math.max(time, interval.start), interval.end - Math.min(1, interval.end - interval.start)) : time;
    go({ at: { lane: lane.lane, time: Math.max(0, Math.round(moment)) } });
  }

  /** A click on a name selects the thread; another one takes that back. */
  private selectThread(thread: number): void {
    const threads = selection.peek().threads ?? [];
    const left = threads.includes(thread) ? threads.filter((other) => other !== thread) : [...threads, thread];
    select({ threads: left.length > 0 ? left : undefined });
  }

  /** Zooms to an interval, with some room around it. */
  private async open(x: number, y: number): Promise<void> {
    const { lane, time, scope } = this.point(x, y);
    const interval = scope ?? (lane && (await this.source.findInterval(lane.lane, time, this.perPixel * 2)));
    if (!interval) return;
    const margin = Math.max((interval.end - interval.start) * 0.15, 50);
    this.show(bounded(interval.start - margin, interval.end + margin, this.source.duration));
  }

  /** Chooses the interval after or before the chosen one, on its lane. */
  async step(direction: -1 | 1): Promise<void> {
    const chosen = at.peek();
    if (!chosen) return;
    const interval = await this.source.findInterval(chosen.lane, chosen.time);
    if (!interval) return;
    const time = direction > 0 ? interval.end : interval.start - 1;
    if (time < 0 || time >= this.source.duration) return;
    go({ at: { lane: chosen.lane, time: Math.max(0, Math.ceil(time)) } });
    if (time < this.shown.from || time > this.shown.to) {
      const half = (this.shown.to - this.shown.from) / 2;
      this.show(bounded(time - half, time + half, this.source.duration));
    }
  }

  onKey(event: KeyboardEvent): void {
    const own: Record<string, () => void> = { ",": () => void this.step(-1), ".": () => void this.step(1), m: toggleMeasuring };
    const isHeld = event.ctrlKey || event.metaKey || event.altKey;
    const run = (isHeld ? undefined : own[event.key]) ?? keyed(event, this.target);
    if (!run) return;
    event.preventDefault();
    event.stopPropagation();
    run();
  }
}

/** What the view asks for: a span, the last seconds of a live recording, or all of it. */
function wantedSpan({ duration }: LaneSource): Span {
  if (span.value) return span.value;
  const part = lastPart.value;
  return part && part.from < duration ? { from: part.from, to: Math.min(part.to, duration) } : { from: 0, to: duration };
}

function same(a: Lane[], b: Lane[]): boolean {
  return a.length === b.length && a.every((lane, index) => lane === b[index]);
}
