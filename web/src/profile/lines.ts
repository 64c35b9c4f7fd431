// What the lines of a source file cost.

import { totals } from "./call_tree.ts";
import { integers, texts, type Table } from "./columns.ts";

/** The lines of a file that have weight, in order. Line 0 stands for code whose line is unknown. */
export interface Lines {
  lines: Int32Array;
  /** Weight that ends in the line. */
  self: Float64Array;
  /** Weight of stacks that hold the line, each once. */
  total: Float64Array;
  /** The row of `frames` with most weight in the line. */
  frames: Int32Array;
}

/** `weights` are by place, of which stacks come first. */
export function linesOf(file: string, frames: Table, stacks: Table, weights: Float64Array): Lines {
  if (frames.rows === 0 || stacks.rows === 0) return { lines: new Int32Array(0), self: new Float64Array(0), total: new Float64Array(0), frames: new Int32Array(0) };
  const [parents, frameOf] = [integers(stacks, "parent"), integers(stacks, "frame")];
  const [files, lineOf] = [texts(frames, "file"), integers(frames, "line")];
  const isInFile = Uint8Array.from(files, (one) => (one === file ? 1 : 0));
  const below = totals(parents, weights.slice(0, stacks.rows));
  const self = new Map<number, number>();
  const total = new Map<number, number>();
  const byFrame = new Float64Array(frames.rows);
  for (let stack = 0; stack < stacks.rows; stack++) {
    if (!isInFile[frameOf[stack]] || !(below[stack] > 0)) continue;
    const line = Math.max(0, lineOf[frameOf[stack]]);
    self.set(line, (self.get(line) ?? 0) + weights[stack]);
    byFrame[frameOf[stack]] += below[stack];
    if (!isAbove(stack)) total.set(line, (total.get(line) ?? 0) + below[stack]);
  }
  function isAbove(stack: number): boolean {
    const line = lineOf[frameOf[stack]];
    for (let at = parents[stack]; at >= 0; at = parents[at]) if (isInFile[frameOf[at]] && lineOf[frameOf[at]] === line) return true;
    return false;
  }
  const heaviest = new Map<number, number>();
  byFrame.forEach((weight, frame) => {
    const line = Math.max(0, lineOf[frame]);
    if (weight > (byFrame[heaviest.get(line) ?? -1] ?? 0)) heaviest.set(line, frame);
  });
  const lines = [...total.keys()].sort((a, b) => a - b);
  const column = (sums: Map<number, number>) => Float64Array.from(lines, (line) => sums.get(line) ?? 0);
  return { lines: Int32Array.from(lines), self: column(self), total: column(total), frames: Int32Array.from(lines, (line) => heaviest.get(line) ?? -1) };
}

/** A file, and what its lines cost. */
export interface FileCost {
  file: string;
  /** Weight that ends in its lines, or whose nearest owner is there, whichever is more: lines of scripts call code of libraries for all they do. */
  cost: number;
}

/** The files with weight, the most costly first. */
export function filesOf(frames: Table, stacks: Table, weights: Float64Array): FileCost[] {
  if (frames.rows === 0 || stacks.rows === 0) return [];
  const [parents, frameOf, files, owner] = [integers(stacks, "parent"), integers(stacks, "frame"), texts(frames, "file"), integers(frames, "owner")];
  const [self, attributed] = [new Map<string, number>(), new Map<string, number>()];
  const add = (sums: Map<string, number>, file: string, weight: number) => void (file && sums.set(file, (sums.get(file) ?? 0) + weight));
  for (let stack = 0; stack < stacks.rows; stack++) {
    if (!(weights[stack] > 0)) continue;
    add(self, files[frameOf[stack]], weights[stack]);
    let nearest = stack;
    while (nearest >= 0 && !owner[frameOf[nearest]]) nearest = parents[nearest];
    if (nearest >= 0) add(attributed, files[frameOf[nearest]], weights[stack]);
  }
  const all = [...new Set([...self.keys(), ...attributed.keys()])];
  const costs = all.map((file) => ({ file, cost: Math.max(self.get(file) ?? 0, attributed.get(file) ?? 0) }));
  return costs.sort((a, b) => b.cost - a.cost || (a.file < b.file ? -1 : 1));
}
