import assert from "node:assert/strict";
import { test } from "node:test";
import { FRAME_KINDS } from "../src/profile/columns.ts";
import { rankedFunctions } from "../src/profile/function_rank.ts";
import { compile, exactly } from "../src/search.ts";
import { table } from "./drawn.ts";

test("a pattern without capitals ignores case", () => {
  assert.ok(compile("step").test("World::Step"));
  assert.ok(!compile("Step").test("world::step"));
});

test("invalid patterns are searched literally", () => {
  assert.ok(compile("operator()(").test("Foo::operator()(int)"));
  assert.ok(compile("a*b[").test("xa*b[1]"));
});

test("a name matches exactly itself", () => {
  const name = "std::map<int, a*>::operator[](int const&) const";
  assert.ok(compile(exactly(name)).test(name));
  assert.ok(!compile(exactly(name)).test(`${name}2`));
});

test("functions are listed by whose they are, then by their weight", () => {
  const rows: [string, (typeof FRAME_KINDS)[number], number, number][] = [
    ["do_update", "kernel", 0, 0], ["std::update", "runtime", 0, 0], ["other::update", "native", 0, 1], ["lib::update_all", "native", 0, 0], ["own::update_light", "native", 1, 1],
    ["own::update_heavy", "native", 1, 1], ["own::update", "native", 1, 1], ["own::update_heavy", "native", 0, 0], ["", "unknown", 0, 0], ["[sleep]", "group", 0, 0],
  ];
  const frames = table({
    function: rows.map(([name]) => name), kind: Int32Array.from(rows, ([, kind]) => FRAME_KINDS.indexOf(kind)),
    owned: Int32Array.from(rows, ([, , owned]) => owned), owner: Int32Array.from(rows, ([, , , owner]) => owner),
  });
  const weights = new Map([["do_update", 100], ["own::update_heavy", 50], ["own::update_light", 1], ["lib::update_all", 2]]);
  assert.deepEqual(rankedFunctions(frames, weights), ["own::update_heavy", "own::update_light", "own::update", "other::update", "lib::update_all", "std::update", "do_update"]);
});
