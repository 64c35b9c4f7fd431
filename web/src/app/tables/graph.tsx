// A flame graph of a report, drawn as in a file of its own: a difference, or of evidence that Explore does not have.

import { useEffect, useRef } from "preact/hooks";
import type { Address, View } from "../../address.ts";
import { FlameGraph } from "../../flamegraph.ts";
import { rowCount } from "../../layout.ts";
import { Tree } from "../../tree.ts";
import { adjust, place, search, zoom } from "../state.ts";

export function Graph({ tree: given, id }: { tree: unknown; id: string }) {
  const box = useRef<HTMLElement>(null);
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    // Those far below are drawn when they come near.
    const seen = new IntersectionObserver(
      (entries) => {
        if (!entries.some(({ isIntersecting }) => isIntersecting)) return;
        seen.disconnect();
        draw(element, given, id);
      },
      { rootMargin: "400px" },
    );
    seen.observe(element);
    return () => seen.disconnect();
  }, [given, id]);
  return <figure class="differential" id={id} ref={box} aria-label="Flame graph" />;
}

function draw(element: HTMLElement, given: unknown, id: string): void {
  const tree = new Tree(given as ConstructorParameters<typeof Tree>[0]);
  const host = document.createElement("div");
  element.replaceChildren(host);
  const rows = tree.size === 0 ? 1 : rowCount(tree, { root: 0, width: Math.max(1, element.clientWidth) });
  // As high as the whole needs: a page must not jump at every zoom.
  host.style.setProperty("--rows", String(rows));
  new FlameGraph(host, tree, addressOf(id), "within a page");
}

/** Its search and zoom in the hash, while it is the one at `place`. */
function addressOf(id: string): Address {
  return {
    read(): View {
      if (place.peek() !== id) return { search: "" };
      const [x, y, widths] = zoom.peek().split(",").map(Number);
      const isZoomed = Number.isFinite(x) && Number.isFinite(y) && zoom.peek() !== "";
      return { search: search.peek(), ...(isZoomed ? { zoom: { x, y } } : {}), ...(widths > 0 ? { widths } : {}) };
    },
    write({ search, zoom, widths }): void {
      const parts = [zoom?.x ?? "", zoom?.y ?? "", widths ?? ""].join(",");
      adjust({ place: id, search, zoom: parts === ",," ? "" : parts, filter: "" });
    },
  };
}
