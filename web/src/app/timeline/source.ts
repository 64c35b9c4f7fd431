// The lanes of a capture, with a cache of their tiles.

import { signal } from "@preact/signals";
import { integers, texts, type LanesEntry, type Table } from "../../profile/columns.ts";
import { intervalOf, rowAtTime, rowsBetween, tileOf, wakeUps, type Interval, type Tile, type WakeUp } from "../../profile/intervals.ts";
import { readLanes, threadNames, type CounterSeries, type Lane } from "../../profile/lanes.ts";
import { covers, levelOf, TileCache, tileLength, tileName, tilesOf, wanted, type Grid } from "../../profile/tiles.ts";
import type { Drawn, Lanes } from "../../draw/timeline_lanes.ts";
import type { Client } from "../../data/client.ts";

/** Bytes of tiles that are kept, by family. */
const MOST_BYTES = { lanes: 96 << 20, scopes: 64 << 20, counters: 16 << 20 };
const NAMES = { lanes: "lanes", scopes: "scope_lanes", counters: "counter_lanes" } as const;
const KEYS = { lanes: ["lane"], scopes: ["thread", "depth"], counters: ["series"] } as const;
export type Family = keyof typeof NAMES;
export const FAMILIES: Family[] = ["lanes", "scopes", "counters"];

/** Wake-ups beyond this number are not drawn: nobody could tell them apart. */
const MOST_WAKE_UPS = 300;

/** Tiles of single intervals that one question reads. */
const MOST_TILES = 8;

/** The small tables that a timeline needs first. */
export interface LaneTables {
  order: Table;
  threads: Table;
  processes: Table;
  scopeNames: Table | undefined;
  counterNames: Table | undefined;
}

/** The lanes that are shown, for the details. */
export const shownLanes = signal<LaneSource | undefined>(undefined);

export class LaneSource {
  readonly lanes: Lane[];
  readonly processes: string[];
  /** With ids where several threads have one name. */
  readonly threadNames: string[];
  readonly scopeNames: string[];
  readonly series: (CounterSeries & { isTotal: boolean })[];
  readonly entry: LanesEntry;
  readonly duration: number;
  private readonly capture: number;
  private readonly caches: Record<Family, TileCache<Tile>>;
  private readonly byNumber: Map<number, Lane>;
  private readonly client: Client;

  constructor(client: Client, capture: number, entry: LanesEntry, duration: number, tables: LaneTables, changed: () => void) {
    this.client = client;
    this.capture = capture;
    this.entry = entry;
    this.duration = Math.max(1, duration);
    this.lanes = readLanes(tables.order, tables.threads);
    this.byNumber = new Map(this.lanes.map((lane) => [lane.lane, lane]));
    this.processes = tables.processes.rows > 0 ? texts(tables.processes, "label") : [];
    this.threadNames = threadNames(tables.threads);
    this.scopeNames = tables.scopeNames?.rows ? texts(tables.scopeNames, "name") : [];
    this.series = tables.counterNames?.rows ? seriesOf(tables.counterNames) : [];
    const cacheOf = (family: Family) => new TileCache<Tile>((name) => this.load(family, name), ({ bytes }) => bytes, changed, MOST_BYTES[family]);
    this.caches = { lanes: cacheOf("lanes"), scopes: cacheOf("scopes"), counters: cacheOf("counters") };
  }

  private async load(family: Family, name: string): Promise<Tile | undefined> {
    const table = await this.client.ask("tile", { capture: this.capture, name });
    return table.rows > 0 ? tileOf(table, KEYS[family]) : undefined;
  }

  laneOf(number: number): Lane | undefined {
    return this.byNumber.get(number);
  }

  grid(family: Family): Grid {
    return this.entry[family];
  }

  /** What to draw for a view, and where its rows come from. */
  view(from: number, to: number, perPixel: number): Lanes {
    const drawn = (family: Family) => {
      const known = new Map<number, Drawn[]>();
      return (block: number) => {
        let found = known.get(block);
        if (!found) known.set(block, (found = this.drawn(family, block, from, to, perPixel)));
        return found;
      };
    };
    return {
      grids: this.entry,
      lanes: drawn("lanes"),
      scopes: drawn("scopes"),
      counters: drawn("counters"),
      scopeNames: this.scopeNames,
      stateNames: this.entry.states,
      threadName: (thread) => this.threadNames[thread] ?? `thread ${thread}`,
      series: this.series,
    };
  }

  private drawn(family: Family, block: number, from: number, to: number, perPixel: number): Drawn[] {
    const grid = this.grid(family);
    const cache = this.caches[family];
    const level = levelOf(grid, perPixel);
    const name = (address: { level: number; block: number; tile: number }) => tileName(NAMES[family], address);
    const found = covers(grid, level, block, tilesOf(grid, level, from, to, this.duration), (address) => cache.has(name(address)));
    return found.flatMap((cover) => {
      const tile = cache.get(name(cover.address));
      return tile ? [{ tile, cover }] : [];
    });
  }

  /** Asks for the tiles that a view needs. */
  want(family: Family, blocks: number[], from: number, to: number, perPixel: number): void {
    const grid = this.grid(family);
    const addresses = wanted(grid, levelOf(grid, perPixel), blocks, from, to, this.duration);
    this.caches[family].want(addresses.map((address) => tileName(NAMES[family], address)));
  }

  get isComplete(): boolean {
    return FAMILIES.every((family) => this.caches[family].isComplete);
  }

  /** Whether single intervals are shown. */
  showsIntervals(perPixel: number): boolean {
    return levelOf(this.entry.lanes, perPixel) === 0;
  }

  /** The tile of single intervals that has a moment of a lane, if it is here. */
  private intervalTile(lane: number, time: number): Tile | undefined {
    const block = this.laneOf(lane)?.block;
    if (block === undefined) return undefined;
    return this.caches.lanes.get(tileName("lanes", { level: 0, block, tile: Math.max(0, Math.floor(time / tileLength(this.entry.lanes, 0))) }));
  }

  /** The interval at a moment of a lane, if it is here. */
  intervalAt(lane: number, time: number, reach = 0): Interval | undefined {
    const tile = this.intervalTile(lane, time);
    const row = tile ? rowAtTime(tile, lane, time, reach) : -1;
    return tile && row >= 0 ? intervalOf(tile, row) : undefined;
  }

  /** The same, asked for if it is not here. */
  async findInterval(lane: number, time: number, reach = 0): Promise<Interval | undefined> {
    const here = this.intervalAt(lane, time, reach);
    const block = this.laneOf(lane)?.block;
    if (here || block === undefined) return here;
    const name = tileName("lanes", { level: 0, block, tile: Math.max(0, Math.floor(time / tileLength(this.entry.lanes, 0))) });
    const tile = await this.load("lanes", name);
    const row = tile ? rowAtTime(tile, lane, time, reach) : -1;
    return tile && row >= 0 ? intervalOf(tile, row) : undefined;
  }

  /** The single intervals of a lane in a range of time, the first ones; `undefined` if the page has none that close, or the range is too long to read. */
  async intervalsIn(lane: number, from: number, to: number, most: number): Promise<Interval[] | undefined> {
    const block = this.laneOf(lane)?.block;
    const numbers = tilesOf(this.entry.lanes, 0, from, to, this.duration);
    if (block === undefined || this.entry.lanes.finest || numbers.length > MOST_TILES) return undefined;
    const found: Interval[] = [];
    for (const number of numbers) {
      const name = tileName("lanes", { level: 0, block, tile: number });
      const tile = this.caches.lanes.get(name) ?? (await this.load("lanes", name));
      const [first, end] = tile ? rowsBetween(tile, lane, from, to) : [0, 0];
      // What reaches into the next tile is a row of both.
      for (let row = first; row < end && found.length < most; row++) {
        const interval = intervalOf(tile!, row);
        if (interval.start > (found.at(-1)?.start ?? -1)) found.push(interval);
      }
    }
    return found;
  }

  /** Wake-ups between these lanes; `undefined` if there are too many to show. */
  wakeUps(lanes: Lane[], from: number, to: number): WakeUp[] | undefined {
    const found: WakeUp[] = [];
    const seen = new Set<string>();
    for (const lane of lanes) {
      for (const number of tilesOf(this.entry.lanes, 0, from, to, this.duration)) {
        const tile = this.caches.lanes.get(tileName("lanes", { level: 0, block: lane.block, tile: number }));
        if (!tile) continue;
        for (const wakeUp of wakeUps(tile, [lane.lane], from, to)) {
          const key = `${wakeUp.woken} ${wakeUp.time}`;
          if (seen.has(key)) continue;
          seen.add(key);
          found.push(wakeUp);
          if (found.length > MOST_WAKE_UPS) return undefined;
        }
      }
    }
    return found;
  }

  /** The share of all CPUs in use over the recording, in as many columns. Of CPUs where these are known, else of threads. */
  overview(columns: number): Float32Array {
    const shares = new Float32Array(columns);
    const grid = this.entry.lanes;
    const cpus = this.lanes.filter(({ lane }) => lane < 0);
    const shown = cpus.length > 0 ? cpus : this.lanes;
    const blocks = new Set(shown.map(({ block }) => block));
    const numbers = new Set(shown.map(({ lane }) => lane));
    const scale = columns / this.duration;
    for (const block of blocks) {
      const level = grid.levels - 1;
      const tile = this.caches.lanes.get(tileName("lanes", { level, block, tile: 0 }));
      if (tile) for (const number of numbers) addRunning(tile, number, level, grid, scale, shares);
    }
    const most = cpus.length > 0 ? cpus.length : Math.max(1, ...shares);
    return shares.map((share) => share / most);
  }
}

/** Adds the running time of a lane in a tile of the coarsest level, in columns. */
function addRunning({ table, rows }: Tile, lane: number, level: number, grid: Grid, scale: number, shares: Float32Array): void {
  const [first, end] = rows.get(lane) ?? [0, 0];
  if (first === end) return;
  const add = (start: number, until: number, share: number) => {
    const [left, right] = [start * scale, until * scale];
    for (let column = Math.max(0, Math.floor(left)); column < Math.min(shares.length, Math.ceil(right)); column++) {
      shares[column] += share * Math.max(0, Math.min(right, column + 1) - Math.max(left, column));
    }
  };
  if (level === 0) {
    const { start, end: ends } = table.columns as { start: Float64Array; end: Float64Array };
    const states = integers(table, "state");
    for (let row = first; row < end; row++) if (states[row] === 0) add(start[row], ends[row], 1);
    return;
  }
  const length = grid.base * 4 ** level;
  const [buckets, lengths, running] = ["bucket", "length", "running"].map((name) => integers(table, name));
  for (let row = first; row < end; row++) add(buckets[row] * length, (buckets[row] + lengths[row]) * length, running[row] / 255);
}

function seriesOf(table: Table): (CounterSeries & { isTotal: boolean })[] {
  const [names, units] = [texts(table, "name"), texts(table, "unit")];
  const [processes, threads] = [integers(table, "process"), integers(table, "thread")];
  const totals = "total" in table.columns ? integers(table, "total") : undefined;
  return names.map((name, row) => ({ name, unit: units[row], process: processes[row], thread: threads[row], isTotal: totals?.[row] === 1 }));
}
