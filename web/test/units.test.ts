import assert from "node:assert/strict";
import { test } from "node:test";
import { percent, weight } from "../src/units.ts";
import cases from "./quantities.json" with { type: "json" };

test("weights agree with the cases shared with crates/view", () => {
  for (const [value, unit, shown] of cases as [number, string, string][]) assert.equal(weight(value, unit), shown);
});

test("a share that rounds to nothing says so", () => {
  assert.equal(percent(0.0049), "<0.01");
  assert.equal(percent(0), "0.00");
});
