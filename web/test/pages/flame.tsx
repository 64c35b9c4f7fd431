// A page with one pane of the app on an invented capture, without a worker.

import { render } from "preact";
import type { Client } from "../../src/data/client.ts";
import { flameAnswers } from "../../src/worker/flame.ts";
import type { Store } from "../../src/worker/store.ts";
import { CostTree } from "../../src/app/flame/tree.tsx";
import { FlameGraph } from "../../src/app/flame/flame.tsx";
import { Functions } from "../../src/app/flame/functions.tsx";
import { Source } from "../../src/app/flame/source.tsx";
import { Details } from "../../src/app/details.tsx";
import { SelectionBar } from "../../src/app/selection.tsx";
import { onKey } from "../../src/app/commands.ts";
import { pane, start } from "../../src/app/state.ts";
import { followTheme } from "../../src/app/theme.ts";
import { inventedManifest, inventedTables, type Size } from "./invented.ts";

const PANES = { flame: FlameGraph, functions: Functions, tree: CostTree, source: Source };

function Page() {
  const Part = PANES[pane.value];
  return (
    <div style={{ height: "100vh", display: "flex", flexDirection: "column" }}>
      <SelectionBar />
      <div style={{ flex: 1, minHeight: 0, display: "grid", gridTemplateColumns: "minmax(0, 1fr) 280px" }}>
        <div class="panel">
          <Part />
        </div>
        <aside class="details">
          <Details />
        </aside>
      </div>
    </div>
  );
}

Object.assign(globalThis, {
  show(size: Size) {
    const tables = inventedTables(size);
    const store = { table: async (name: string) => tables[name.slice(2)] ?? { rows: 0, columns: {} }, isGrowing: () => false } as unknown as Store;
    const answers: Record<string, (given: never) => Promise<unknown>> = { ...flameAnswers(store), table: ({ name }: { name: string }) => store.table(`0/${name}`) };
    const client = { ask: (name: string, given: never) => answers[name](given) } as unknown as Client;
    start(inventedManifest(tables), client);
    followTheme();
    addEventListener("keydown", onKey);
    render(<Page />, document.getElementById("app")!);
  },
});
