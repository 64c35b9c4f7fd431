// The details of a frame: name, place, weights.

import { html } from "./elements.ts";
import type { Side, Tree } from "./tree.ts";
import { percent, weight } from "./units.ts";

/** The name, place and weights of a node. */
export function details(tree: Tree, node: number, zoomed: number): HTMLElement[] {
  const frame = tree.frameOf(node);
  const place = [frame.module, frame.source, frame.kind === "native" || frame.kind === "group" ? "" : frame.kind, frame.inlined ? "inlined" : ""];
  const name = html("div", { class: "fg-name" }, frame.name);
  const verdict = tree.verdictOf(node);
  if (verdict) place.unshift(verdict);
  const only = tree.onlyIn(node);
  if (only) place.unshift(`only in ${only.name}`);
  if (frame.owned) name.prepend(html("span", { class: "fg-owned" }, "owned"));
  return [
    html("div", { class: "fg-what" }, name, html("div", { class: "fg-place" }, place.filter(Boolean).join(" · "))),
    tree.sides ? compared(tree, node, tree.sides) : figures(tree, node, zoomed),
  ];
}

/** Total and self weight of a node, with their shares. */
function figures(tree: Tree, node: number, zoomed: number): HTMLElement {
  const inZoom = zoomed !== 0 && node >= zoomed && node < tree.end[zoomed];
  const share = (value: number, root: number) => `${percent((100 * value) / (tree.total[root] || 1))} %`;
  const row = (header: string, value: number) =>
    html(
      "tr",
      {},
      html("th", { scope: "row" }, header),
      html("td", {}, weight(value, tree.unit)),
      html("td", {}, share(value, 0)),
      inZoom ? html("td", {}, share(value, zoomed)) : undefined,
    );
  const headers = ["", "", "of all", ...(inZoom ? ["of zoomed"] : [])];
  return html(
    "table",
    { class: "fg-figures" },
    html("thead", {}, html("tr", {}, ...headers.map((header) => html("th", { scope: "col" }, header)))),
    html("tbody", {}, row("total", tree.total[node]), row("self", tree.own[node])),
  );
}

/** Total and self weight of a node in both trees. */
function compared({ unit }: Tree, node: number, [now, base]: readonly [Side, Side]): HTMLElement {
  const row = (header: string, of: (side: Side) => number) => {
    const [value, before] = [of(now), of(base)];
    const sign = value > before ? "+" : value < before ? "\u2212" : "";
    const ratio = before > 0 ? `×${weight(value / before, "")}` : value > 0 ? "new" : "";
    const cells = [weight(value, unit), weight(before, unit), sign + weight(Math.abs(value - before), unit), ratio];
    return html("tr", {}, html("th", { scope: "row" }, header), ...cells.map((cell) => html("td", {}, cell)));
  };
  const headers = ["", now.name, base.name, "difference", "ratio"];
  return html(
    "table",
    { class: "fg-figures" },
    html("thead", {}, html("tr", {}, ...headers.map((header) => html("th", { scope: "col" }, header)))),
    html("tbody", {}, row("total", ({ total }) => total[node]), row("self", ({ own }) => own[node])),
  );
}
