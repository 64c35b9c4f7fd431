import assert from "node:assert/strict";
import { test } from "node:test";
import { counted, weight } from "../src/units.ts";
import cases from "./quantities.json" with { type: "json" };

test("quantities are shown as in the terminal", () => {
  for (const [value, unit, shown] of cases as [number, string, string][]) {
    assert.equal(weight(value, unit), shown, `${value} ${unit}`);
  }
});

test("one thing is in the singular", () => {
  assert.deepEqual([counted(1, "function"), counted(0, "frame"), counted(1200, "step"), counted(2, "process")], ["1 function", "0 frames", "1,200 steps", "2 processes"]);
});
