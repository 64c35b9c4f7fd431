// The script of a report: brings to life what the page shows without it.

import { followContents } from "./contents.ts";
import { prepareGraphs } from "./graphs.ts";
import { DataTable } from "./table.ts";

for (const root of document.querySelectorAll<HTMLElement>("div.table")) {
  const table = root.querySelector("table");
  if (table) new DataTable(root, table);
}
const graphs = prepareGraphs();
followContents();

// Paper shows every flame graph whole.
addEventListener("beforeprint", () => graphs.forEach((place) => place.drawn().showForPrint()));
addEventListener("afterprint", () => graphs.forEach((place) => place.drawn().showForScreen()));
performance.mark("stepscope-ready");
