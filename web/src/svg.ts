// The script of a standalone flame graph: it takes the place of the first picture.

import { QueryAddress } from "./address.ts";
import { html, svg } from "./elements.ts";
import { FlameGraph } from "./flamegraph.ts";
import { Tree } from "./tree.ts";

const picture = (document.currentScript as unknown as SVGScriptElement).closest("svg")!;

function start(): void {
  const data = picture.querySelector("script.flame-data")?.textContent;
  if (!data) return;
  const tree = new Tree(JSON.parse(data));
  const host = html("div", { class: "fg-page" });
  const frame = svg("foreignObject", { x: 0, y: 0, width: "100%", height: "100%" }, host);
  // In a window of its own the graph fills it; in a page it keeps the room that the page gives it.
  if (window === window.top && document.documentElement === (picture as Element)) {
    picture.setAttribute("width", "100%");
    picture.setAttribute("height", "100%");
  }
  picture.removeAttribute("viewBox");
  picture.removeAttribute("role");
  picture.querySelector("#picture")?.remove();
  picture.append(frame);
  const graph = new FlameGraph(host, tree, new QueryAddress(), "alone");
  window.addEventListener("popstate", () => graph.restore());
  window.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key === "f") {
      event.preventDefault();
      graph.focusSearch();
    } else if (!(event.target as Element).closest("button, input")) {
      // The graph is the whole page: its keys work wherever nothing else takes them.
      graph.onKey(event);
    }
  });
  performance.mark("stepscope-drawn");
}

start();
