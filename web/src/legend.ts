// The legend of a flame graph.

import type { LegendEntry, Painter } from "./colour.ts";
import { html, svg } from "./elements.ts";
import type { Tree } from "./tree.ts";
import { grouped, percent, weight } from "./units.ts";

/** What the colours mean, with their shares of self weight. */
export function legendOf(tree: Tree, painter: Painter): HTMLElement {
  const whole = tree.total[0] || 1;
  const frames = (count: number) => `${grouped(count)} ${count === 1 ? "frame" : "frames"}`;
  const described = ({ name, weight: value, count }: LegendEntry) => {
    if (value !== undefined) return { title: `${name}: ${weight(value, tree.unit)} of self weight` };
    return count === undefined ? {} : { title: `${name}: ${frames(count)}` };
  };
  const entries = painter.legend().map((entry) => {
    const { className, name, weight: value, count } = entry;
    return html(
      "li",
      described(entry),
      svg("svg", { width: 12, height: 12, "aria-hidden": "true" }, svg("rect", { class: className, width: 12, height: 12, rx: 2 })),
      name,
      value === undefined ? undefined : html("span", {}, `${percent((100 * value) / whole)} %`),
      count === undefined ? undefined : html("span", {}, grouped(count)),
    );
  });
  const label = painter.colours === "difference" ? "What the colours mean" : "Colours, with their shares of self weight";
  return html("ul", { "aria-label": label }, ...entries);
}
