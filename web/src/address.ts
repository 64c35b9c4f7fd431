// The view in the address of the page: for going back and forward, and for links to share.

/** The part of a flame graph's state that its address holds. */
export interface View {
  /** Search pattern; empty for none. */
  search: string;
  /** The zoomed frame, by the weight to its left and its depth; absent for the whole. */
  zoom?: { x: number; y: number };
  /** In a difference: whose weights give the widths; absent for the larger of both. */
  widths?: number;
}

/** Whether going back restores the previous state. */
export type Entry = "new" | "same";

/** Where a flame graph keeps what it shows. */
export interface Address {
  read(): View;
  write(view: View, entry: Entry): void;
}

/** Reads `s`, `x`, `y` and `w`. */
export function viewOf(parameters: URLSearchParams): View {
  const number = (name: string) => {
    const text = parameters.get(name);
    const value = text === null || text === "" ? NaN : Number(text);
    return value >= 0 && Number.isFinite(value) ? value : undefined;
  };
  const [x, y] = [number("x"), number("y")];
  const view: View = { search: parameters.get("s") ?? "" };
  const widths = number("w");
  if (widths !== undefined) view.widths = widths;
  if (x !== undefined && y !== undefined) view.zoom = { x, y };
  return view;
}

/** Writes `s`, `x`, `y` and `w`, and leaves other parameters as they are. */
export function putView(view: View, parameters: URLSearchParams): void {
  for (const name of ["s", "x", "y", "w"]) parameters.delete(name);
  if (view.search) parameters.set("s", view.search);
  if (view.zoom) {
    parameters.set("x", String(view.zoom.x));
    parameters.set("y", String(view.zoom.y));
  }
  if (view.widths !== undefined) parameters.set("w", String(view.widths));
}

/** The query of a standalone flame graph: `graph.svg?s=REGEX&x=WEIGHT&y=DEPTH`. */
export class QueryAddress implements Address {
  read(): View {
    return viewOf(new URLSearchParams(location.search));
  }

  write(view: View, entry: Entry): void {
    const parameters = new URLSearchParams(location.search);
    putView(view, parameters);
    const query = parameters.toString();
    setUrl(location.pathname + (query ? `?${query}` : "") + location.hash, entry);
  }
}

/** Some embeddings (sandboxed frames, `data:` addresses) have no address to write; the graph works without. */
function setUrl(url: string, entry: Entry): void {
  try {
    if (entry === "new") history.pushState(null, "", url);
    else history.replaceState(null, "", url);
  } catch {
    // Only the link is lost.
  }
}
