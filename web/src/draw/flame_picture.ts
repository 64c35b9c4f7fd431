// The picture of a flame graph: draws what is in view, finds what is under the pointer, zooms and pans.

import { fit, formsOf, type Forms } from "../label.ts";
import { levelOf, type Flame } from "../profile/flame.ts";
import { luminance, mixed } from "./ink.ts";
import { createSurface, type Ink, type Surface } from "./surface.ts";

/** Height of a row in CSS pixels, with the gap between rows. */
export const ROW = 18;
/** Space between a frame's left edge and its label, in pixels. */
const THUMB = 6;
const INSET = 3;
/** Narrower frames have no label. */
const LABELLED = 22;
/** How far in a zoom may go: a millionth of a millionth of the whole, where 64-bit floats are still exact to a pixel. */
const NARROWEST = 1e-12;
const ANIMATION_MS = 160;

/** Colours of a picture. */
export interface PictureColours {
  ground: Ink;
  /** Of labels on light and on dark frames. */
  dark: Ink;
  light: Ink;
  hit: Ink;
  /** Around the frame that is reached by keyboard or chosen. */
  focus: Ink;
  /** By function, or by node. */
  inks: Uint32Array;
  inksAreByNode: boolean;
}

/** What part of the tree is in view: weights from the left, and the rows' offset in pixels. */
export interface Port {
  from: number;
  to: number;
  top: number;
}

export class FlamePicture {
  readonly surface: Surface;
  private flame: Flame | undefined;
  private names: readonly string[] = [];
  private colours: PictureColours | undefined;
  /** For each function, 1 if it matches the search. */
  private hits: Uint8Array | undefined;
  private port: Port = { from: 0, to: 1, top: 0 };
  /** Weight of all nodes of a level before each node, so that the weight between two nodes is a difference. */
  private before = new Float64Array(0);
  private focused = 0;
  private hovered = -1;
  private readonly forms = new Map<number, Forms>();
  /** The last label of each function, as most frames keep their width while the reader moves. */
  private readonly labels = new Map<number, { columns: number; text: string | undefined }>();
  private columnWidth = 7;
  private frame = 0;
  private animation = 0;
  /** Called after the view moved. */
  onMoved: () => void = () => {};

  constructor(preference?: "webgl" | "canvas") {
    this.surface = createSurface(() => this.redraw(), preference);
  }

  /** Shows a tree. The view stays if the tree's whole did, else it is all of it. */
  show(flame: Flame, names: readonly string[]): void {
    const isSame = this.flame?.total[0] === flame.total[0];
    this.flame = flame;
    if (this.names !== names) {
      this.forms.clear();
      this.labels.clear();
    }
    this.names = names;
    this.before = new Float64Array(flame.size + 1);
    for (let node = 0; node < flame.size; node++) this.before[node + 1] = this.before[node] + flame.total[node];
    this.focused = this.hovered = -1;
    if (!isSame) this.port = { from: 0, to: flame.total[0] || 1, top: 0 };
    this.redraw();
  }

  paint(colours: PictureColours): void {
    this.colours = colours;
    this.redraw();
  }

  highlight(hits: Uint8Array | undefined): void {
    this.hits = hits;
    this.redraw();
  }

  resize(width: number, height: number): void {
    if (width <= 0 || height <= 0) return;
    this.surface.resize(width, height);
    this.columnWidth = this.surface.measure("MMMMMMMMMM", "mono") / 10;
    this.move(this.port);
    this.draw();
  }

  /** Height of all rows in pixels. */
  get contentHeight(): number {
    return this.flame ? (this.flame.levels.length - 1) * ROW : 0;
  }

  get view(): Readonly<Port> {
    return this.port;
  }

  // Movement

  /** Moves the view, as far as there is something to see. */
  move({ from, to, top }: Port): void {
    if (!this.flame) return;
    const whole = this.flame.total[0] || 1;
    const width = Math.min(whole, Math.max(to - from, whole * NARROWEST));
    const left = Math.min(Math.max(0, from), whole - width);
    const lowest = Math.max(0, this.contentHeight - this.surface.height);
    this.port = { from: left, to: left + width, top: Math.min(Math.max(0, top), lowest) };
    this.redraw();
    this.onMoved();
  }

  pan(pixelsX: number, pixelsY: number): void {
    cancelAnimationFrame(this.animation);
    const shift = (pixelsX * (this.port.to - this.port.from)) / (this.surface.width || 1);
    this.move({ from: this.port.from + shift, to: this.port.to + shift, top: this.port.top + pixelsY });
  }

  /** Makes the view `factor` times as wide; what is at `x` stays there. */
  zoom(factor: number, x: number): void {
    cancelAnimationFrame(this.animation);
    const { from, to, top } = this.port;
    const at = from + ((to - from) * x) / (this.surface.width || 1);
    this.move({ from: at - (at - from) * factor, to: at + (to - at) * factor, top });
  }

  /** Makes a node fill the width, with some of its callers above it. */
  zoomTo(node: number, animate: boolean): void {
    if (!this.flame || node < 0 || node >= this.flame.size) return;
    const from = this.flame.start[node];
    const top = Math.max(0, (levelOf(this.flame, node) - 3) * ROW);
    const goal = { from, to: from + this.flame.total[node], top };
    cancelAnimationFrame(this.animation);
    if (!animate || matchMedia("(prefers-reduced-motion: reduce)").matches) return this.move(goal);
    const origin = { ...this.port };
    const started = performance.now();
    const step = () => {
      const share = Math.min(1, (performance.now() - started) / ANIMATION_MS);
      const eased = 1 - (1 - share) ** 3;
      const between = (a: number, b: number) => a + (b - a) * eased;
      this.move({ from: between(origin.from, goal.from), to: between(origin.to, goal.to), top: between(origin.top, goal.top) });
      if (share < 1) this.animation = requestAnimationFrame(step);
    };
    step();
  }

  /** Moves the view as little as needed to see a node. */
  reveal(node: number): void {
    if (!this.flame || node < 0) return;
    let { from, to, top } = this.port;
    const y = levelOf(this.flame, node) * ROW;
    if (y < top) top = y;
    if (y + ROW > top + this.surface.height) top = y + ROW - this.surface.height;
    const [left, right] = [this.flame.start[node], this.flame.start[node] + this.flame.total[node]];
    if (right <= from || left >= to || (right - left) / (to - from) < 2 / this.surface.width) {
      const width = Math.min(to - from, (right - left) * 20);
      from = (left + right) / 2 - width / 2;
      to = from + width;
    }
    this.move({ from, to, top });
  }

  // What is where

  /** The node at a point of the picture, or -1. */
  nodeAt(x: number, y: number): number {
    const { flame, port } = this;
    if (!flame || x < 0 || x >= this.surface.width || y < 0) return -1;
    const level = Math.floor((y + port.top) / ROW);
    if (level >= flame.levels.length - 1) return -1;
    const scale = this.surface.width / (port.to - port.from);
    const [first, end] = [flame.levels[level], flame.levels[level + 1]];
    const at = port.from + x / scale;
    const node = this.lastStarting(first, end, at);
    if (node >= 0 && at < flame.start[node] + flame.total[node] && flame.total[node] * scale >= 1) return node;
    // Of frames narrower than a pixel, the first one in it stands for all.
    const pixel = Math.floor(x);
    const narrow = this.gallop(first, end, port.from + pixel / scale);
    return narrow < end && (flame.start[narrow] - port.from) * scale < pixel + 1 ? narrow : -1;
  }

  /** Where a node is in the picture, in pixels. */
  boxOf(node: number): { x: number; y: number; width: number; height: number } | undefined {
    if (!this.flame || node < 0 || node >= this.flame.size) return undefined;
    const scale = this.surface.width / (this.port.to - this.port.from);
    const x = (this.flame.start[node] - this.port.from) * scale;
    return { x, y: levelOf(this.flame, node) * ROW - this.port.top, width: this.flame.total[node] * scale, height: ROW - 1 };
  }

  set focus(node: number) {
    if (node === this.focused) return;
    this.focused = node;
    this.redraw();
  }

  get focus(): number {
    return this.focused;
  }

  set hover(node: number) {
    if (node === this.hovered) return;
    this.hovered = node;
    this.redraw();
  }

  dispose(): void {
    cancelAnimationFrame(this.frame);
    cancelAnimationFrame(this.animation);
    this.frame = -1;
    this.surface.dispose();
  }

  // Drawing

  private redraw(): void {
    if (this.frame === 0) this.frame = requestAnimationFrame(() => this.draw());
  }

  private draw(): void {
    if (this.frame < 0) return;
    this.frame = 0;
    const { surface, flame, colours, port } = this;
    if (!colours || surface.width === 0) return;
    surface.begin(colours.ground);
    if (flame && flame.size > 0) {
      const first = Math.max(0, Math.floor(port.top / ROW));
      const last = Math.min(flame.levels.length - 2, Math.floor((port.top + surface.height) / ROW));
      for (let level = first; level <= last; level++) this.drawLevel(flame, colours, level);
      this.outline(this.hovered, colours.focus, 1);
      this.outline(this.focused, colours.focus, 2);
      this.drawThumb(colours);
    }
    surface.end();
  }

  /** Where the shown rows are among all of them, as a scroll bar says it: rows below the edge are easily missed. */
  private drawThumb({ ground, dark, light }: PictureColours): void {
    const { surface, contentHeight, port } = this;
    if (contentHeight <= surface.height) return;
    const scale = surface.height / contentHeight;
    const ink = mixed(ground, luminance(ground) > 0.5 ? dark : light, 0.55);
    surface.rectangle(surface.width - THUMB - 2, 0, THUMB + 2, surface.height, ground);
    surface.rectangle(surface.width - THUMB, port.top * scale, THUMB, Math.max(24, surface.height * scale), ink);
  }

  /** One row: frames of a pixel and more each by itself; of narrower ones, one mark a pixel, as strong as what they cover. */
  private drawLevel(flame: Flame, colours: PictureColours, level: number): void {
    const { surface, port, before } = this;
    const { start, total } = flame;
    const [levelStart, levelEnd] = [flame.levels[level], flame.levels[level + 1]];
    const scale = surface.width / (port.to - port.from);
    const y = level * ROW - port.top;
    let node = Math.max(levelStart, this.lastStarting(levelStart, levelEnd, port.from));
    if (start[node] + total[node] <= port.from) node++;
    // A run of marks in one ink is one rectangle.
    let [runFrom, runTo, runInk] = [0, 0, 0 as Ink];
    const flush = () => {
      if (runTo > runFrom) surface.rectangle(runFrom, y, runTo - runFrom, ROW - 1, runInk);
      runFrom = runTo = 0;
    };
    while (node < levelEnd && start[node] < port.to) {
      const x = (start[node] - port.from) * scale;
      const width = total[node] * scale;
      if (width >= 1) {
        flush();
        this.drawFrame(node, x, y, width, colours);
        node++;
        continue;
      }
      const pixel = Math.floor(x);
      const next = this.gallop(node + 1, levelEnd, port.from + (pixel + 1) / scale);
      const cover = Math.min(1, (before[next] - before[node]) * scale);
      // Few strengths, so that runs are long.
      const strength = cover > 0.75 ? 1 : cover > 0.4 ? 0.7 : cover > 0.12 ? 0.4 : 0.2;
      const mark = mixed(colours.ground, this.inkOf(node, colours), strength);
      if (mark !== runInk || pixel > runTo) flush();
      if (runTo === 0 && runFrom === 0) [runFrom, runInk] = [pixel, mark];
      runTo = pixel + 1;
      node = next;
    }
    flush();
  }

  private drawFrame(node: number, x: number, y: number, width: number, colours: PictureColours): void {
    const { surface } = this;
    const fill = this.inkOf(node, colours);
    // A gap between neighbours, where there is room for one.
    surface.rectangle(x, y, width >= 3 ? width - 1 : width, ROW - 1, fill);
    if (width < LABELLED) return;
    const left = Math.max(0, x);
    const room = Math.min(x + width, surface.width) - left - 2 * INSET;
    const columns = Math.floor(room / this.columnWidth);
    if (columns < 3) return;
    const label = this.labelOf(this.flame!.functions[node], columns);
    if (label) surface.text(label, left + INSET, y + (ROW - 1) / 2, luminance(fill) > 0.22 ? colours.dark : colours.light, "mono");
  }

  private inkOf(node: number, colours: PictureColours): Ink {
    const of = this.flame!.functions[node];
    const ink = colours.inksAreByNode ? colours.inks[node] : of < 0 ? mixed(colours.ground, colours.dark, 0.12) : colours.inks[of];
    if (!this.hits) return ink;
    return of >= 0 && this.hits[of] ? colours.hit : mixed(colours.ground, ink, 0.4);
  }

  private outline(node: number, ink: Ink, thickness: number): void {
    const box = this.boxOf(node);
    if (!box) return;
    const { surface } = this;
    const left = Math.max(-2, box.x);
    const width = Math.max(3, Math.min(box.x + box.width, surface.width + 2) - left);
    surface.rectangle(left, box.y, width, thickness, ink);
    surface.rectangle(left, box.y + box.height - thickness, width, thickness, ink);
    surface.rectangle(left, box.y, thickness, box.height, ink);
    surface.rectangle(left + width - thickness, box.y, thickness, box.height, ink);
  }

  private labelOf(of: number, columns: number): string | undefined {
    let label = this.labels.get(of);
    if (label?.columns !== columns) this.labels.set(of, (label = { columns, text: fit(this.formsOf(of), columns) }));
    return label.text;
  }

  private formsOf(of: number): Forms {
    let forms = this.forms.get(of);
    if (!forms) this.forms.set(of, (forms = formsOf(of < 0 ? "all" : (this.names[of] ?? ""))));
    return forms;
  }

  /** The last node of a level that starts at this weight or before; -1 if none does. */
  private lastStarting(levelStart: number, levelEnd: number, at: number): number {
    const { start } = this.flame!;
    let [low, high] = [levelStart, levelEnd];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (start[middle] <= at) low = middle + 1;
      else high = middle;
    }
    return low > levelStart ? low - 1 : -1;
  }

  /** The first node from `node` on that starts at `least` or later: near ones are found in few steps. */
  private gallop(node: number, levelEnd: number, least: number): number {
    const { start } = this.flame!;
    if (node >= levelEnd || start[node] >= least) return node;
    let step = 1;
    let low = node;
    while (low + step < levelEnd && start[low + step] < least) {
      low += step;
      step *= 2;
    }
    let high = Math.min(low + step, levelEnd);
    while (low < high) {
      const middle = (low + high) >> 1;
      if (start[middle] < least) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
