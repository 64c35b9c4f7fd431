import assert from "node:assert/strict";
import { test } from "node:test";
import type { Table } from "../src/profile/columns.ts";
import { GrowingTable } from "../src/profile/growing.ts";

function scopes(...rows: [thread: number, start: number, end: number][]): Table {
  return {
    rows: rows.length,
    columns: {
      thread: Int32Array.from(rows, ([thread]) => thread),
      start: Float64Array.from(rows, ([, start]) => start),
      end: Float64Array.from(rows, ([, , end]) => end),
      depth: new Int32Array(rows.length),
    },
  };
}

function samples(...times: number[]): Table {
  return { rows: times.length, columns: { time: Float64Array.from(times), stack: Int32Array.from(times, (time) => time * 10) } };
}

function column(table: Table, name: string): number[] {
  return Array.from(table.columns[name] as Float64Array);
}

test("rows are appended, and each change gives another table", () => {
  const table = new GrowingTable("samples");
  table.put(samples(1, 2));
  const before = table.table;
  assert.equal(table.table, before);
  table.put(samples(3));
  assert.notEqual(table.table, before);
  assert.deepEqual(column(table.table, "time"), [1, 2, 3]);
  assert.deepEqual([before.rows, before.columns.time.length], [2, 2]);
});

test("rows that come late are put between the others", () => {
  const table = new GrowingTable("samples");
  table.put(samples(1, 4, 6));
  table.put(samples(2, 4, 5, 9));
  assert.deepEqual(column(table.table, "time"), [1, 2, 4, 4, 5, 6, 9]);
  assert.deepEqual(column(table.table, "stack"), [10, 20, 40, 40, 50, 60, 90]);
});

test("many small messages give the order of one large one", () => {
  const table = new GrowingTable("samples");
  const times = Array.from({ length: 3000 }, (_, index) => (index * 7919) % 3001);
  for (let at = 0; at < times.length; at += 50) table.put(samples(...times.slice(at, at + 50).sort((a, b) => a - b)));
  const sorted = [...times].sort((a, b) => a - b);
  assert.deepEqual(column(table.table, "time"), sorted);
  assert.deepEqual(column(table.table, "stack"), sorted.map((time) => time * 10));
});

test("rows at a place replace those that were there", () => {
  const table = new GrowingTable("threads");
  const threads = (...names: string[]): Table => ({ rows: names.length, columns: { name: names, tid: Int32Array.from(names, (_, index) => index) } });
  table.put(threads("a", "b"), 0);
  table.put(threads("c"), 2);
  assert.deepEqual(table.table.columns.name, ["a", "b", "c"]);
  table.put(threads("x", "y", "z", "w"), 0);
  assert.deepEqual(table.table, threads("x", "y", "z", "w"));
  table.put(threads("q"), 1);
  assert.deepEqual([table.table.rows, table.table.columns.name], [2, ["x", "q"]]);
});

test("a scope that ends later encloses those that it started before", () => {
  const table = new GrowingTable("scopes");
  table.put(scopes([1, 20, 30], [2, 20, 30]));
  table.put(scopes([1, 15, 40], [1, 50, 60]));
  table.put(scopes([1, 10, 100]));
  assert.deepEqual(column(table.table, "start"), [10, 15, 20, 20, 50]);
  assert.deepEqual(column(table.table, "depth"), [0, 1, 2, 0, 1]);
});

test("old rows are forgotten when they are many, those that ended later stay", () => {
  const table = new GrowingTable("waits");
  const rows = 4000;
  const start = Float64Array.from({ length: rows }, (_, row) => row);
  const end = start.map((time) => time + 1);
  end[5] = 1e9;
  table.put({ rows, columns: { start, end } });
  table.forgetBefore(900);
  assert.equal(table.table.rows, rows, "a quarter may stay");
  table.forgetBefore(2000);
  assert.deepEqual(column(table.table, "start").slice(0, 3), [5, 1999, 2000]);
  assert.equal(table.table.rows, 2002);
  table.put({ rows: 1, columns: { start: Float64Array.of(3.5), end: Float64Array.of(4) } });
  assert.deepEqual(column(table.table, "start").slice(0, 2), [3.5, 5]);
});

test("steps keep their row numbers", () => {
  const table = new GrowingTable("steps");
  const start = Float64Array.from({ length: 9000 }, (_, row) => row);
  table.put({ rows: 9000, columns: { start, end: start } });
  table.forgetBefore(8000);
  assert.equal(table.table.rows, 9000);
});
