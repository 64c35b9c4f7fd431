// What instructions cost, from tables drawn here.

import assert from "node:assert/strict";
import { test } from "node:test";
import { instructionsOf } from "../src/profile/instructions.ts";
import { linesOf } from "../src/profile/lines.ts";
import { Chosen } from "../src/profile/weigh.ts";
import { drawn, NOTHING, table } from "./drawn.ts";

const CODE = table({
  address: Float64Array.of(0x1000, 0x1004, 0x1009),
  text: ["push %rbp", "call 2000 <lock>", "ret"],
  function: ["step", "step", "step"],
  file: ["/s.cc", "/s.cc", "/s.cc"],
  line: Int32Array.of(3, 4, 5),
});

/** Samples: time, thread, address, whether in a callee, weight; of event 0, the last one of event 1. */
const SAMPLES = table({
  time: Float64Array.of(10, 20, 30, 40, 50),
  thread: Int32Array.of(0, 0, 1, 0, 0),
  event: Int32Array.of(0, 0, 0, 0, 1),
  weight: Float64Array.of(1, 2, 4, 8, 16),
  stack: Int32Array.of(0, 1, 0, 0, 0),
  // The return address less one is within the call; the last but one is before the code.
  address: Float64Array.of(0x1000, 0x1008, 0x1009, 0x500, 0x1000),
});

const RECORDED = { threads: table({ process: Int32Array.of(0, 0) }), samples: NOTHING, sums: NOTHING, amounts: NOTHING, waits: NOTHING, steps: NOTHING, scopes: NOTHING, scopeNames: NOTHING };

test("a sample counts at its instruction, and one in a callee at the call", () => {
  const { self, total, problem, addresses } = instructionsOf(CODE, SAMPLES, new Chosen({}, RECORDED), 0);
  assert.equal(problem, "");
  assert.deepEqual([...self], [1, 0, 4]);
  assert.deepEqual([...total], [1, 2, 4]);
  assert.notEqual(addresses, CODE.columns["address"], "an answer's arrays move away, and the table stays");
});

test("a selection of time and threads limits the cost of instructions", () => {
  const selected = (part: object) => [...instructionsOf(CODE, SAMPLES, new Chosen(part, RECORDED), 0).total];
  assert.deepEqual(selected({ from: 15, to: 25 }), [0, 2, 0]);
  assert.deepEqual(selected({ threads: [1] }), [0, 0, 4]);
});

test("without an event instructions are shown and not weighed", () => {
  const found = instructionsOf(CODE, SAMPLES, new Chosen({}, RECORDED), undefined);
  assert.deepEqual([...found.total], [0, 0, 0]);
  assert.equal(found.texts.length, 3);
});

test("a function without instructions says why", () => {
  const why = "`objdump` is missing: install it (Debian package: binutils)";
  assert.equal(instructionsOf(table({ problem: [why] }), NOTHING, new Chosen({}, RECORDED), 0).problem, why);
  assert.match(instructionsOf(NOTHING, NOTHING, new Chosen({}, RECORDED), 0).problem, /no instructions/);
});

test("a line names its heaviest frame", () => {
  const { frames, stacks, weights } = drawn(`
    main@m.cc:1
      step@s.cc:7 1
        inner@s.cc:7 5
      other@s.cc:9 2
  `);
  const lines = linesOf("s.cc", frames, stacks, weights);
  assert.deepEqual([...lines.lines], [7, 9]);
  // `step` has the 5 of its callee, too.
  assert.deepEqual([...lines.frames], [1, 3]);
  assert.deepEqual([...lines.total], [6, 2]);
});
