// Draws the bars of steps: longest and median of each bar, the budget and the RTF as lines, what is selected.

import { faded, ink, mixed } from "../../draw/ink.ts";
import type { Ink, Surface } from "../../draw/surface.ts";
import { MARK, type Bars } from "../../profile/steps.ts";
import { weight } from "../../units.ts";

/** Pixels left of the bars, for the axis. */
export const GUTTER = 58;
const RIGHT = 8;
const FACTOR_HEIGHT = 26;
const TOP = 8;
const BOTTOM = 4;
/** Height of the mark at the foot of a bar with a stall or a slow step. */
const FOOT = 5;

/** Colours, read from the style sheet whenever the theme changes. */
export interface Inks {
  ground: Ink;
  line: Ink;
  text: Ink;
  soft: Ink;
  bar: Ink;
  upper: Ink;
  pacing: Ink;
  slow: Ink;
  stall: Ink;
  budget: Ink;
  factor: Ink;
  selected: Ink;
}

export function readInks(): Inks {
  const style = getComputedStyle(document.documentElement);
  const of = (name: string) => ink(style.getPropertyValue(name) || "#808080");
  const [ground, accent] = [of("--ground"), of("--accent")];
  return {
    ground,
    line: of("--line"),
    text: of("--text"),
    soft: of("--soft"),
    bar: mixed(ground, accent, 0.62),
    upper: accent,
    pacing: mixed(ground, of("--blocked"), 0.28),
    slow: of("--runnable"),
    stall: of("--critical"),
    budget: of("--budget"),
    factor: of("--calm"),
    selected: of("--selected"),
  };
}

/** What is drawn. */
export interface Scene {
  bars: Bars;
  /** Shares of the selection: for each bar the part of its steps that are selected, 0 to 1; absent without a selection. */
  selected: Float64Array | undefined;
  /** RTF around each bar; absent if no step has a simulated time. */
  factors: Float64Array | undefined;
  budget: number | undefined;
  /** Time at the upper edge. */
  most: number;
  /** How many bars fill the width: more than there are where two strips have one scale. */
  across: number;
  /** Bar under the pointer. */
  hovered: number | undefined;
  /** Bars being brushed, first and last. */
  brushed: [number, number] | undefined;
}

/** Where the bars are, in CSS pixels. */
export class Area {
  readonly left = GUTTER;
  readonly top: number;
  readonly width: number;
  readonly height: number;
  private readonly across: number;

  constructor(width: number, height: number, hasFactors: boolean, across: number) {
    this.top = TOP + (hasFactors ? FACTOR_HEIGHT : 0);
    this.width = Math.max(1, width - GUTTER - RIGHT);
    this.height = Math.max(1, height - this.top - BOTTOM - FOOT);
    this.across = Math.max(1, across);
  }

  x(bar: number): number {
    return this.left + (bar / this.across) * this.width;
  }

  /** The bar at a place, not rounded to those that there are. */
  bar(x: number): number {
    return Math.floor(((x - this.left) / this.width) * this.across);
  }
}

export function paint(surface: Surface, scene: Scene, inks: Inks): void {
  const { bars, across, factors } = scene;
  const area = new Area(surface.width, surface.height, factors !== undefined, across);
  surface.begin(inks.ground);
  paintScale(surface, area, scene, inks);
  const bottom = area.top + area.height;
  const y = (time: number) => bottom - Math.min(1, time / scene.most) * area.height;
  const gap = area.width / across >= 5 ? 1 : 0;
  for (let bar = 0; bar < bars.longest.length; bar++) {
    const [x, width] = [area.x(bar), Math.max(0.5, area.x(bar + 1) - area.x(bar) - gap)];
    const share = scene.selected?.[bar];
    const isIn = (scene.brushed && bar >= scene.brushed[0] && bar <= scene.brushed[1]) || (share ?? 0) > 0;
    if (isIn) surface.rectangle(x, area.top - 2, width + gap, area.height + FOOT + 4, inks.selected);
    const strength = scene.selected === undefined || isIn ? 1 : 0.4;
    const rise = (time: number, colour: Ink) => surface.rectangle(x, y(time), width, bottom - y(time), faded(colour, strength));
    const marks = bars.marks[bar];
    const isOne = bars.first[bar + 1] - bars.first[bar] === 1;
    const colour = isOne && marks & MARK.upper ? inks.upper : inks.bar;
    if (bars.clock[bar] > bars.longest[bar]) rise(bars.clock[bar], inks.pacing);
    rise(bars.longest[bar], colourOf(marks, colour, inks, bars.longest[bar] > bars.median[bar]));
    if (bars.longest[bar] > bars.median[bar]) rise(bars.median[bar], colour);
    // Colour alone does not tell: a foot marks slow steps, a cap and a taller foot stalls.
    const isStall = (marks & MARK.stall) !== 0;
    if (isStall || (marks & MARK.slow && !(marks & MARK.upper))) {
      surface.rectangle(x, bottom + 1, Math.max(2, width), isStall ? FOOT : FOOT - 3, isStall ? inks.stall : inks.slow);
    }
    // What is cut has a cap: work in the colour of stalls, pacing in a soft one.
    if (bars.longest[bar] > scene.most) surface.rectangle(x - 1, area.top - 3, Math.max(3, width + 2), 3, inks.stall);
    else if (bars.clock[bar] > scene.most) surface.rectangle(x, area.top - 3, Math.max(1, width), 2, faded(inks.soft, strength));
    if (bar === scene.hovered) surface.rectangle(x, area.top - 2, Math.max(1, width), area.height + FOOT + 4, faded(inks.text, 0.18));
  }
  if (scene.budget !== undefined && scene.budget <= scene.most) paintBudget(surface, area, y(scene.budget), scene.budget, inks);
  if (factors) paintFactors(surface, area, factors, inks);
  surface.end();
}

/** A bar of one step has the colour of its class; of several, the part beyond their median has it. */
function colourOf(marks: number, plain: Ink, inks: Inks, isBeyond: boolean): Ink {
  if (marks & MARK.stall) return inks.stall;
  if (marks & MARK.slow && !(marks & MARK.upper)) return inks.slow;
  return isBeyond ? mixed(inks.ground, plain, 0.55) : plain;
}

function paintScale(surface: Surface, area: Area, { most }: Scene, inks: Inks): void {
  for (const time of ticks(most)) {
    const y = area.top + area.height * (1 - time / most);
    surface.rectangle(area.left, y, area.width, 1, inks.line);
    const label = weight(time, "ns");
    surface.text(label, area.left - 6 - surface.measure(label, "small"), y, inks.soft, "small");
  }
}

/** Two or three round times up to `most`. */
export function ticks(most: number): number[] {
  if (!(most > 0)) return [0];
  const power = 10 ** Math.floor(Math.log10(most));
  const step = [0.2, 0.5, 1, 2, 5].map((factor) => factor * power).find((step) => most / step <= 3.5) ?? power;
  return Array.from({ length: Math.floor(most / step + 1e-9) + 1 }, (_, at) => at * step);
}

function paintBudget(surface: Surface, area: Area, y: number, budget: number, inks: Inks): void {
  for (let x = area.left; x < area.left + area.width; x += 9) surface.rectangle(x, y, 5, 1.5, inks.budget);
  const label = `budget ${weight(budget, "ns")}`;
  const width = surface.measure(label, "small");
  surface.rectangle(area.left + area.width - width - 8, y - 14, width + 8, 12, faded(inks.ground, 0.85));
  surface.text(label, area.left + area.width - width - 4, y - 8, inks.budget, "small");
}

function paintFactors(surface: Surface, area: Area, factors: Float64Array, inks: Inks): void {
  const most = Math.max(1.05, factors.reduce((most, factor) => (factor > most ? factor : most), 0));
  const [top, height] = [4, FACTOR_HEIGHT - 6];
  const y = (factor: number) => top + height * (1 - factor / most);
  for (let x = area.left; x < area.left + area.width; x += 9) surface.rectangle(x, y(1), 5, 1, inks.line);
  surface.text("RTF 1", area.left - 6 - surface.measure("RTF 1", "small"), Math.max(7, y(1)), inks.soft, "small");
  surface.rectangle(area.left, y(0), area.width, 1, inks.line);
  let before: [number, number] | undefined;
  let [last, lastX] = [NaN, 0];
  factors.forEach((factor, bar) => {
    if (Number.isNaN(factor)) return void (before = undefined);
    const point: [number, number] = [(area.x(bar) + area.x(bar + 1)) / 2, y(factor)];
    if (before) surface.line(...before, ...point, 1.5, inks.factor);
    before = point;
    [last, lastX] = [factor, point[0]];
  });
  if (Number.isNaN(last)) return;
  // The last value, because a line has no figures.
  const label = `RTF ${last < 0.1 ? last.toFixed(3) : last.toFixed(2)}`;
  const width = surface.measure(label, "small");
  const middle = Math.min(top + height - 5, Math.max(top + 6, y(last) + (y(last) > top + height / 2 ? -8 : 9)));
  const left = Math.min(Math.max(area.left + 2, lastX - width - 4), area.left + area.width - width - 4);
  surface.rectangle(left - 4, middle - 6, width + 8, 12, faded(inks.ground, 0.85));
  surface.text(label, left, middle, inks.factor, "small");
}
