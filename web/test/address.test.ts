// The hash: every view comes back, and nothing that is written there throws.

import assert from "node:assert/strict";
import { test } from "node:test";
import { hashOf, LONGEST, START, viewOf, type View } from "../src/profile/address.ts";

const FULL: View = {
  widths: "after",
  screen: "explore",
  capture: 2,
  base: 0,
  selection: { from: 0, to: 5_000_000, steps: [[3, 7], [12, 12]], stepClass: "slow", stepTime: [5, 9], loop: 1, threads: [0, 5], processes: [1], scopes: ["a & b", "x,y"], states: [0, 2] },
  against: { from: 7, to: 8, steps: [[1, 2]], stepClass: "typical", stepTime: [1, 4], loop: 2 },
  span: { from: 1, to: 2 },
  last: 10_000_000_000,
  laneSort: "path",
  closed: ["CPUs", "process 3"],
  idleShown: ["process 1"],
  hidden: ["path", "samples"],
  functionSort: "total",
  pane: "tree",
  weight: "event-2",
  order: "time",
  inverted: true, startUp: true,
  transforms: [
    { kind: "focus", name: "gz::sim::Step<int, std::less<>>" },
    { kind: "owned", name: "" },
    { kind: "drop", name: "operator+ %41 #?=" },
    { kind: "focus", name: "b" },
    { kind: "collapse", name: "libfoo++.so" },
  ],
  function: "größe 🤖",
  at: { lane: -3, time: 17 },
  zoom: "0.4.1",
  instructions: true, source: { file: "/src/a,b.cc", line: 42 },
  search: "^a+b$",
  place: "shapes/steady#2",
  filter: "[",
  sort: "-cost",
};

test("every part of a view comes back from its hash", () => {
  assert.deepEqual(viewOf(hashOf(FULL)), FULL);
  for (const key of Object.keys(FULL) as (keyof View)[]) {
    const view = { ...START, [key]: FULL[key] };
    assert.deepEqual(viewOf(hashOf(view)), view, key);
  }
});

test("every part of a selection comes back by itself", () => {
  const { from, to, ...parts } = FULL.selection;
  for (const selection of [{ from, to }, ...Object.entries(parts).map(([key, value]) => ({ [key]: value }))]) {
    const view = { ...START, selection } as View;
    assert.deepEqual(viewOf(hashOf(view)), view);
  }
});

test("the start has a short hash, and names in hashes stay readable", () => {
  assert.equal(hashOf(START), "#verdict");
  const view: View = { ...START, screen: "explore", transforms: [{ kind: "focus", name: "gz::sim" }], inverted: true };
  assert.equal(hashOf(view), "#explore?inverted&focus=gz::sim");
});

test("a hash without meaning is the start", () => {
  for (const hash of ["", "#", "#nowhere", "#?", "#verdict?", "#%E0%A4%A", "#verdict?%E0%A4%A=1&&&==", "#flame=3&s=x", "#constructor?__proto__=1&constructor=2&toString"]) {
    assert.deepEqual(viewOf(hash), START, hash);
  }
});

test("values without meaning are left out, and good ones beside them stay", () => {
  const bad = ["capture=-1", "capture=1e9", "capture=99999999999999999999", "t=5", "t=7-3", "t=NaN-Infinity", "t=1-2-3", "steps=1-2,x", "threads=1,,2", "pane=html", "weight=<b>", "order=", "at=1", "at=1,2,3", "source=a,b", "last=x", "base="];
  for (const value of bad) assert.deepEqual(viewOf(`#explore?${value}&s=kept`), { ...START, screen: "explore", search: "kept" }, value);
});

test("long values and long lists neither throw nor fill memory", () => {
  const name = "x".repeat(LONGEST + 1);
  assert.deepEqual(viewOf(hashOf({ ...START, function: name })), START);
  assert.deepEqual(viewOf(`#verdict?f=${name}`), START);
  assert.ok(viewOf(`#explore?${"focus=a&".repeat(200_000)}`).transforms.length <= 1000);
});

test("halves of characters do not throw", () => {
  assert.equal(viewOf(hashOf({ ...START, search: "a\ud800b" })).search, "a\ufffdb");
});

test("random hashes never throw and settle after one reading", () => {
  let seed = 7;
  const random = (limit: number) => (seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648) % limit;
  const alphabet = "explorvdict?&=-,%0123456789abfst#<>\u0000é🤖";
  for (let round = 0; round < 3000; round++) {
    const text = `#explore?${Array.from({ length: random(60) }, () => alphabet[random(alphabet.length)]).join("")}`;
    const view = viewOf(text);
    assert.deepEqual(viewOf(hashOf(view)), view, text);
  }
});
