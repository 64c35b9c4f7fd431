// The flame graphs of a report: each drawn when it comes near the view, or is asked for by the address.

import { FragmentAddress } from "./address.ts";
import { html } from "./elements.ts";
import { FlameGraph } from "./flamegraph.ts";
import { rowCount } from "./layout.ts";
import { Tree } from "./tree.ts";

/** A flame graph's place in the page. */
export class Place {
  readonly root: HTMLElement;
  private graph: FlameGraph | undefined;

  constructor(root: HTMLElement) {
    this.root = root;
  }

  /** The graph, drawn now if it was not yet. */
  drawn(): FlameGraph {
    return (this.graph ??= this.draw());
  }

  /** Shows the view of the address, if it changed. */
  restore(): void {
    this.graph?.restore();
  }

  /** Searches in the graph, and brings it into view. */
  find(pattern: string): void {
    this.drawn().searchFor(pattern);
    this.root.scrollIntoView({ block: "nearest" });
  }

  private draw(): FlameGraph {
    const tree = new Tree(JSON.parse(this.root.querySelector("script.flame-data")!.textContent!));
    const host = html("div", {});
    this.root.querySelector(".pending")?.remove();
    this.root.prepend(host);
    const rows = tree.size === 0 ? 1 : rowCount(tree, { root: 0, width: Math.max(1, this.root.clientWidth) });
    // The view is as high as the whole needs, up to a limit, and stays so, because a page must not jump at every zoom.
    host.style.setProperty("--rows", String(rows));
    return new FlameGraph(host, tree, new FragmentAddress(this.root.id), "within a page");
  }
}

/** Prepares all flame graphs of the page. */
export function prepareGraphs(): Place[] {
  const places = [...document.querySelectorAll<HTMLElement>(".flame")].map((root) => new Place(root));
  const byRoot = new Map(places.map((place) => [place.root as Element, place]));
  const near = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) {
        if (!entry.isIntersecting) continue;
        near.unobserve(entry.target);
        byRoot.get(entry.target)!.drawn();
      }
    },
    { rootMargin: "400px" },
  );
  for (const place of places) near.observe(place.root);
  followAddress(places);
  return places;
}

function followAddress(places: Place[]): void {
  const named = new URLSearchParams(location.hash.slice(1)).get("flame");
  const place = places.find(({ root }) => root.id === named);
  if (place) {
    place.drawn();
    place.root.scrollIntoView({ block: "center" });
  }
  // A link within the page moves on; only going back and forward in the history restores a view.
  let followed = false;
  document.addEventListener("click", (event) => {
    if ((event.target as Element).closest('a[href^="#"]')) followed = true;
  });
  window.addEventListener("popstate", () => {
    if (!followed) for (const place of places) place.restore();
    followed = false;
  });
}
