// The script of a report: makes its tables and flame graphs interactive.

import { followContents } from "./contents.ts";
import { prepareGraphs, type Place } from "./graphs.ts";
import { exactly } from "./search.ts";
import { DataTable, type Find } from "./table.ts";

const graphs = prepareGraphs();
for (const root of document.querySelectorAll<HTMLElement>("div.table")) {
  const table = root.querySelector("table");
  if (table) new DataTable(root, table, finderFor(root));
}
followContents();

// Paper shows every flame graph whole.
addEventListener("beforeprint", () => graphs.forEach((place) => place.drawn().showForPrint()));
addEventListener("afterprint", () => graphs.forEach((place) => place.drawn().showForScreen()));
performance.mark("stepscope-ready");

/** Finds functions in the first flame graph of the outermost section that the table is in. */
function finderFor(table: HTMLElement): Find | undefined {
  const place = graphOf(table.closest("main > section"));
  return place && ((name) => place.find(exactly(name)));
}

function graphOf(section: Element | null): Place | undefined {
  return section ? graphs.find(({ root }) => section.contains(root)) : undefined;
}
