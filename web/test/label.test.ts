import assert from "node:assert/strict";
import { test } from "node:test";
import { fit, formsOf } from "../src/label.ts";
import cases from "./labels.json" with { type: "json" };

test("labels agree with the cases shared with crates/view", () => {
  for (const [name, columns, shown] of cases as [string, number, string | null][]) {
    assert.equal(fit(formsOf(name), columns) ?? null, shown, `${name} in ${columns}`);
  }
});
