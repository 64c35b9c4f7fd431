// A table of a report: sorted, filtered and unfolded. Its written form is described in crates/view/src/report/table.rs.

import { html, svg } from "./elements.ts";
import { compile } from "./search.ts";
import { grouped } from "./units.ts";

type Kind = "text" | "count" | "duration" | "bytes" | "percent" | "number" | "flag";
/** A long text comes with its short form before it. */
type Value = number | string | boolean | null | [short: string, whole: string];

interface Column {
  kind: Kind;
  /** Class of its cells. */
  class: string;
  /** The share with the longest bar. */
  largest: number | null;
}

interface Data {
  columns: Column[];
  owned: number | null;
  values: Value[][];
  shown: (string[] | null)[];
  /** Intervals of estimates, as text and as numbers. */
  bounds: ([text: string, low: number | null, high: number | null][] | null)[];
  /** The class of each verdict. */
  tones: (Record<string, string> | null)[];
}

interface Order {
  column: number;
  descending: boolean;
}

/** Rows of a long table that are shown first: as many as the page comes with. */
const FOLDED = 15;
/** Rows that are added at once when the reader asks for more. */
const BATCH = 1000;
/** Tables with fewer rows need no filter. */
const FEW = 8;

/** Class of the cells of columns whose numbers carry units of their own. */
const WITH_UNITS = "num unit";

/** Shown for an unknown value. */
const MISSING = "–";

/** Shows where a function is called. */
export type Find = (functionName: string) => void;

/** A table in an element of the page, which holds its first rows and its data. */
export class DataTable {
  private readonly root: HTMLElement;
  private readonly size: number;
  private readonly body: HTMLTableSectionElement;
  private readonly headers: HTMLTableCellElement[];
  private readonly input = html("input", {
    type: "search",
    placeholder: "Filter",
    "aria-label": "Filter rows by regular expression",
    spellcheck: "false",
    autocomplete: "off",
  });
  private readonly ownedButton = html("button", { type: "button", "aria-pressed": "false" }, "Owned only");
  private readonly count = html("output", {});
  private readonly more = html("button", { type: "button", class: "more" });
  private readonly less = html("button", { type: "button", class: "more" }, `Show the first ${FOLDED}`);

  private parsed: Data | undefined;
  private readonly find: Find | undefined;
  private order: Order | undefined;
  private ownedOnly = false;
  private limit = FOLDED;
  /** Rows that pass the filter, in order. */
  private rows: number[];

  constructor(root: HTMLElement, table: HTMLTableElement, find?: Find) {
    this.root = root;
    this.find = find;
    this.size = Number(root.dataset["rows"]);
    this.body = table.tBodies[0];
    this.headers = [...table.tHead!.rows[0].cells];
    this.rows = Array.from({ length: this.size }, (_, row) => row);
    this.build();
  }

  // Construction

  private build(): void {
    if (this.size > 1) this.headers.forEach((header, column) => this.makeSortable(header, column));
    const scroll = this.root.querySelector(".scroll")!;
    scroll.after(html("div", { class: "fold" }, this.more, this.less));
    this.more.addEventListener("click", () => this.unfold());
    this.less.addEventListener("click", () => this.fold());
    if (this.size >= FEW) this.buildFilter();
    [...this.body.rows].forEach((tr, row) => this.addFinder(tr, row));
    this.showCounts();
  }

  /** Leads from a function to its calls in a flame graph. */
  private addFinder(tr: HTMLTableRowElement, row: number): void {
    const column = this.headers.findIndex((header) => header.dataset["name"] === "function");
    const { find } = this;
    if (!find || column < 0) return;
    const lens = svg("svg", { width: 13, height: 13, viewBox: "0 0 13 13", "aria-hidden": "true" });
    lens.append(svg("path", { d: "M5.5 1a4.5 4.5 0 1 0 0 9a4.5 4.5 0 1 0 0-9M8.7 8.7L12 12", fill: "none", stroke: "currentColor", "stroke-width": 1.6 }));
    const button = html("button", { type: "button", class: "find", title: "Find in the flame graph", "aria-label": "Find in the flame graph" }, lens);
    button.addEventListener("click", () => find(textOf(this.data().values[column][row])));
    // Estimates before it take two cells each.
    const before = this.headers.slice(0, column).reduce((cells, header) => cells + header.colSpan, 0);
    tr.cells[before].prepend(button);
  }

  private buildFilter(): void {
    const bar = this.root.querySelector(".bar")!;
    const hasOwned = this.headers.some((header) => header.dataset["name"] === "owned");
    bar.append(html("span", { class: "tools" }, this.count, hasOwned ? this.ownedButton : undefined, this.input));
    this.input.addEventListener("input", () => this.update());
    this.input.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || this.input.value === "") return;
      event.preventDefault();
      this.input.value = "";
      this.update();
    });
    this.ownedButton.addEventListener("click", () => {
      this.ownedOnly = !this.ownedOnly;
      this.ownedButton.setAttribute("aria-pressed", String(this.ownedOnly));
      this.update();
    });
  }

  private makeSortable(header: HTMLTableCellElement, column: number): void {
    const button = html("button", { type: "button", title: header.title }, ...header.childNodes);
    header.removeAttribute("title");
    header.replaceChildren(button);
    button.addEventListener("click", () => this.sortBy(column));
  }

  // Actions of the reader

  /** The column's natural order first, the other way second, the table's own order third. */
  private sortBy(column: number): void {
    const { kind } = this.data().columns[column];
    const natural = kind !== "text";
    if (this.order?.column !== column) this.order = { column, descending: natural };
    else if (this.order.descending === natural) this.order = { column, descending: !natural };
    else this.order = undefined;
    this.headers.forEach((header, index) => {
      const sorted = index === this.order?.column;
      if (sorted) header.setAttribute("aria-sort", this.order!.descending ? "descending" : "ascending");
      else header.removeAttribute("aria-sort");
    });
    this.update();
  }

  private unfold(): void {
    this.limit = this.rows.length <= BATCH ? this.rows.length : Math.floor(this.limit / BATCH) * BATCH + BATCH;
    this.draw();
  }

  private fold(): void {
    this.limit = FOLDED;
    this.draw();
    this.root.scrollIntoView({ block: "nearest" });
  }

  // Rows

  private data(): Data {
    this.parsed ??= JSON.parse(this.root.querySelector("script.table-data")!.textContent!) as Data;
    return this.parsed;
  }

  private update(): void {
    const { values, owned } = this.data();
    const rows = Array.from({ length: this.size }, (_, row) => row);
    const pattern = this.input.value === "" ? undefined : compile(this.input.value);
    const isSeen = (row: number) =>
      (!this.ownedOnly || owned === null || values[owned][row] === true) &&
      (!pattern || values.some((column) => pattern.test(textOf(column[row]))));
    this.rows = rows.filter(isSeen);
    const { order } = this;
    if (order) this.rows.sort((a, b) => compare(values[order.column][a], values[order.column][b], order.descending));
    this.draw();
  }

  private draw(): void {
    const rows = this.rows.slice(0, this.limit).map((row) => this.row(row));
    const width = this.headers.reduce((cells, header) => cells + header.colSpan, 0);
    const none = html("td", { class: "none", colspan: width }, "No row matches.");
    this.body.replaceChildren(...(rows.length > 0 ? rows : [html("tr", {}, none)]));
    this.root.classList.toggle("unfolded", this.limit > FOLDED && this.rows.length > FOLDED);
    this.showCounts();
  }

  private showCounts(): void {
    const found = this.rows.length;
    this.count.textContent = found === this.size ? `${grouped(found)} rows` : `${grouped(found)} of ${grouped(this.size)} rows`;
    this.more.hidden = found <= this.limit;
    this.less.hidden = this.limit <= FOLDED || found <= FOLDED;
    const next = Math.floor(this.limit / BATCH) * BATCH + BATCH;
    this.more.textContent = found <= BATCH ? `Show all ${grouped(found)} rows` : `Show ${grouped(Math.min(next, found))} of ${grouped(found)} rows`;
  }

  /** A row, written as in the page. */
  private row(row: number): HTMLTableRowElement {
    const { columns, owned, values, shown, bounds, tones } = this.data();
    const cells = columns.flatMap((column, index) => {
      const value = values[index][row];
      const tone = typeof value === "string" ? tones[index]?.[value] : undefined;
      const shownCell = cell(tone ? { ...column, class: `${column.class} ${tone}` } : column, value, shown[index]?.[row] ?? "");
      const interval = bounds[index]?.[row];
      return interval ? [shownCell, html("td", { class: "bounds" }, interval[0])] : [shownCell];
    });
    const tr = html("tr", { class: owned !== null && values[owned][row] === true ? "mine" : undefined }, ...cells);
    this.addFinder(tr, row);
    return tr;
  }
}

function cell({ class: classes, largest }: Column, value: Value, shown: string): HTMLTableCellElement {
  if (Array.isArray(value)) {
    const [short, whole] = value.map(breakable);
    return html("td", { class: classes }, html("details", {}, html("summary", {}, ...short), ...whole));
  }
  if (value === false) return html("td", { class: `${classes} off` }, "no");
  if (typeof value === "string" || value === true) return html("td", { class: classes }, ...breakable(textOf(value)));
  const [number, unit = ""] = value === null ? [MISSING] : shown.split("|");
  const length = largest === null || value === null ? 0 : Math.min(100, Math.round((value / largest) * 100));
  const td = html("td", { class: length >= 1 ? `${classes} h${length}` : classes }, number);
  if (classes === WITH_UNITS) td.append(" ", html("i", {}, unit));
  return td;
}

/** Text with permission to break lines between the parts of a qualified name. Indentation is kept. */
function breakable(text: string): (string | HTMLElement)[] {
  const parts = text.replace(/^ +/, (spaces) => "\u00a0".repeat(spaces.length)).split("::");
  return parts.flatMap((part, index) => (index === 0 ? [part] : ["::", html("wbr"), part]));
}

function textOf(value: Value): string {
  if (value === null) return "";
  if (Array.isArray(value)) return value[1];
  if (typeof value === "boolean") return value ? "yes" : "no";
  return String(value);
}

/** Missing values come last in both directions. Sorting is stable, so equal rows keep their order. */
function compare(a: Value, b: Value, descending: boolean): number {
  if (a === null || b === null) return Number(a === null) - Number(b === null);
  const turned = descending ? -1 : 1;
  if (typeof a === "number" && typeof b === "number") return (a - b) * turned;
  const [first, second] = [textOf(a), textOf(b)];
  return first < second ? -turned : first > second ? turned : 0;
}
