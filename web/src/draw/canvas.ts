// The surface of browsers without WebGL2.

import { css } from "./ink.ts";
import { Picks } from "./picks.ts";
import { FONTS, NOTHING, type FontName, type Ink, type Surface } from "./surface.ts";

export class CanvasSurface implements Surface {
  readonly canvas = document.createElement("canvas");
  readonly kind = "canvas";
  width = 0;
  height = 0;
  ratio = 1;
  private readonly context = this.canvas.getContext("2d", { alpha: false })!;
  private readonly picks = new Picks();
  private readonly widths = new Widths((font, text) => {
    this.font = undefined;
    this.context.font = FONTS[font].css;
    return this.context.measureText(text).width;
  });
  private ink: Ink = -1;
  private font: FontName | undefined;

  resize(width: number, height: number): void {
    this.ratio = globalThis.devicePixelRatio || 1;
    this.width = width;
    this.height = height;
    this.canvas.width = Math.max(1, Math.round(width * this.ratio));
    this.canvas.height = Math.max(1, Math.round(height * this.ratio));
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    this.forget();
  }

  begin(background: Ink): void {
    this.picks.clear();
    this.context.setTransform(1, 0, 0, 1, 0, 0);
    this.forget();
    this.fill(background);
    this.context.fillRect(0, 0, this.canvas.width, this.canvas.height);
  }

  rectangle(x: number, y: number, width: number, height: number, ink: Ink, id = NOTHING): void {
    if (id !== NOTHING) this.picks.addBox(x, y, width, height, id);
    this.fill(ink);
    const { ratio } = this;
    const left = Math.round(Math.max(x, -1) * ratio);
    const top = Math.round(Math.max(y, -1) * ratio);
    const right = Math.round(Math.min(x + width, this.width + 1) * ratio);
    const bottom = Math.round(Math.min(y + height, this.height + 1) * ratio);
    this.context.fillRect(left, top, Math.max(1, right - left), Math.max(1, bottom - top));
  }

  line(fromX: number, fromY: number, toX: number, toY: number, thickness: number, ink: Ink, id = NOTHING): void {
    if (id !== NOTHING) this.picks.addLine(fromX, fromY, toX, toY, id);
    const { context, ratio } = this;
    context.strokeStyle = css(ink);
    context.lineWidth = thickness * ratio;
    context.beginPath();
    context.moveTo(fromX * ratio, fromY * ratio);
    context.lineTo(toX * ratio, toY * ratio);
    context.stroke();
  }

  text(text: string, x: number, middle: number, ink: Ink, font: FontName = "text"): void {
    this.fill(ink);
    if (this.font !== font) {
      this.font = font;
      this.context.font = this.ratio === 1 ? FONTS[font].css : scaled(FONTS[font].css, this.ratio);
      this.context.textBaseline = "middle";
    }
    this.context.fillText(text, x * this.ratio, Math.round(middle * this.ratio) + 0.5);
  }

  measure(text: string, font: FontName = "text"): number {
    return this.widths.of(font, text);
  }

  pixels(x: number, y: number, image: ImageData): void {
    this.context.putImageData(image, Math.round(x * this.ratio), Math.round(y * this.ratio));
  }

  clip(x: number, y: number, width: number, height: number): void {
    this.unclip();
    const { context, ratio } = this;
    context.save();
    context.beginPath();
    context.rect(Math.round(x * ratio), Math.round(y * ratio), Math.round(width * ratio), Math.round(height * ratio));
    context.clip();
    this.isClipped = true;
    this.picks.clip([x, y, x + width, y + height]);
  }

  unclip(): void {
    if (!this.isClipped) return;
    this.context.restore();
    this.isClipped = false;
    this.picks.clip(undefined);
    this.forget();
  }

  end(): void {
    this.unclip();
  }

  pick(x: number, y: number): number {
    return this.picks.at(x, y);
  }

  dispose(): void {
    this.canvas.width = this.canvas.height = 0;
    this.canvas.remove();
  }

  private isClipped = false;

  private fill(ink: Ink): void {
    if (ink === this.ink) return;
    this.ink = ink;
    this.context.fillStyle = css(ink);
  }

  private forget(): void {
    this.ink = -1;
    this.font = undefined;
  }
}

/** A font with its size multiplied. */
export function scaled(font: string, ratio: number): string {
  return font.replace(/([\d.]+)px/, (_, size: string) => `${Number(size) * ratio}px`);
}

/** Widths of texts that were measured before. */
export class Widths {
  private readonly known = new Map<string, number>();
  private readonly measure: (font: FontName, text: string) => number;

  constructor(measure: (font: FontName, text: string) => number) {
    this.measure = measure;
  }

  of(font: FontName, text: string): number {
    const key = `${font} ${text}`;
    let width = this.known.get(key);
    if (width === undefined) {
      if (this.known.size > 20_000) this.known.clear();
      width = this.measure(font, text);
      this.known.set(key, width);
    }
    return width;
  }
}
