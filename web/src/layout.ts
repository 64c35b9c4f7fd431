// Which frames are visible at a zoom, and where.

import type { Tree } from "./tree.ts";

/** Height of a row in pixels, with the line between rows. */
export const ROW = 18;

/** What is in narrower frames is not drawn. In pixels. */
const NARROWEST = 0.1;
/** Frames from this width up to a pixel are drawn as a pixel, unless it is taken. Narrower ones share one. */
const SHOWN_ALONE = 0.3;

/** How many callers of the zoomed frame keep a row; the others are in the breadcrumbs. */
const CALLER_ROWS = 3;

/** A part of a tree, scaled to a width. */
export interface Zoom {
  /** The frame that fills the width. */
  root: number;
  /** Width in pixels. */
  width: number;
}

/** The depth that is drawn in row 0. */
export function firstDepth(tree: Tree, zoom: Zoom): number {
  return Math.max(0, tree.depth[zoom.root] - CALLER_ROWS);
}

/** Number of rows that have a frame. */
export function rowCount(tree: Tree, zoom: Zoom): number {
  const scale = zoom.width / tree.total[zoom.root];
  let deepest = tree.depth[zoom.root];
  for (let node = zoom.root; node < tree.end[zoom.root]; ) {
    if (!(tree.total[node] * scale >= SHOWN_ALONE)) {
      node = tree.end[node];
      continue;
    }
    if (tree.depth[node] > deepest) deepest = tree.depth[node];
    node++;
  }
  return deepest - firstDepth(tree, zoom) + 1;
}

/** Receives a visible frame: its node, row, left edge and width in pixels. */
export type Visit = (node: number, row: number, x: number, width: number) => void;

/** Visits the frames in rows from `firstRow` to `lastRow`, callers before what they call, left before right. */
export function visit(tree: Tree, zoom: Zoom, firstRow: number, lastRow: number, visitor: Visit): void {
  const base = firstDepth(tree, zoom);
  for (const node of tree.path(zoom.root).slice(base, -1)) {
    const row = tree.depth[node] - base;
    if (row >= firstRow && row <= lastRow) visitor(node, row, 0, zoom.width);
  }
  const scale = zoom.width / tree.total[zoom.root];
  const left = tree.start[zoom.root];
  const pixels = new Pixels(lastRow + 1);
  for (let node = zoom.root; node < tree.end[zoom.root]; ) {
    const row = tree.depth[node] - base;
    const width = tree.total[node] * scale;
    if (row > lastRow) {
      node = tree.end[node];
      continue;
    }
    if (row >= firstRow) {
      const x = (tree.start[node] - left) * scale;
      if (width >= 1) {
        visitor(node, row, x, width);
        pixels.take(row, x + width);
      } else if (pixels.give(row, x, width)) {
        visitor(node, row, Math.floor(x), 1);
      }
    }
    node = width >= NARROWEST ? node + 1 : tree.end[node];
  }
}

/**
 * Which pixels of each row frames narrower than a pixel may take: one each at most, and as many as their widths add up
 * to. So a thousand neighbours of a twentieth of a pixel cover fifty pixels, neither none nor a thousand.
 */
class Pixels {
  /** The last pixel taken in each row. */
  private readonly last: Int32Array;
  /** Width that narrow frames in each row have, and have not been drawn with. */
  private readonly owed: Float64Array;

  constructor(rows: number) {
    this.last = new Int32Array(rows).fill(-1);
    this.owed = new Float64Array(rows);
  }

  take(row: number, right: number): void {
    this.last[row] = Math.floor(right - 0.5);
  }

  give(row: number, x: number, width: number): boolean {
    this.owed[row] += width;
    const pixel = Math.floor(x);
    if (pixel <= this.last[row] || (width < SHOWN_ALONE && this.owed[row] < 0.5)) return false;
    this.owed[row] = Math.max(0, this.owed[row] - 1);
    this.last[row] = pixel;
    return true;
  }
}

/** The node at a point, `x` in pixels from the left edge, if there is one. */
export function nodeAt(tree: Tree, zoom: Zoom, x: number, row: number): number | undefined {
  const depth = firstDepth(tree, zoom) + row;
  const zoomDepth = tree.depth[zoom.root];
  if (row < 0 || x < 0 || x >= zoom.width || tree.size === 0) return undefined;
  if (depth < zoomDepth) return tree.path(zoom.root)[depth];
  const weight = tree.start[zoom.root] + (x / zoom.width) * tree.total[zoom.root];
  return tree.find(weight, depth);
}
