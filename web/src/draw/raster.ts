// Rectangles as pixels in memory. Without a GPU that is many times faster than a call of the canvas for each: a picture of lanes has
// ten thousands of them.

import type { Ink, Surface } from "./surface.ts";

/** What draws opaque rectangles, in device pixels of an area of the picture. */
export interface Painter {
  /** Starts a picture of this size; coordinates are from its upper left corner. */
  begin(width: number, height: number, background: Ink): void;
  fill(left: number, top: number, right: number, bottom: number, ink: Ink): void;
  /** Puts it onto the surface at a point in CSS pixels. */
  end(x: number, y: number): void;
}

/** The best painter for a surface. */
export function painterOf(surface: Surface): Painter {
  return surface.pixels ? new Raster(surface) : new Instances(surface);
}

class Raster implements Painter {
  private readonly surface: Surface;
  private image = new ImageData(1, 1);
  private words = new Uint32Array(this.image.data.buffer);

  constructor(surface: Surface) {
    this.surface = surface;
  }

  begin(width: number, height: number, background: Ink): void {
    const [wide, high] = [Math.max(1, width), Math.max(1, height)];
    if (this.image.width !== wide || this.image.height !== high) {
      this.image = new ImageData(wide, high);
      this.words = new Uint32Array(this.image.data.buffer);
    }
    this.words.fill(abgr(background));
  }

  fill(left: number, top: number, right: number, bottom: number, ink: Ink): void {
    const { width, height } = this.image;
    const [from, to] = [Math.max(0, left), Math.min(width, right)];
    if (from >= to) return;
    const word = abgr(ink);
    const end = Math.min(height, bottom);
    for (let y = Math.max(0, top); y < end; y++) this.words.fill(word, y * width + from, y * width + to);
  }

  end(x: number, y: number): void {
    this.surface.pixels!(x, y, this.image);
  }
}

/** By the surface's own rectangles, which a GPU draws all at once. They are kept until the place is known. */
class Instances implements Painter {
  private readonly surface: Surface;
  private boxes = new Float64Array(5 * 4096);
  private count = 0;
  private size: [number, number, Ink] = [0, 0, 0];

  constructor(surface: Surface) {
    this.surface = surface;
  }

  begin(width: number, height: number, background: Ink): void {
    this.count = 0;
    this.size = [width, height, background];
  }

  fill(left: number, top: number, right: number, bottom: number, ink: Ink): void {
    const [width, height] = this.size;
    if (right <= 0 || bottom <= 0 || left >= width || top >= height) return;
    if (this.count * 5 === this.boxes.length) {
      const grown = new Float64Array(this.boxes.length * 2);
      grown.set(this.boxes);
      this.boxes = grown;
    }
    this.boxes.set([left, Math.max(0, top), right, Math.min(height, bottom), ink], this.count * 5);
    this.count++;
  }

  end(x: number, y: number): void {
    const { surface, boxes } = this;
    const { ratio } = surface;
    const [width, height, background] = this.size;
    surface.rectangle(x, y, width / ratio, height / ratio, background);
    for (let at = 0; at < this.count * 5; at += 5) {
      const [left, top] = [boxes[at], boxes[at + 1]];
      surface.rectangle(x + left / ratio, y + top / ratio, (boxes[at + 2] - left) / ratio, (boxes[at + 3] - top) / ratio, boxes[at + 4]);
    }
  }
}

/** The order of bytes in memory of little-endian machines, which all are. */
function abgr(ink: Ink): number {
  return ((ink >>> 24) | ((ink >>> 8) & 0xff00) | ((ink << 8) & 0xff0000) | 0xff000000) >>> 0;
}
