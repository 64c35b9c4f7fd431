// The functions of a capture in the order in which a reader is likely to look for them.

import { FRAME_KINDS, integers, texts, type Table } from "./columns.ts";

/** The program's own functions, then libraries, then the kernel. */
type Rank = 0 | 1 | 2 | 3;

const KERNEL = FRAME_KINDS.indexOf("kernel");
const GROUP = FRAME_KINDS.indexOf("group");

/** The names of functions, each once: owned code, other code of the program, libraries, the kernel; of each the heaviest first, then the shortest name. */
export function rankedFunctions(frames: Table, weights: ReadonlyMap<string, number>): string[] {
  if (frames.rows === 0) return [];
  const names = texts(frames, "function");
  const [kind, owned, owner] = ["kind", "owned", "owner"].map((name) => integers(frames, name));
  const ranks = new Map<string, Rank>();
  names.forEach((name, frame) => {
    if (!name || kind[frame] === GROUP) return;
    const rank: Rank = owned[frame] === 1 ? 0 : owner[frame] === 1 ? 1 : kind[frame] === KERNEL ? 3 : 2;
    ranks.set(name, Math.min(rank, ranks.get(name) ?? 3) as Rank);
  });
  const weightOf = (name: string) => weights.get(name) ?? 0;
  return [...ranks].sort(([a, rankOfA], [b, rankOfB]) => rankOfA - rankOfB || weightOf(b) - weightOf(a) || a.length - b.length).map(([name]) => name);
}
