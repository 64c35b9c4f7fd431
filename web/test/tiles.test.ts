// Tiles of the timeline: which are wanted, which stand in, how many are kept.

import assert from "node:assert/strict";
import { test } from "node:test";
import { BUCKETS, covers, levelOf, TileCache, tileLength, tilesOf, wanted, type Grid } from "../src/profile/tiles.ts";

const GRID: Grid = { base: 1000, levels: 5, blocks: 3 };
const DURATION = 200 * tileLength(GRID, 0);
const key = ({ level, tile }: { level: number; tile: number }) => `${level}/${tile}`;

test("buckets are one to four pixels wide, and intervals take over below", () => {
  for (const [perPixel, level] of [[1, 0], [1000, 0], [1001, 1], [4000, 1], [4001, 2], [1e12, 4]] as const) {
    assert.equal(levelOf(GRID, perPixel), level, `${perPixel} ns a pixel`);
  }
});

test("a page without the finest levels shows the finest one that it has", () => {
  assert.deepEqual([1, 1e5, 1e12].map((perPixel) => levelOf({ ...GRID, finest: 2 }, perPixel)), [2, 4, 4]);
});

test("tiles that meet a range are within the recording", () => {
  const length = tileLength(GRID, 0);
  assert.deepEqual(tilesOf(GRID, 0, 0, length, DURATION), [0]);
  assert.deepEqual(tilesOf(GRID, 0, length - 1, length + 1, DURATION), [0, 1]);
  assert.deepEqual(tilesOf(GRID, 0, -5 * length, 2, DURATION), [0]);
  assert.deepEqual(tilesOf(GRID, 0, DURATION - 1, DURATION * 3, DURATION), [199]);
  assert.deepEqual(tilesOf(GRID, 0, 0, 0, 0), [0]);
});

test("a coarser tile stands in for the time of a missing one, else finer ones do", () => {
  const here = new Set(["0/8", "2/0"]);
  const found = covers(GRID, 0, 1, [8, 9], (address) => here.has(key(address)));
  const length = tileLength(GRID, 0);
  assert.deepEqual(found, [
    { address: { level: 0, block: 1, tile: 8 }, from: 8 * length, to: 9 * length },
    { address: { level: 2, block: 1, tile: 0 }, from: 9 * length, to: 10 * length },
  ]);
  const finer = covers(GRID, 1, 0, [2, 5], (address) => address.level === 0);
  assert.deepEqual(finer.map(({ address }) => key(address)), ["0/8", "0/9", "0/10", "0/11", "0/20", "0/21", "0/22", "0/23"]);
  assert.deepEqual(covers(GRID, 0, 0, [3], () => false), []);
});

test("covers of any tiles that are here never overlap", () => {
  const here = new Set(["1/0", "2/0", "0/1", "0/2", "3/0"]);
  const found = covers(GRID, 0, 0, [0, 1, 2, 3, 4, 5, 40], (address) => here.has(key(address)));
  for (let at = 1; at < found.length; at++) assert.ok(found[at].from >= found[at - 1].to);
  assert.equal(found.length, 7);
});

test("the tiles of the view come first, then the one that stands in for all", () => {
  const names = wanted(GRID, 1, [0, 2], 0, tileLength(GRID, 1), DURATION).map(({ level, block, tile }) => `${level}/${block}/${tile}`);
  assert.deepEqual(names.slice(0, 4), ["1/0/0", "1/2/0", "4/0/0", "4/2/0"]);
  assert.equal(new Set(names).size, names.length);
});

test("a tile is wide enough that a view needs few", () => {
  const width = 2400;
  for (let perPixel = 1; perPixel < 256_000; perPixel *= 1.7) {
    const level = levelOf(GRID, perPixel);
    const shown = tilesOf(GRID, level, 0, perPixel * width, DURATION * 1000);
    assert.ok(shown.length <= Math.ceil(width / BUCKETS) + 1, `${shown.length} tiles at ${perPixel}`);
  }
});

const settled = () => new Promise((resolve) => setTimeout(resolve, 0));

test("the cache asks once, a few at a time, the latest wishes first, and forgets the oldest", async () => {
  const asked: string[] = [];
  const answers = new Map<string, (content: string | undefined) => void>();
  const load = (name: string) => {
    asked.push(name);
    return new Promise<string | undefined>((resolve) => answers.set(name, resolve));
  };
  let changes = 0;
  const cache = new TileCache<string>(load, () => 10, () => changes++, 200, 2);
  cache.want(["a", "b", "c"]);
  assert.deepEqual(asked, ["a", "b"]);
  cache.want(["d", "a"]);
  answers.get("a")!("A");
  await settled();
  assert.deepEqual(asked, ["a", "b", "d"], "c is not wanted any more");
  answers.get("b")!(undefined);
  answers.get("d")!("D");
  await settled();
  assert.equal(changes, 3);
  assert.deepEqual([cache.get("a"), cache.has("b"), cache.get("d"), cache.isComplete], ["A", false, "D", true]);
  cache.want(["b"]);
  assert.deepEqual(asked, ["a", "b", "d"], "what is known to be absent is not asked for again");
});

test("the cache keeps what was used last", async () => {
  const cache = new TileCache<string>((name) => Promise.resolve(name), () => 10, () => {}, 25);
  for (const name of ["a", "b"]) {
    cache.want([name]);
    await settled();
  }
  cache.get("a");
  cache.want(["c"]);
  await settled();
  assert.deepEqual(["a", "b", "c"].map((name) => cache.has(name)), [true, false, true]);
});

test("a failure is asked for again with the next wish", async () => {
  let attempts = 0;
  const cache = new TileCache<string>(() => (attempts++ === 0 ? Promise.reject(new Error("gone")) : Promise.resolve("a")), () => 1, () => {}, 25);
  cache.want(["a"]);
  await settled();
  assert.equal(cache.has("a"), false);
  cache.want(["a"]);
  await settled();
  assert.equal(cache.get("a"), "a");
});
