// Where the shapes of a frame are, so that a pointer finds them.

import { NOTHING } from "./surface.ts";

/** Distance from a line in pixels at which it is found. */
const REACH = 3;
const FIELDS = 5;

/** The shapes with an id, in the order in which they were drawn. */
export class Picks {
  /** Left, top, right, bottom and id of rectangles. */
  private boxes = new Float64Array(FIELDS * 1024);
  private boxCount = 0;
  private readonly lines: { from: [number, number]; to: [number, number]; id: number }[] = [];
  private clipped: [number, number, number, number] | undefined;

  clear(): void {
    this.boxCount = 0;
    this.lines.length = 0;
    this.clipped = undefined;
  }

  clip(area: [number, number, number, number] | undefined): void {
    this.clipped = area;
  }

  addBox(x: number, y: number, width: number, height: number, id: number): void {
    let at = this.boxCount * FIELDS;
    if (at === this.boxes.length) {
      const grown = new Float64Array(this.boxes.length * 2);
      grown.set(this.boxes);
      this.boxes = grown;
    }
    const [left, top, right, bottom] = this.clipped ?? [-Infinity, -Infinity, Infinity, Infinity];
    this.boxes[at++] = Math.max(x, left);
    this.boxes[at++] = Math.max(y, top);
    this.boxes[at++] = Math.min(x + Math.max(width, 1), right);
    this.boxes[at++] = Math.min(y + height, bottom);
    this.boxes[at] = id;
    this.boxCount++;
  }

  addLine(fromX: number, fromY: number, toX: number, toY: number, id: number): void {
    this.lines.push({ from: [fromX, fromY], to: [toX, toY], id });
  }

  /** Lines are thin, so they come before rectangles. */
  at(x: number, y: number): number {
    const line = this.lines.findLast(({ from, to }) => distance(x, y, from, to) <= REACH);
    if (line) return line.id;
    const { boxes } = this;
    for (let at = (this.boxCount - 1) * FIELDS; at >= 0; at -= FIELDS) {
      if (x >= boxes[at] && x < boxes[at + 2] && y >= boxes[at + 1] && y < boxes[at + 3]) return boxes[at + 4];
    }
    return NOTHING;
  }
}

function distance(x: number, y: number, [fromX, fromY]: [number, number], [toX, toY]: [number, number]): number {
  const [alongX, alongY] = [toX - fromX, toY - fromY];
  const square = alongX * alongX + alongY * alongY;
  const share = square === 0 ? 0 : Math.min(1, Math.max(0, ((x - fromX) * alongX + (y - fromY) * alongY) / square));
  return Math.hypot(x - fromX - share * alongX, y - fromY - share * alongY);
}
