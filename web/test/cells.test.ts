// Tables as people read them: cells, columns that fit, order, filter, copies.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fitting, Reading, rowsOf, tone, tsvOf } from "../src/profile/cells.ts";
import type { DocumentColumn, DocumentTable } from "../src/profile/document.ts";

function column(name: string, kind: DocumentColumn["kind"], values: DocumentColumn["values"], more: Partial<DocumentColumn> = {}): DocumentColumn {
  return { name, header: name, beside: "", unit: "", doc: "", kind, importance: "normal", values, ...more };
}

function table(...columns: DocumentColumn[]): DocumentTable {
  return { name: "t", title: "T", columns, notes: [] };
}

/** The texts of a row, by column. */
function texts(given: DocumentTable, row: number): string[] {
  const reading = new Reading(given);
  return reading.fields.map((field) => reading.text(field, row));
}

test("an estimate and its interval are one cell, and numbers have the unit of their row", () => {
  const runs = table(
    column("metric", "text", ["p99", "peak", "busy"]),
    column("unit", "text", ["ns/step", "bytes", "percent"]),
    column("before", "inrowunit", [4_200_000, 1536, 97]),
    column("ratio", "number", [0.512, 1, null], { bounds: [4, 5] }),
    column("ratio_low", "number", [0.481, null, null]),
    column("ratio_high", "number", [0.553, null, null]),
  );
  assert.deepEqual(texts(runs, 0), ["p99", "/step", "4.20 ms", "0.51 [0.48, 0.55]"]);
  assert.deepEqual(texts(runs, 1), ["peak", "", "1.50 KiB", "1.00"]);
  assert.deepEqual(texts(runs, 2), ["busy", "%", "97.00", "–"]);
});

test("half of an interval is shown, and bounds have as many decimals as they need to differ", () => {
  const estimates = (point: number | null, low: number | null, high: number | null) =>
    texts(table(column("d", "number", [point], { bounds: [1, 2] }), column("d_low", "number", [low]), column("d_high", "number", [high])), 0)[0];
  assert.equal(estimates(2, 1.5, null), "2 [1.50, –]");
  assert.equal(estimates(1.0002, 1.0001, 1.0004), "1.0002 [1.0001, 1.0004]");
  assert.equal(estimates(null, null, null), "–");
});

test("whole numbers get decimals where others of the column have them", () => {
  const numbers = table(column("rtf", "number", [1.5, 2, 0]), column("steps", "count", [1234567, 1, 0]));
  assert.deepEqual([0, 1, 2].map((row) => texts(numbers, row).join(" ")), ["1.50 1,234,567", "2.00 1", "0 0"]);
});

test("empty columns take no room, and details come on demand", () => {
  const given = table(
    column("function", "text", ["a::b", "c"], { importance: "essential" }),
    column("module", "text", ["", ""]),
    column("count", "count", [null, null]),
    column("self", "duration", [1, 2]),
    column("deep", "duration", [1, 2], { importance: "detail" }),
  );
  const names = (width: number) => fitting(new Reading(given), width).map(({ column }) => column.name);
  assert.deepEqual(names(200), ["function", "self"]);
  assert.deepEqual(names(9), ["function"]);
  assert.deepEqual(new Reading(given).known().map(({ column }) => column.name), ["function", "self", "deep"]);
});

test("essential columns come before others where room is short, in the order of the table", () => {
  const wide = "x".repeat(40);
  const given = table(column("note", "text", [wide]), column("share", "percent", [50], { importance: "essential" }), column("function", "text", [wide], { importance: "essential" }));
  assert.deepEqual(fitting(new Reading(given), 55).map(({ column }) => column.name), ["share", "function"]);
});

test("where room is short, names break into lines before the first figure goes", () => {
  const wide = "x".repeat(60);
  const given = table(column("tree", "text", [wide], { importance: "essential" }), column("cost", "duration", [5]), column("share", "percent", [50], { importance: "essential" }));
  assert.deepEqual(fitting(new Reading(given), 46).map(({ column }) => column.name), ["tree", "share"]);
  assert.deepEqual(fitting(new Reading(given), 12).map(({ column }) => column.name), ["tree"]);
});

test("rows are filtered by pattern and ownership, and unknown values come last in both orders", () => {
  const given = table(column("function", "text", ["gz::B", "std::a", "gz::A"]), column("cost", "duration", [null, 5, 7]), column("owned", "flag", [true, false, true]));
  const reading = new Reading(given);
  const by = (column: string, descending: boolean) => rowsOf(reading, undefined, false, { column, descending });
  assert.deepEqual(by("cost", true), [2, 1, 0]);
  assert.deepEqual(by("cost", false), [1, 2, 0]);
  assert.deepEqual(by("function", false), [2, 0, 1]);
  assert.deepEqual(rowsOf(reading, /^gz/, false, undefined), [0, 2]);
  assert.deepEqual(rowsOf(reading, undefined, true, undefined), [0, 2]);
});

test("a copy has all columns under stable names, exact, a line for each row", () => {
  const given = table(column("function", "text", ["a\tb\nc", "d"]), column("cost", "duration", [1234567, null]), column("owned", "flag", [true, false]));
  assert.equal(tsvOf(given, [1, 0]), "function\tcost\towned\nd\t\tno\na b c\t1234567\tyes\n");
});

test("shares have bars unless some are negative", () => {
  const largest = (values: number[]) => new Reading(table(column("share", "percent", values))).fields[0].largest;
  assert.equal(largest([10, 40]), 40);
  assert.equal(largest([-1, 40]), 0);
});

test("only verdicts have a tone", () => {
  assert.deepEqual(["changed", "regression", "equivalent", "inconclusive", "strange", null].map(tone), ["strong", "alarm", "calm", "faint", undefined, undefined]);
});
