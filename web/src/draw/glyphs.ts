// Pictures of characters in one texture, for WebGL2: each is drawn once by Canvas2D and then copied as often as needed.

import { scaled } from "./canvas.ts";
import { FONTS, type FontName } from "./surface.ts";

/** Where a character is in the texture, in texels, and how far it moves the next one, in device pixels. */
export interface Glyph {
  u: number;
  v: number;
  width: number;
  height: number;
  advance: number;
}

const SIZE = 1024;
/** Texels left free around each character. */
const MARGIN = 1;

export class Glyphs {
  readonly texture: WebGLTexture;
  private readonly gl: WebGL2RenderingContext;
  private readonly ratio: number;
  private readonly scratch = document.createElement("canvas");
  private readonly pen = this.scratch.getContext("2d", { willReadFrequently: true })!;
  private readonly known: Record<FontName, Map<string, Glyph>> = { text: new Map(), small: new Map(), mono: new Map(), monoBold: new Map() };
  private x = 0;
  private y = 0;
  private rowHeight = 0;

  constructor(gl: WebGL2RenderingContext, ratio: number) {
    this.gl = gl;
    this.ratio = ratio;
    this.texture = gl.createTexture()!;
    gl.bindTexture(gl.TEXTURE_2D, this.texture);
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA, SIZE, SIZE, 0, gl.RGBA, gl.UNSIGNED_BYTE, null);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.NEAREST);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, gl.NEAREST);
  }

  /** The glyph of a character; undefined if the texture is full, so that a new one has to be started. */
  of(character: string, font: FontName): Glyph | undefined {
    const glyph = this.known[font].get(character);
    return glyph ?? this.draw(character, font);
  }

  private draw(character: string, font: FontName): Glyph | undefined {
    const { pen, scratch, gl } = this;
    const css = scaled(FONTS[font].css, this.ratio);
    pen.font = css;
    const advance = pen.measureText(character).width;
    // Accents and slanted letters reach beyond their box. A character may claim any width, so it has a limit.
    const width = Math.min(128, Math.ceil(advance) + 2 * MARGIN + 2);
    const height = Math.ceil(FONTS[font].height * this.ratio * 1.5) + 2 * MARGIN;
    if (this.x + width > SIZE) {
      this.x = 0;
      this.y += this.rowHeight;
      this.rowHeight = 0;
    }
    if (this.y + height > SIZE) return undefined;
    scratch.width = width;
    scratch.height = height;
    pen.font = css;
    pen.textBaseline = "middle";
    pen.fillStyle = "#fff";
    pen.fillText(character, MARGIN, Math.round(height / 2) + 0.5);
    gl.bindTexture(gl.TEXTURE_2D, this.texture);
    gl.texSubImage2D(gl.TEXTURE_2D, 0, this.x, this.y, gl.RGBA, gl.UNSIGNED_BYTE, scratch);
    const glyph = { u: this.x, v: this.y, width, height, advance };
    this.known[font].set(character, glyph);
    this.x += width;
    this.rowHeight = Math.max(this.rowHeight, height);
    return glyph;
  }

  dispose(): void {
    this.gl.deleteTexture(this.texture);
  }
}

export const GLYPH_MARGIN = MARGIN;

const SEGMENTER = new Intl.Segmenter(undefined, { granularity: "grapheme" });

/** The characters of a text as readers see them: an accent belongs to its letter. */
export function characters(text: string): Iterable<string> {
  if (/^[\x20-\x7e…]*$/.test(text)) return text;
  return Array.from(SEGMENTER.segment(text), ({ segment }) => segment);
}
