import assert from "node:assert/strict";
import { test } from "node:test";
import { compile, exactly } from "../src/search.ts";

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
