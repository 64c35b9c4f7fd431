// Invented captures of any size, for pages under test and for benches.

import type { Manifest, Table } from "../../src/profile/columns.ts";

export interface Size {
  stacks: number;
  samples: number;
  functions: number;
  threads?: number;
  waits?: number;
  depth?: number;
  /** Stacks before this one have no samples of their own; it has them. */
  first?: number;
}

function table(columns: Table["columns"]): Table {
  return { rows: Object.values(columns)[0].length, columns };
}

/** The tables of a capture with a main loop, libraries, owned code, waits and steps. The same size gives the same capture. */
export function inventedTables({ stacks, samples, functions, threads = 4, waits = 0, depth = 60, first = 0 }: Size): Record<string, Table> {
  let seed = 42;
  const random = () => (seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0) / 2 ** 32;
  const below = (limit: number) => Math.floor(random() * limit);
  const modules = ["sim", "libphysics.so.6", "libc.so.6", "librender.so.2", "[kernel.kallsyms]", "libstdc++.so.6", "libecs.so"];
  const named = (index: number) => {
    const area = ["physics::Solver", "ecs::EntityGraph", "render::Scene", "std::_Hashtable<std::string, std::pair<const std::string, Component>, Alloc>", "transport::Node"][index % 5];
    return `gz::${area}::${["update", "each", "vertices", "lookup", "publish"][(index >> 2) % 5]}_${index}(double, std::vector<int> const&)`;
  };
  const frameCount = functions;
  const module = Int32Array.from({ length: frameCount }, (_, index) => (index < 3 ? 0 : below(modules.length)));
  const frames = table({
    function: Array.from({ length: frameCount }, (_, index) => ["_start", "main", "clone"][index] ?? named(index)),
    module,
    file: Array.from({ length: frameCount }, (_, index) => (index < 3 ? "" : `/home/me/sim/src/part${index % 40}.cpp`)),
    line: Int32Array.from({ length: frameCount }, (_, index) => 10 + (index % 200)),
    kind: module.map((of, index) => (index < 3 ? 2 : ([1, 1, 2, 1, 4, 2, 3][of] ?? 1))),
    owned: module.map((of, index) => (index >= 3 && (of === 0 || of === 1) ? 1 : 0)),
    owner: module.map((of, index) => (index >= 3 && (of === 0 || of === 1) ? 1 : 0)),
    inlined: new Int32Array(frameCount),
    identity: Int32Array.from({ length: frameCount }, (_, index) => index),
  });
  const parent = new Int32Array(stacks);
  const frame = new Int32Array(stacks);
  const level = new Uint8Array(stacks);
  parent[0] = -1;
  for (let stack = 1; stack < stacks; stack++) {
    if (stack < 4) {
      // _start, main below it, clone beside it, and a function below main.
      parent[stack] = [-1, 0, -1, 1][stack];
      frame[stack] = stack;
    } else {
      // Mostly deeper below what came last, sometimes beside something old.
      let at = random() < 0.7 ? stack - 1 - below(Math.min(8, stack - 1)) : below(stack);
      if (level[at] >= depth) at = 1 + below(3);
      parent[stack] = at;
      frame[stack] = 3 + Math.floor((functions - 3) * random() ** 2);
    }
    level[stack] = parent[stack] < 0 ? 0 : level[parent[stack]] + 1;
  }
  const every = 1e6;
  const time = new Float64Array(samples);
  const stack = new Int32Array(samples);
  const thread = new Int32Array(samples);
  for (let sample = 0; sample < samples; sample++) {
    time[sample] = sample * every;
    // All stacks once where there are enough samples, so that all are distinct and present.
    stack[sample] = Math.max(first, sample < stacks ? sample : Math.floor(stacks * random() ** 3));
    thread[sample] = below(threads);
  }
  const duration = samples * every;
  const startOf = Float64Array.from({ length: waits }, () => random() * duration).sort();
  const steps = 1000;
  return {
    processes: table({ pid: Int32Array.of(100), label: ["sim"], command: ["sim --world big"] }),
    threads: table({
      tid: Int32Array.from({ length: threads }, (_, index) => 100 + index),
      process: new Int32Array(threads),
      name: Array.from({ length: threads }, (_, index) => (index === 0 ? "sim" : `worker-${index}`)),
      start: new Float64Array(threads),
      end: new Float64Array(threads).fill(duration),
      cpu: new Float64Array(threads),
    }),
    modules: table({ name: modules, path: modules.map((name) => `/usr/lib/${name}`) }),
    frames,
    stacks: table({ parent, frame }),
    samples: table({ time, thread, cpu: new Int32Array(samples), stack, event: new Int32Array(samples), weight: new Float64Array(samples).fill(every) }),
    waits: table({
      start: startOf,
      end: startOf.map((start) => start + 5e5 + random() * 1e6),
      thread: Int32Array.from({ length: waits }, () => below(threads)),
      stack: Int32Array.from({ length: waits }, () => below(stacks)),
      state: Int32Array.from({ length: waits }, () => below(4)),
      runnable: Float64Array.from({ length: waits }, () => random() * 2e5),
      cpu: new Int32Array(waits),
      waker: new Int32Array(waits).fill(-1),
      waker_stack: new Int32Array(waits).fill(-1),
    }),
    steps: table({
      index: Float64Array.from({ length: steps }, (_, index) => index),
      start: Float64Array.from({ length: steps }, (_, index) => (index * duration) / steps),
      end: Float64Array.from({ length: steps }, (_, index) => ((index + 1) * duration) / steps),
      sim: Float64Array.from({ length: steps }, (_, index) => index * 1e6),
      thread: new Int32Array(steps),
    }),
    sources: table({
      file: ["/home/me/sim/src/part3.cpp"],
      text: [Array.from({ length: 230 }, (_, index) => `  int line_${index + 1} = solve(${index});`).join("\n")],
    }),
  };
}

export function inventedManifest(tables: Record<string, Table>): Manifest {
  const { time } = tables["samples"].columns as { time: Float64Array };
  return {
    version: 1,
    title: "An invented simulator",
    document: { title: "", subtitle: "", sections: [] } as unknown as Manifest["document"],
    live: false,
    captures: [{
      label: "invented", scenario: "invented", phase: "steady", variant: "", repetition: 0, duration: time.length * 1e6,
      selection: "", ownership: true, dimensions: [],
      events: [{ name: "task-clock", unit: "ns", role: "cpu" }], event: 0, states: ["preempted", "lock", "condition", "sleep"],
      tables: Object.fromEntries(Object.entries(tables).map(([name, { rows }]) => [name, rows])),
      lanes: {} as Manifest["captures"][0]["lanes"], leftOut: [],
    }],
  };
}
