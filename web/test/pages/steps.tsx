// The app on invented captures with steps, without a worker: one with two loops, one with other steps, one without any.

import { render } from "preact";
import { App, prepare } from "../../src/app/app.tsx";
import type { Client } from "../../src/data/client.ts";
import type { CaptureEntry, Manifest, Table } from "../../src/profile/columns.ts";
import { usageOf } from "../../src/profile/usage.ts";
import { flameAnswers } from "../../src/worker/flame.ts";
import type { Store } from "../../src/worker/store.ts";
import { timelineAnswers } from "../../src/worker/timeline.ts";
import { inventedManifest, inventedTables } from "./invented.ts";

const MS = 1e6;

/** Steps that alternate between `lower` and `upper` ms, each 100th a stall; every fifth one is of a second loop. */
function steps(count: number, lower: number, upper: number): Table {
  const length = (row: number) => (row % 100 === 50 ? 30 : row % 2 ? upper : lower) * MS * (1 + (row % 7) * 0.004);
  const integers = (of: (row: number) => number) => Int32Array.from({ length: count }, (_, row) => of(row));
  const isStall = (row: number) => row % 100 === 50;
  const start = new Float64Array(count);
  for (let row = 1; row < count; row++) start[row] = start[row - 1] + length(row - 1);
  return {
    rows: count,
    columns: {
      index: Float64Array.from({ length: count }, (_, row) => row),
      start,
      end: start.map((time, row) => time + length(row)),
      sim: Float64Array.from({ length: count }, (_, row) => (row + 1) * 4 * MS),
      pacing: new Float64Array(count),
      thread: integers((row) => (row % 5 === 4 ? 1 : 0)),
      loop: integers((row) => (row % 5 === 4 ? 1 : 0)),
      first: integers((row) => (row === 0 ? 1 : 0)),
      stall: integers((row) => (isStall(row) ? 1 : 0)),
      level: integers((row) => (row === 0 || row % 5 === 4 ? -1 : isStall(row) || row % 2 ? 1 : 0)),
      set: integers((row) => (row === 0 || row % 5 === 4 ? -1 : isStall(row) ? 1 : row % 2 ? -1 : 0)),
    },
  };
}

/** A wait for a lock in each stall, of all but 2 ms, by the thread that takes the steps. */
function waitsIn(steps: Table): Table {
  const { start, end, stall, thread } = steps.columns as { start: Float64Array; end: Float64Array; stall: Int32Array; thread: Int32Array };
  const rows = Array.from(stall.keys()).filter((row) => stall[row] === 1);
  const integers = (of: (row: number) => number) => Int32Array.from(rows, of);
  return {
    rows: rows.length,
    columns: {
      start: Float64Array.from(rows, (row) => start[row] + MS), end: Float64Array.from(rows, (row) => end[row] - MS), runnable: new Float64Array(rows.length).fill(5 * MS),
      thread: integers((row) => thread[row]), stack: integers(() => 3), state: integers(() => 1), cpu: integers(() => 0), waker: integers(() => 1), waker_stack: integers(() => -1),
    },
  };
}

Object.assign(globalThis, {
  /**
   * `waits`: whether context switches were recorded, with a wait in each stall. `hasEnded`: whether nobody answers for the lanes. `apart`: whether the
   * captures are of scenarios of their own, and not variants of one.
   */
  show(count: number, waits = false, hasEnded = false, apart = false) {
    const common = inventedTables({ stacks: 3000, samples: 20_000, functions: 300 });
    const first = steps(count, 3, 5);
    const captures = [{ ...common, steps: first, ...(waits ? { waits: waitsIn(first) } : {}) }, { ...common, steps: steps(Math.ceil(count / 2), 2, 3) }, { ...common, steps: { rows: 0, columns: {} } }];
    const entries = captures.map((tables, index): CaptureEntry => {
      const [entry] = inventedManifest(tables).captures;
      const names = apart ? { scenario: ["shapes_1", "shapes_2", "bare"][index], variant: "" } : { scenario: "shapes", variant: ["before", "after", "bare"][index] };
      return { ...entry, ...names, phase: "steady", label: `shapes/${index}`, repetition: 0, lanes: { ...entry.lanes, switches: waits } };
    });
    const manifest: Manifest = { ...inventedManifest(captures[0]), captures: entries };
    const table = async (name: string): Promise<Table> => {
      const [capture, of] = name.split("/");
      return (captures[Number(capture)] as Record<string, Table>)[of] ?? { rows: 0, columns: {} };
    };
    if (hasEnded) entries[0].tables = { ...entries[0].tables, lane_order: 1 };
    const answers: Record<string, (given: never) => Promise<unknown>> = {
      ...flameAnswers({ table, isGrowing: () => false } as unknown as Store),
      ...timelineAnswers({ table } as unknown as Store),
      table: ({ capture, name }: { capture: number; name: string }) => (name === "lane_order" ? Promise.reject(new Error("the program has ended")) : table(`${capture}/${name}`)),
      usage: async ({ capture, event, duration, buckets }: { capture: number; event: number; duration: number; buckets: number }) =>
        usageOf(await table(`${capture}/samples`), event, duration, buckets),
    };
    const client = { ask: (name: string, given: never) => answers[name]?.(given) ?? Promise.reject(new Error(`no query ${name}`)) } as unknown as Client;
    prepare(manifest, client);
    render(<App />, document.getElementById("app")!);
  },
});
