import assert from "node:assert/strict";
import { test } from "node:test";
import { fit, formsOf } from "../src/label.ts";
import cases from "./labels.json" with { type: "json" };

test("labels agree with the cases shared with crates/view", () => {
  for (const [name, columns, shown] of cases as [string, number, string | null][]) {
    assert.equal(fit(formsOf(name), columns) ?? null, shown, `${name} in ${columns}`);
  }
});

test("shortened template arguments keep their brackets in pairs", () => {
  const name = "std::vector<unsigned char, std::allocator<unsigned char> >::push_back";
  const forms = formsOf(name);
  for (let columns = 3; columns <= name.length; columns++) {
    const shown = fit(forms, columns)!;
    assert.ok(shown.length <= columns, shown);
    if (!shown.endsWith("…")) assert.equal(shown.split("<").length, shown.split(">").length, shown);
  }
  assert.equal(fit(forms, 43), "std::vector<unsigned char, st… >::push_back");
});
