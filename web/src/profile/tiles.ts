// Which tiles of the timeline a view needs, and which stand in for those that are not here yet. The tiles themselves are described in
// crates/app/src/lanes/mod.rs.

/** Buckets of a tile. */
export const BUCKETS = 1024;

/** How the time of one family of lanes is cut. A bucket of level k is `base * 4^k` ns long; level 0 has single intervals. */
export interface Grid {
  base: number;
  levels: number;
  blocks: number;
  /** The finest level that the page has; 0 if it is missing. */
  finest?: number;
}

/** A tile's place in its family. */
export interface Address {
  level: number;
  block: number;
  tile: number;
}

/** What is drawn of a tile: nanoseconds. */
export interface Cover {
  address: Address;
  from: number;
  to: number;
}

export function bucketLength(grid: Grid, level: number): number {
  return grid.base * 4 ** level;
}

export function tileLength(grid: Grid, level: number): number {
  return bucketLength(grid, level) * BUCKETS;
}

export function tileName(family: string, { level, block, tile }: Address): string {
  return `${family}/${level}/${block}/${tile}`;
}

/** The level whose buckets are one to four pixels wide; intervals if those are as wide. */
export function levelOf(grid: Grid, perPixel: number): number {
  const level = Math.ceil(Math.log(perPixel / grid.base) / Math.log(4) - 1e-9);
  return Math.min(Math.max(grid.finest ?? 0, level), grid.levels - 1);
}

/** The tiles of a level that meet a range of time of the recording. */
export function tilesOf(grid: Grid, level: number, from: number, to: number, duration: number): number[] {
  const length = tileLength(grid, level);
  const last = Math.max(0, Math.ceil(duration / length) - 1);
  const first = Math.min(Math.max(0, Math.floor(from / length)), last);
  const end = Math.min(Math.max(first, Math.ceil(to / length) - 1), last);
  return Array.from({ length: end - first + 1 }, (_, index) => first + index);
}

/**
 * What to draw for these tiles of a block, in order: each tile if it is here, else the next coarser one that is, cut to the time of what it
 * stands for; else the finer ones that are here.
 */
export function covers(grid: Grid, level: number, block: number, tiles: number[], has: (address: Address) => boolean): Cover[] {
  return tiles.flatMap((tile) => {
    const length = tileLength(grid, level);
    const [from, to] = [tile * length, (tile + 1) * length];
    for (let above = level; above < grid.levels; above++) {
      const address = { level: above, block, tile: Math.floor(tile / 4 ** (above - level)) };
      if (has(address)) return [{ address, from, to }];
    }
    if (level === 0) return [];
    const finer = [0, 1, 2, 3].map((quarter) => ({ level: level - 1, block, tile: tile * 4 + quarter }));
    const short = length / 4;
    return finer.filter(has).map((address) => ({ address, from: address.tile * short, to: (address.tile + 1) * short }));
  });
}

/**
 * The tiles to have for a view, the most wanted first: those in it, the coarsest one, which stands in for all, the next coarser ones, and
 * the neighbours.
 */
export function wanted(grid: Grid, level: number, blocks: number[], from: number, to: number, duration: number): Address[] {
  const found = new Map<string, Address>();
  const add = (level: number, block: number, tiles: number[]) => {
    for (const tile of tiles) found.set(`${level}/${block}/${tile}`, { level, block, tile });
  };
  const top = grid.levels - 1;
  const shown = tilesOf(grid, level, from, to, duration);
  for (const block of blocks) add(level, block, shown);
  for (const block of blocks) add(top, block, [0]);
  if (level < top) for (const block of blocks) add(level + 1, block, tilesOf(grid, level + 1, from, to, duration));
  const length = tileLength(grid, level);
  for (const block of blocks) add(level, block, tilesOf(grid, level, from - length / 2, to + length / 2, duration));
  return [...found.values()];
}

interface Kept<Content> {
  content: Content | undefined;
  size: number;
}

/**
 * Tiles by name, up to a size in bytes. Those that were used longest ago go first. Tiles that are known to be absent are kept too, as `undefined`.
 */
export class TileCache<Content> {
  private readonly kept = new Map<string, Kept<Content>>();
  private readonly loading = new Set<string>();
  private queue: string[] = [];
  private size = 0;
  private readonly load: (name: string) => Promise<Content | undefined>;
  private readonly sizeOf: (content: Content) => number;
  private readonly changed: () => void;
  private readonly limit: number;
  private readonly most: number;

  /** `changed` is called when a tile has come. At most `most` are asked for at a time. */
  constructor(load: (name: string) => Promise<Content | undefined>, sizeOf: (content: Content) => number, changed: () => void, limit: number, most = 6) {
    this.load = load;
    this.sizeOf = sizeOf;
    this.changed = changed;
    this.limit = limit;
    this.most = most;
  }

  /** The tile, if it is here and has rows. */
  get(name: string): Content | undefined {
    const kept = this.kept.get(name);
    if (!kept) return undefined;
    this.kept.delete(name);
    this.kept.set(name, kept);
    return kept.content;
  }

  has(name: string): boolean {
    return this.kept.get(name)?.content !== undefined;
  }

  /** Whether nothing that was wanted is missing. */
  get isComplete(): boolean {
    return this.queue.length === 0 && this.loading.size === 0;
  }

  /** Asks for these, the first ones first. Earlier wishes that were not asked for yet are forgotten. */
  want(names: string[]): void {
    this.queue = names.filter((name) => !this.kept.has(name) && !this.loading.has(name));
    this.next();
  }

  private next(): void {
    while (this.loading.size < this.most) {
      const name = this.queue.shift();
      if (name === undefined) return;
      this.loading.add(name);
      this.load(name).then(
        (content) => {
          this.loading.delete(name);
          this.keep(name, content);
          this.changed();
          this.next();
        },
        () => {
          // The next wish asks again.
          this.loading.delete(name);
          this.next();
        },
      );
    }
  }

  private keep(name: string, content: Content | undefined): void {
    const size = content === undefined ? 64 : this.sizeOf(content);
    this.kept.set(name, { content, size });
    this.size += size;
    for (const [oldest, { size }] of this.kept) {
      if (this.size <= this.limit || oldest === name) break;
      this.kept.delete(oldest);
      this.size -= size;
    }
  }
}
