// What the flame graph and the timeline draw on: rectangles, lines and text, by WebGL2 or by Canvas2D.

import { CanvasSurface } from "./canvas.ts";
import { WebGlSurface } from "./webgl.ts";

/** A colour as 0xRRGGBBAA. See ink.ts. */
export type Ink = number;

/** The fonts of pictures. Text in `mono` has equal columns, so labels can be chosen by their number. */
export type FontName = "text" | "small" | "mono" | "monoBold";

export const FONTS: Record<FontName, { css: string; height: number }> = {
  text: { css: "12px system-ui, sans-serif", height: 12 },
  small: { css: "10px system-ui, sans-serif", height: 10 },
  mono: { css: "11.5px ui-monospace, 'DejaVu Sans Mono', monospace", height: 12 },
  monoBold: { css: "bold 11.5px ui-monospace, 'DejaVu Sans Mono', monospace", height: 12 },
};

/** No rectangle or line: the answer of `pick` beside everything. */
export const NOTHING = -1;

/**
 * A picture that is drawn again for each frame: `begin`, then shapes, later ones over earlier ones, then `end`. Coordinates are CSS pixels from the
 * upper left corner, as 64-bit floats; shapes may reach far beyond the picture.
 */
export interface Surface {
  /** The element that shows the picture. */
  readonly canvas: HTMLCanvasElement;
  /** How it draws. */
  readonly kind: "webgl" | "canvas";
  /** Size in CSS pixels. */
  readonly width: number;
  readonly height: number;
  /** Device pixels of a CSS pixel. */
  readonly ratio: number;

  /** Sets the size in CSS pixels; reads the device's pixel ratio. Clears the picture. */
  resize(width: number, height: number): void;
  /** Starts a frame: forgets the shapes of the last one. */
  begin(background: Ink): void;
  /** A filled rectangle. Edges are rounded to device pixels, at least one pixel apart. `pick` finds it by `id`. */
  rectangle(x: number, y: number, width: number, height: number, ink: Ink, id?: number): void;
  /** A straight line. `pick` finds it within 3 pixels. */
  line(fromX: number, fromY: number, toX: number, toY: number, thickness: number, ink: Ink, id?: number): void;
  /** Text from its left edge and vertical middle. It is not cut. */
  text(text: string, x: number, middle: number, ink: Ink, font?: FontName): void;
  /** Width of a text in CSS pixels. */
  measure(text: string, font?: FontName): number;
  /** Puts device pixels at a point, over all that was drawn there. Absent where rectangles are as fast. */
  pixels?(x: number, y: number, image: ImageData): void;
  /** Draws what follows inside this rectangle only, until `unclip`. Clips do not nest. */
  clip(x: number, y: number, width: number, height: number): void;
  unclip(): void;
  /** Shows the frame. */
  end(): void;
  /** The id of the topmost shape with an id at a point of the last frame, or `NOTHING`. */
  pick(x: number, y: number): number;
  /** Frees what the picture holds. */
  dispose(): void;
}

/**
 * A surface in its own canvas, which the caller puts into the page. Without a preference it is WebGL2, unless there is none or it is emulated by the CPU,
 * where Canvas2D is faster. `onLost` is called when the picture has to be drawn again, because the GPU was reset.
 */
export function createSurface(onLost: () => void, preference?: "webgl" | "canvas"): Surface {
  if (preference !== "canvas") {
    const surface = WebGlSurface.create(onLost, preference === "webgl");
    if (surface) return surface;
  }
  return new CanvasSurface();
}
