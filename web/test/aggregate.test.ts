// Call trees of what is selected: sums, orders, transforms.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Transform } from "../src/profile/address.ts";
import { Nodes, outermost, ownWeights } from "../src/profile/call_tree.ts";
import { weightOf } from "../src/profile/capture.ts";
import { difference } from "../src/profile/difference.ts";
import { flameOf, levelOf, pathTo, withoutStartUp, type Flame } from "../src/profile/flame.ts";
import { functionTable, neighbours, sandwich } from "../src/profile/function_table.ts";
import { invertedFlame, leaves } from "../src/profile/inverted.ts";
import { filesOf, linesOf } from "../src/profile/lines.ts";
import { grouped, timeOrderedFlame } from "../src/profile/time_order.ts";
import { pathHashes } from "../src/profile/functions.ts";
import { pathName, transformed } from "../src/profile/transforms.ts";
import { KINDS, type Kind } from "../src/tree.ts";
import type { Table } from "../src/profile/columns.ts";
import { weigh } from "../src/profile/weigh.ts";
import { flameAnswers } from "../src/worker/flame.ts";
import type { Store } from "../src/worker/store.ts";
import { costTree } from "../src/profile/cost_tree.ts";
import shared from "./cost_tree.json";
import { drawn, recorded, samples, shown, table, waits, type Drawn } from "./drawn.ts";

const PROGRAM = `
  start
    main
      step* 5
        solve* 10
          malloc[libc.so] 4
            brk[libc.so] 2
        draw 20
      step* 1
    idle 3`;

function flame({ tree, own, functions }: Drawn): string[] {
  return shown(flameOf(tree, own, functions), functions);
}

function after(profile: Drawn, ...transforms: Transform[]): string[] {
  const tree = transforms.reduce((tree, one) => transformed(tree, one, profile.catalogue), profile.tree);
  return shown(flameOf(tree, ownWeights(tree, profile.weights), profile.functions), profile.functions);
}

test("calls of one function at several lines are one node, the heaviest callee first", () => {
  assert.deepEqual(flame(drawn(PROGRAM)), [
    "start 45",
    "  main 42",
    "    step 42 (6)",
    "      draw 20",
    "      solve 16 (10)",
    "        malloc 6 (4)",
    "          brk 2",
    "  idle 3",
  ]);
});

test("a node is found again, whatever the number of its siblings and of all nodes", () => {
  const nodes = new Nodes(1);
  const made = new Map<string, number>();
  const visit = (parent: number, of: number) => {
    const node = nodes.child(parent, of);
    const key = `${parent} ${of}`;
    assert.equal(node, made.get(key) ?? made.size);
    made.set(key, node);
  };
  // Few callees each, then many of a few callers, in orders that no table has.
  for (let round = 0; round < 2; round++) {
    for (let at = 0; at < 20_000; at++) visit(((at * 7919) % 5_000) - 1, at % 40);
    for (let at = 0; at < 20_000; at++) visit(at % 3, 1_000_000 - at);
  }
  assert.equal(nodes.size, made.size);
});

test("siblings can be in the order of their names", () => {
  const { tree, own, functions } = drawn("b 1\na 2\nc 3");
  assert.deepEqual(shown(flameOf(tree, own, functions, "name"), functions), ["a 2", "b 1", "c 3"]);
});

test("nodes lie in levels, from left to right", () => {
  const { tree, own, functions } = drawn(PROGRAM);
  const made = flameOf(tree, own, functions);
  assert.deepEqual([...made.levels], [0, 1, 2, 4, 5, 7, 8, 9]);
  assert.deepEqual([...made.start], [0, 0, 0, 42, 0, 0, 20, 20, 20]);
  assert.deepEqual([levelOf(made, 0), levelOf(made, 3), levelOf(made, 8)], [0, 2, 6]);
  assert.deepEqual(pathTo(made, 7), [0, 1, 2, 4, 6, 7]);
  checkLevels(made);
});

function checkLevels(made: Flame): void {
  for (let level = 0; level + 1 < made.levels.length; level++) {
    for (let node = made.levels[level]; node < made.levels[level + 1]; node++) {
      assert.equal(levelOf(made, node), level);
      if (node > made.levels[level]) assert.ok(made.start[node] >= made.start[node - 1]);
    }
  }
}

test("a random tree adds up in each node, and is in level order", () => {
  let seed = 7;
  const random = (below: number) => (seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0) % below;
  const lines: string[] = [];
  let depth = 0;
  for (let line = 0; line < 400; line++) {
    depth = line === 0 ? 0 : random(Math.min(depth + 2, 12));
    lines.push(`${"  ".repeat(depth)}f${random(30)} ${random(9)}`);
  }
  const profile = drawn(lines.join("\n"));
  const made = flameOf(profile.tree, profile.own, profile.functions);
  checkLevels(made);
  for (let node = 0; node < made.size; node++) {
    let sum = made.own[node];
    for (let child = made.children[node]; child < made.children[node + 1]; child++) {
      assert.equal(made.parents[child], node);
      sum += made.total[child];
    }
    assert.equal(sum, made.total[node]);
  }
  const inverted = invertedFlame(profile.tree, leaves(profile.own), profile.functions.names.length);
  checkLevels(inverted);
  assert.equal(inverted.total[0], made.total[0]);
  const roots = Array.from({ length: inverted.children[1] - 1 }, (_, at) => inverted.total[at + 1]);
  assert.deepEqual(roots, roots.toSorted((a, b) => b - a));
});

test("inverted, the function with the most self weight comes first, its callers below it", () => {
  const { tree, own, functions } = drawn("main\n  a 1\n    x 5\n  b\n    x 7\n  c 9");
  assert.deepEqual(shown(invertedFlame(tree, leaves(own), functions.names.length), functions), [
    "x 12", "  b 7", "    main 7", "  a 5", "    main 5", "c 9", "  main 9", "a 1", "  main 1",
  ]);
});

test("inverted nodes too narrow to see are counted, and keep their room", () => {
  const { tree, own, functions } = drawn("main\n  heavy 100000\n  light 1\n  middle 50");
  const made = invertedFlame(tree, leaves(own), functions.names.length);
  assert.deepEqual(shown(made, functions), ["heavy 100000", "  main 100000", "middle 50", "  main 50"]);
  assert.equal(made.pruned, 1);
  assert.equal(made.total[0], 100051);
});

test("transforms", () => {
  const profile = () => drawn(PROGRAM);
  assert.deepEqual(after(profile(), { kind: "focus", name: "solve" }), ["solve 16 (10)", "  malloc 6 (4)", "    brk 2"]);
  assert.deepEqual(after(profile(), { kind: "drop", name: "malloc" }).slice(0, 5), ["start 39", "  main 36", "    step 36 (6)", "      draw 20", "      solve 10"]);
  assert.deepEqual(after(profile(), { kind: "merge", name: "step" }).slice(0, 4), ["start 45", "  main 42 (6)", "    draw 20", "    solve 16 (10)"]);
  assert.deepEqual(after(profile(), { kind: "collapse", name: "libc.so" }, { kind: "focus", name: "solve" }), ["solve 16 (10)", "  [libc.so] 6"]);
  assert.deepEqual(after(profile(), { kind: "owned", name: "" }), ["step 42 (26)", "  solve 16", "start 3"]);
  assert.deepEqual(after(profile(), { kind: "focus", name: "nowhere" }), []);
});

test("the order of transforms matters", () => {
  const [drop, focus]: Transform[] = [{ kind: "drop", name: "step" }, { kind: "focus", name: "solve" }];
  assert.deepEqual(after(drawn(PROGRAM), drop, focus), []);
  assert.deepEqual(after(drawn(PROGRAM), focus, drop), ["solve 16 (10)", "  malloc 6 (4)", "    brk 2"]);
});

test("a path is found again by its hash", () => {
  const profile = drawn("main\n  a\n    x 1\n  b\n    x 2\n      y 3");
  const hashes = pathHashes(profile.tree, profile.functions);
  assert.equal(new Set(hashes).size, profile.tree.size);
  const below = profile.tree.ofPlace[profile.lines[4]];
  const name = pathName(hashes[below], "x");
  assert.deepEqual(after(profile, { kind: "path", name }), ["x 5 (2)", "  y 3"]);
  assert.deepEqual(after(drawn("main\n  b\n    x 2"), { kind: "path", name }), ["x 2"]);
  assert.deepEqual(after(profile, { kind: "path", name: "zz" }), []);
});

test("collapsed recursion keeps what is below the last call", () => {
  const profile = drawn("main\n  walk 1\n    visit 2\n      walk 4\n        visit 8\n    leaf 16");
  assert.deepEqual(after(profile, { kind: "recursion", name: "walk" }), ["main 31", "  walk 31 (7)", "    leaf 16", "    visit 8"]);
});

test("callers that all stacks of a root share are folded, up to owned code", () => {
  const folded = (drawing: string) => {
    const profile = drawn(drawing);
    const { tree, folded } = withoutStartUp(profile.tree, profile.own, profile.functions);
    return { lines: flame({ ...profile, tree }), said: folded.map(({ runs, weight, whole }) => [...runs.map((run) => run.map((of) => profile.functions.names[of]).join(" ")), weight, whole]) };
  };
  assert.deepEqual(folded(PROGRAM), { lines: flame(drawn(PROGRAM)), said: [] }, "it calls two functions");
  assert.deepEqual(folded("_start\n  init\n    main*\n      step 3"), { lines: ["main 3", "  step 3"], said: [["_start init", 3, 3]] });
  assert.deepEqual(folded("_start\n  main\n    a 1\n    b 2\nclone\n  thread\n    c 4"), {
    lines: ["c 4", "main 3", "  b 2", "  a 1"],
    said: [["clone thread", 4, 4], ["_start", 3, 3]],
  });
});

test("start-up code with a small rest is folded, and the rest is drawn with its callers", () => {
  const folded = (drawing: string, kinds: Record<string, Kind>) => {
    const profile = drawn(drawing);
    const { names } = profile.functions;
    Object.entries(kinds).forEach(([name, kind]) => (profile.functions.kinds[names.indexOf(name)] = KINDS.indexOf(kind)));
    const { tree, folded } = withoutStartUp(profile.tree, profile.own, profile.functions);
    return { lines: flame({ ...profile, tree }), said: folded.map(({ runs, weight, whole }) => [...runs.map((run) => run.map((of) => names[of]).join(" ")), weight, whole]) };
  };
  const startUp = { _start: "runtime", libc_start: "runtime", clone: "runtime", invoke: "runtime" } as const;
  const python = "_start\n  libc_start 1\n    Py_Main\n      Py_Init 5\n      Py_Run\n        module\n          eval\n            a 50\n            b 44";
  assert.deepEqual(folded(python, { ...startUp, module: "python" }), {
    lines: ["module 94", "  eval 94", "    a 50", "    b 44", "_start 6", "  libc_start 6 (1)", "    Py_Main 5", "      Py_Init 5"],
    said: [["_start libc_start Py_Main Py_Run", 94, 100]],
  });
  const native = "_start\n  libc_start\n    main\n      load 1\n      run\n        solve 95\n    exit 4";
  assert.deepEqual(folded(native, startUp), {
    lines: ["main 96", "  run 95", "    solve 95", "  load 1", "_start 4", "  libc_start 4", "    exit 4"],
    said: [["_start libc_start", 96, 100]],
  }, "the program's own functions stay, though one of them has nearly all");
  const threads = "clone\n  start\n    invoke\n      loop 60\n    drain 38\n    exit 2";
  assert.deepEqual(folded(threads, { ...startUp, start: "runtime" }), {
    lines: ["loop 60", "drain 38", "clone 2", "  start 2", "    exit 2"],
    said: [["clone start", "invoke", 98, 100]],
  }, "one thread function below std::thread, one beside it");
  const loader = "dl_start\n  dl_map\n    mmap 50\n  dl_relocate 50";
  assert.deepEqual(folded(loader, { dl_start: "runtime", dl_map: "runtime", mmap: "kernel", dl_relocate: "runtime" }).said, [], "it starts nothing of the program");
  assert.deepEqual(folded("clone\n  load 20\n  work 80", {}).said, [], "not of the runtime");
  assert.deepEqual(folded("clone 20\n  work 80", startUp).said, [], "a fifth is not a small rest");
});

test("a function's self, total and attributed weight; recursion counts once", () => {
  const profile = drawn("main\n  a* 1\n    x 2\n      a* 4\n        x 8\n  b 16");
  const { tree, own, functions } = profile;
  const rows = functionTable(tree, own, outermost(tree, functions.names.length), functions);
  const row = (name: string) => {
    const at = rows.functions.indexOf(functions.names.indexOf(name));
    return [rows.self[at], rows.total[at], rows.attributed[at]];
  };
  assert.deepEqual([row("a"), row("x"), row("b"), row("main")], [[5, 15, 15], [10, 14, 0], [16, 16, 0], [0, 31, 0]]);
  assert.equal(rows.whole, 31);
});

test("callers and callees hold each stack once", () => {
  const { tree, own, functions } = drawn("main\n  a 1\n    x 2\n      a 4\n        x 8\n  x 16");
  const isOutermost = outermost(tree, functions.names.length);
  const named = ({ functions: of, weights }: { functions: Int32Array; weights: Float64Array }) => [...of].map((index, at) => `${functions.names[index]} ${weights[at]}`);
  const found = neighbours(tree, own, isOutermost, functions.names.indexOf("x"));
  assert.deepEqual([found.self, found.total], [26, 30]);
  assert.deepEqual(named(found.callers), ["main 16", "a 14"]);
  assert.deepEqual(named(found.callees), ["a 12"]);
});

test("both halves of a sandwich weigh the function's total", () => {
  const { tree, own, functions } = drawn("main\n  a 1\n    x 2\n      a 4\n        x 8\n  x 16\n    y 32");
  const { callers, callees } = sandwich(tree, own, outermost(tree, functions.names.length), functions.names.indexOf("x"), functions);
  assert.deepEqual(shown(callees, functions), ["x 62 (18)", "  y 32", "  a 12 (4)", "    x 8"]);
  assert.deepEqual(shown(callers, functions), ["x 62", "  main 48", "  a 14", "    main 14"]);
});

test("lines of a file: what ends in them, and what passes through", () => {
  const profile = drawn("main@a.cpp:3\n  step@a.cpp:10 1\n    solve@b.cpp:7 2\n      step@a.cpp:10 4\n  step@a.cpp:12 8");
  const { frames, stacks, weights } = profile;
  const found = linesOf("a.cpp", frames, stacks, weights);
  assert.deepEqual([...found.lines], [3, 10, 12]);
  assert.deepEqual([...found.self], [0, 5, 8]);
  assert.deepEqual([...found.total], [15, 7, 8]);
  assert.deepEqual(filesOf(frames, stacks, weights), [{ file: "a.cpp", cost: 13 }, { file: "b.cpp", cost: 2 }]);
});

test("a script whose lines call libraries for all they do is the most costly file", () => {
  const { frames, stacks, weights } = drawn("main*@robot.py:3\n  call@ceval.c:1 5\n    hypot@math.c:2 3");
  assert.deepEqual(filesOf(frames, stacks, weights), [{ file: "robot.py", cost: 8 }, { file: "ceval.c", cost: 5 }, { file: "math.c", cost: 3 }]);
});

test("a selection limits time, threads and scopes", () => {
  const threads = table({ process: Int32Array.of(0, 0, 1) });
  const scopes = table({ thread: Int32Array.of(0, 1), name: Int32Array.of(0, 0), start: Float64Array.of(0, 10), end: Float64Array.of(5, 20) });
  const taken = recorded({ threads, scopes, scopeNames: table({ name: ["update"] }), samples: samples("1:0:1 4:1:2 6:0:2*10 11:1:1*100 12:2:0*1000 30:0:2*10000") });
  const profile = drawn("a\nb");
  const sums = (part: object) => [...weigh(part, "cpu", 0, taken, profile.places, 2)];
  assert.deepEqual(sums({}), [101, 10011, 1000]);
  assert.deepEqual(sums({ from: 4, to: 12 }), [100, 11, 0]);
  assert.deepEqual(sums({ threads: [0] }), [1, 10010, 0]);
  assert.deepEqual(sums({ processes: [0], threads: [1, 2] }), [100, 1, 0]);
  assert.deepEqual(sums({ scopes: ["update"] }), [101, 0, 0]);
  assert.deepEqual(sums({ scopes: ["other"] }), [0, 0, 0]);
  assert.deepEqual([...weigh({}, "cpu", 1, taken, profile.places, 2)], [0, 0, 0], "another event");
});

test("the whole recording is weighed by sums where there are some, and parts of it by samples", async () => {
  const sums = table({ event: Int32Array.of(0, 0, 1), stack: Int32Array.of(-1, 0, 0), weight: Float64Array.of(7, 3, 50) });
  const taken = recorded({ threads: table({ process: Int32Array.of(0) }), sums, samples: samples("5:0:1*1 6:0:1*2 7:0:0*7") });
  const profile = drawn("a\nb");
  assert.deepEqual([...weigh({}, "cpu", 0, taken, profile.places, 2)], [3, 0, 7]);
  assert.deepEqual([...weigh({ from: 6 }, "cpu", 0, taken, profile.places, 2)], [2, 0, 7]);

  const asked: string[] = [];
  const tables: Record<string, Table> = { "0/frames": profile.frames, "0/modules": table({ name: [""] }), "0/stacks": profile.stacks, "0/sums": sums, "0/samples": taken.samples };
  const NONE: Table = { rows: 0, columns: {} };
  const answers = (growing: boolean) => {
    const store = { isGrowing: () => growing, table: async (name: string) => (asked.push(name), tables[name] ?? NONE) };
    return flameAnswers(store as unknown as Store);
  };
  const given = { weight: "cpu" as const, event: 0, transforms: [], states: [], inverted: false, foldsStartUp: false };
  const wasAsked = async (growing: boolean, ...parts: { order?: "time"; from?: number; threads?: number[] }[]) => {
    asked.length = 0;
    const queries = answers(growing);
    for (const { order = "name", ...part } of parts) await queries.flame({ ...given, order, selection: { capture: 0, ...part } });
    return ["0/sums", "0/samples"].filter((name) => asked.includes(name));
  };
  assert.deepEqual(await wasAsked(false, {}), ["0/sums"]);
  assert.deepEqual(await wasAsked(false, {}, { from: 6 }), ["0/sums", "0/samples"]);
  assert.deepEqual(await wasAsked(false, { threads: [0] }), ["0/samples"]);
  assert.deepEqual(await wasAsked(false, { order: "time" }), ["0/samples"]);
  assert.deepEqual(await wasAsked(true, {}), ["0/samples"], "sums of a live recording would be old");
  delete tables["0/sums"];
  assert.deepEqual(await wasAsked(false, {}), ["0/sums", "0/samples"], "a capture with few samples");
});

test("samples without a time belong to the whole, and to no range of time", () => {
  const taken = recorded({ threads: table({ process: Int32Array.of(0) }), samples: samples("5:0:1*1 NaN:0:1*2 NaN:0:2*4") });
  const profile = drawn("a\nb");
  assert.deepEqual([...weigh({}, "cpu", 0, taken, profile.places, 2)], [3, 4, 0]);
  assert.deepEqual([...weigh({ from: 0 }, "cpu", 0, taken, profile.places, 2)], [1, 0, 0]);
  assert.deepEqual([...weigh({ threads: [0] }, "cpu", 0, taken, profile.places, 2)], [3, 4, 0]);
});

test("a selection of steps limits time to theirs", () => {
  const steps = table({ index: Float64Array.of(0, 1, 2), start: Float64Array.of(0, 10, 20), end: Float64Array.of(10, 20, 30), sim: Float64Array.of(1, 2, 3), thread: Int32Array.of(0, 0, 0) });
  const taken = recorded({ steps, samples: samples("5:0:1*1 15:1:1*2 25:0:1*4") });
  const profile = drawn("a");
  assert.deepEqual([...weigh({ steps: [[0, 0], [2, 2]] }, "cpu", 0, taken, profile.places, 1)], [5, 0]);
});

test("amounts weigh what was counted in the selection, or what its end holds", () => {
  const taken = recorded({ threads: table({ process: Int32Array.of(0, 0) }), samples: samples("1:0:1*100"), amounts: samples("10:0:1*5 20:0:2*3 30:1:1*-7 40:0:2*4") });
  const profile = drawn("a\nb");
  const of = (part: object, weight: "amount" | "held") => [...weigh(part, weight, 0, taken, profile.places, 2)];
  assert.deepEqual(of({ from: 15, to: 35 }, "amount"), [-7, 3, 0]);
  assert.deepEqual(of({}, "held"), [0, 7, 0], "another thread freed more than what is known to be held");
  assert.deepEqual(of({ from: 15, to: 25 }, "held"), [5, 3, 0]);
  assert.deepEqual(of({ threads: [0] }, "held"), [5, 7, 0]);
  const events = { events: [{ unit: "ns", role: "cpu" }, { unit: "bytes", role: "held" }], event: 0 };
  assert.deepEqual(weightOf("event-1", events), { weight: "held", event: 1, unit: "bytes" });
  assert.deepEqual(weightOf("event-0", events).weight, "cpu");
});

test("waits weigh their part in the selection, by state; the time after the wake-up is waiting for a CPU", () => {
  const slept = waits("0-100:0:2:2+20 50-70:1:1:1+0 80-90:1:0:0+0");
  const profile = drawn("main\n  lock 1", slept);
  const taken = recorded({ waits: slept, samples: samples("10:0:1*5") });
  const made = (part: object, weight: "offcpu" | "wall") => {
    const own = ownWeights(profile.tree, weigh(part, weight, 0, taken, profile.places, 2));
    return shown(flameOf(profile.tree, own, profile.functions), profile.functions);
  };
  assert.deepEqual(made({}, "offcpu"), [
    "main 120", "  lock 100", "    [sleep] 80", "    [waiting for a CPU] 20", "  [lock] 20", "(no stack) 10", "  [waiting for a CPU] 10",
  ]);
  assert.deepEqual(made({ from: 60, to: 85 }, "offcpu"), ["main 35", "  lock 25", "    [sleep] 20", "    [waiting for a CPU] 5", "  [lock] 10", "(no stack) 5", "  [waiting for a CPU] 5"]);
  assert.deepEqual(made({ states: [1] }, "wall"), ["main 25 (5)", "  [lock] 20"]);
});

test("in time order neighbours with the same callers are joined", () => {
  const { tree, functions } = drawn("main\n  a 1\n  b 1");
  const [a, b] = [1, 2];
  const thread = functions.names.indexOf("main");
  const made = timeOrderedFlame(tree, [{ thread, moments: { nodes: [a, a, b, a], weights: [1, 2, 3, 4] } }]);
  assert.deepEqual(shown(made, functions), ["main 10", "  main 10", "    a 3", "    b 3", "    a 4"]);
  assert.equal(made.pruned, 0);
  const long = { nodes: Array.from({ length: 50_000 }, (_, at) => (at % 3 ? a : b)), weights: new Array(50_000).fill(1) };
  const thinned = timeOrderedFlame(tree, [{ thread, moments: long }]);
  assert.equal(thinned.total[0], 50_000, "no weight is lost");
  assert.ok(thinned.pruned > 0);
});

test("a call tree for each group", () => {
  const { tree, functions } = drawn("main\n  a 1\n  b 1");
  const groups = [{ function: functions.noStack, own: Float64Array.of(0, 1, 0, 0) }, { function: functions.ofState[0], own: Float64Array.of(2, 0, 3, 0) }];
  const made = grouped(tree, groups);
  assert.deepEqual(shown(flameOf(made.tree, made.own, functions), functions), ["[waiting for a CPU] 5", "  main 5 (2)", "    b 3", "(no stack) 1", "  main 1", "    a 1"]);
});

test("a difference shows what was removed, as wide as it was", () => {
  const side = (drawing: string, scale = 1) => {
    const { tree, own, functions } = drawn(drawing);
    return { tree, own, functions, scale };
  };
  const [now, before] = [side("main\n  new 4\n  both 2"), side("main\n  both 6\n  scan 20", 0.5)];
  const larger = difference(now, before, "larger");
  assert.deepEqual(shown(larger.flame, larger.functions), ["main 17", "  scan 10", "  new 4", "  both 3"]);
  assert.deepEqual([...larger.flame.sides!.after], [6, 6, 0, 4, 2]);
  assert.deepEqual([...larger.flame.sides!.before], [13, 13, 10, 0, 3]);
  const after = difference(now, before, "after");
  assert.deepEqual(shown(after.flame, after.functions), ["main 6", "  new 4", "  both 2"]);
});

test("the cost tree has the rows of the analysis", () => {
  const { nodes, places, weights, rows } = shared;
  const integers = (values: number[]) => Int32Array.from(values);
  const made = costTree(
    table({ ...nodes, parent: integers(nodes.parent) }),
    table({ node: integers(places.node) }),
    drawn("a").places,
    Float64Array.from(weights),
    weights.length - 1,
  );
  const shares = ({ total, own }: { total: number; own: number }) => [total, own].map((weight) => ((weight * 100) / made.whole).toFixed(9));
  assert.deepEqual(
    made.rows.map((row) => [`${"  ".repeat(row.indent)}${row.text}`, row.kind, ...shares(row)]),
    rows.map(([text, kind, ...figures]) => [text, kind, ...figures.map((figure) => Number(figure).toFixed(9))]),
  );
});
