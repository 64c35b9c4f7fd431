import assert from "node:assert/strict";
import { test } from "node:test";
import { nodeAt, rowCount, visit } from "../src/layout.ts";
import { matchedWeight, search } from "../src/search.ts";
import { Tree, type Data } from "../src/tree.ts";

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

function numbers(...values: number[]): string {
  let text = "";
  for (let value of values) {
    for (; value >= 32; value = Math.floor(value / 32)) text += ALPHABET[(value % 32) + 32];
    text += ALPHABET[value];
  }
  return text;
}

/** A tree drawn as text: a line a node, indented by its depth, with its own weight. */
function tree(drawing: string): Tree {
  const lines = drawing.split("\n").filter((line) => line.trim());
  const base = lines[0].search(/\S/);
  const strings = [""];
  const frames: number[] = [];
  const nodes: number[] = [];
  let next = 0;
  for (const line of lines) {
    const depth = (line.search(/\S/) - base) / 2;
    const [name, own] = line.trim().split(" ");
    if (!strings.includes(name)) {
      strings.push(name);
      frames.push(strings.length - 1, 0, 0, 3 * 4);
    }
    nodes.push(next - depth, strings.indexOf(name) - 1, Number(own));
    next = depth + 1;
  }
  const data: Data = {
    version: 1, title: "", subtitle: "", unit: "ns", inverted: false, growth: "up", colours: "kind",
    strings, modules: [], frames: numbers(...frames), nodes: numbers(...nodes), gaps: "",
  };
  return new Tree(data);
}

const WORLD = `
  all 0
    Run 10
      Step 20
        Run 30
      Load 40
    exit 900`;

test("totals and places are sums of the nodes' own weights", () => {
  const { total, start, depth } = tree(WORLD);
  assert.deepEqual([...total], [1000, 100, 50, 30, 40, 900]);
  assert.deepEqual([...start], [0, 0, 0, 0, 50, 100]);
  assert.deepEqual([...depth], [0, 1, 2, 3, 2, 1]);
});

test("a recursive function's weight is matched once", () => {
  const world = tree(WORLD);
  assert.equal(matchedWeight(world, search(world, "^Run$"), 0), 100);
  assert.equal(matchedWeight(world, search(world, "run|load"), 0), 100);
  assert.equal(matchedWeight(world, search(world, "Step"), 0), 50);
});

test("the frame under a point is found at any zoom", () => {
  const world = tree(WORLD);
  assert.equal(nodeAt(world, { root: 0, width: 1000 }, 60, 2), 4);
  assert.equal(nodeAt(world, { root: 0, width: 1000 }, 95, 2), undefined);
  assert.equal(nodeAt(world, { root: 1, width: 1000 }, 600, 2), 4);
  assert.equal(nodeAt(world, { root: 1, width: 1000 }, 600, 0), 0);
});

test("frames too narrow to see are neither drawn nor given rows", () => {
  const world = tree(WORLD);
  const seen: number[] = [];
  visit(world, { root: 0, width: 4 }, 0, 9, (node) => seen.push(node));
  // Run is 0.4 pixels wide, Step 0.2.
  assert.deepEqual(seen, [0, 1, 5]);
  assert.equal(rowCount(world, { root: 0, width: 4 }), 2);
});

test("a million nodes that share a few pixels are not drawn one by one", () => {
  const lines = ["all 0", ...Array.from({ length: 20_000 }, (_, index) => `  f${index % 7} 1`)];
  const world = tree(lines.join("\n"));
  let drawn = 0;
  visit(world, { root: 0, width: 100 }, 0, 9, () => drawn++);
  assert.ok(drawn <= 101, String(drawn));
});
