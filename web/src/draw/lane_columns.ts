// One lane in columns of a pixel: how much of each column its thread ran, waited for a CPU, was blocked. Any number of intervals or buckets adds
// up to as many columns as the picture is wide.

import { integers, numbers } from "../profile/columns.ts";
import { BLOCKED, NO_STACK, PREEMPTED, rowsBetween, RUNNING, WOKEN, type Tile } from "../profile/intervals.ts";
import { bucketLength, tileLength, type Cover, type Grid } from "../profile/tiles.ts";
import { count } from "../profile/lanes.ts";

/** The time that the columns show. */
export interface Window {
  from: number;
  to: number;
  /** Device pixels. */
  width: number;
}

export class LaneColumns {
  running = new Float32Array(0);
  runnable = new Float32Array(0);
  blocked = new Float32Array(0);
  unknown = new Float32Array(0);
  /** The blocked state, or on CPUs the thread, with the most time in a column; -1 if none. */
  most = new Int32Array(0);
  private mostShare = new Float32Array(0);
  private width = 0;

  /** Empties all columns. */
  begin(width: number): void {
    if (this.width !== width) {
      this.width = width;
      [this.running, this.runnable, this.blocked, this.unknown, this.mostShare] = Array.from({ length: 5 }, () => new Float32Array(width));
      this.most = new Int32Array(width);
    }
    for (const part of [this.running, this.runnable, this.blocked, this.unknown, this.mostShare]) part.fill(0);
    this.most.fill(-1);
  }

  /** Adds what a tile has of a lane. */
  add(tile: Tile, grid: Grid, { address, from, to }: Cover, lane: number, window: Window): void {
    if (address.level === 0) this.addIntervals(tile, Math.max(from, window.from), Math.min(to, window.to), lane, window);
    else this.addBuckets(tile, grid, address.level, address.tile, Math.max(from, window.from), Math.min(to, window.to), lane, window);
  }

  private addIntervals(tile: Tile, from: number, to: number, lane: number, window: Window): void {
    const { table } = tile;
    const [first, end] = rowsBetween(tile, lane, from, to);
    if (first === end) return;
    const [starts, ends, states, threads] = [numbers(table, "start"), numbers(table, "end"), integers(table, "state"), integers(table, "thread")];
    const scale = window.width / (window.to - window.from);
    for (let row = first; row < end; row++) {
      const left = (Math.max(starts[row], from) - window.from) * scale;
      const right = (Math.min(ends[row], to) - window.from) * scale;
      const state = states[row];
      if (state === RUNNING) this.spread(this.running, left, right, 1, lane < 0 ? threads[row] : -1);
      else if (state === PREEMPTED || state === WOKEN) this.spread(this.runnable, left, right, 1, -1);
      else if (state >= BLOCKED && state <= NO_STACK) this.spread(this.blocked, left, right, 1, state);
      else this.spread(this.unknown, left, right, 1, -1);
    }
  }

  private addBuckets(tile: Tile, grid: Grid, level: number, number: number, from: number, to: number, lane: number, window: Window): void {
    const { table, rows } = tile;
    const [start, last] = rows.get(lane) ?? [0, 0];
    if (start === last) return;
    const [buckets, lengths] = [integers(table, "bucket"), integers(table, "length")];
    const [running, runnable, blocked, unknown] = ["running", "runnable", "blocked", "unknown"].map((name) => integers(table, name));
    const most = integers(table, lane < 0 ? "thread" : "state");
    const length = bucketLength(grid, level);
    const origin = number * tileLength(grid, level);
    const scale = window.width / (window.to - window.from);
    const first = start + count(last - start, (at) => origin + (buckets[start + at] + lengths[start + at]) * length <= from);
    for (let row = first; row < last; row++) {
      const begin = origin + buckets[row] * length;
      if (begin >= to) break;
      const left = (Math.max(begin, from) - window.from) * scale;
      const right = (Math.min(begin + lengths[row] * length, to) - window.from) * scale;
      if (running[row] > 0) this.spread(this.running, left, right, running[row] / 255, lane < 0 ? most[row] : -1);
      if (runnable[row] > 0) this.spread(this.runnable, left, right, runnable[row] / 255, -1);
      if (blocked[row] > 0) this.spread(this.blocked, left, right, blocked[row] / 255, lane < 0 ? -1 : most[row]);
      if (unknown[row] > 0) this.spread(this.unknown, left, right, unknown[row] / 255, -1);
    }
  }

  /** Adds a share of the columns from `left` to `right`, of those at the edges in part. */
  private spread(part: Float32Array, left: number, right: number, share: number, most: number): void {
    const first = Math.max(0, Math.floor(left));
    const end = Math.min(this.width, Math.ceil(right));
    for (let column = first; column < end; column++) {
      const added = share * Math.min(1, right - column, column + 1 - left, right - left);
      part[column] += added;
      if (most >= 0 && added > this.mostShare[column]) {
        this.mostShare[column] = added;
        this.most[column] = most;
      }
    }
  }
}
