import assert from "node:assert/strict";
import { test } from "node:test";
import { weight } from "../src/units.ts";
import cases from "./quantities.json" with { type: "json" };

test("quantities are shown as in the terminal", () => {
  for (const [value, unit, shown] of cases as [number, string, string][]) {
    assert.equal(weight(value, unit), shown, `${value} ${unit}`);
  }
});
