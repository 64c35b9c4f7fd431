// An interactive flame graph: zoom, search, details, keyboard.

import type { Address, Entry } from "./address.ts";
import { Painter } from "./colour.ts";
import { details } from "./details.ts";
import { html, svg } from "./elements.ts";
import { columnsOf, cut, fit, formsOf, type Forms } from "./label.ts";
import { legendOf } from "./legend.ts";
import { nodeAt, ROW, rowCount, visit, firstDepth, type Zoom } from "./layout.ts";
import { exactly, matchedWeight, matches, search, type Hits } from "./search.ts";
import type { Colours, Frame, Growth, Tree, Widths } from "./tree.ts";
import { percent } from "./units.ts";

/** From this width on a frame is an element of its own; narrower ones of one colour share a path. In pixels. */
const OWN_ELEMENT = 4;
/** Space between a frame's left edge and its label, in pixels. */
const INSET = 3;
/** Rows drawn beyond those in view, so that scrolling does not show blanks. */
const MARGIN_ROWS = 12;

const KEYS: [keys: string, effect: string][] = [
  ["click, Enter", "zoom to the frame"],
  ["Backspace", "zoom out to its caller"],
  ["Esc", "clear the search, then zoom out to the whole"],
  ["arrow keys", "move to callees, callers and siblings"],
  ["/ or Ctrl+F", "search by regular expression"],
  ["Enter, Shift+Enter in the search", "next, previous match"],
  ["Shift+click, s", "search for all calls of the function"],
  ["f", "flip: root at the bottom or at the top"],
  ["c", "colours: kind of code or module"],
  ["w", "in a difference: widths of the larger weight, of one tree, or of the other"],
];

/** Where a flame graph stands: alone, or in a page. */
export type Setting = "alone" | "within a page";

/** A flame graph in an element of the page. */
export class FlameGraph {
  private readonly tree: Tree;
  private readonly address: Address;
  private readonly setting: Setting;
  private readonly forms = new Map<Frame, Forms>();
  private readonly legends = new Map<Colours, HTMLElement>();

  private readonly root: HTMLElement;
  private readonly trail = html("nav", { class: "fg-path", "aria-label": "Zoomed to" });
  private readonly view = html("div", { class: "fg-view", tabindex: 0, role: "application" });
  private readonly canvas = svg("svg", { class: "fg-canvas", "aria-hidden": "true" });
  private readonly frames = svg("g");
  private readonly outline = svg("rect", { class: "fg-outline", visibility: "hidden" });
  private readonly input = html("input", {
    class: "fg-search",
    type: "search",
    placeholder: "Search functions",
    "aria-label": "Search functions by regular expression",
    spellcheck: "false",
    autocomplete: "off",
  });
  private readonly matched = html("output", { class: "fg-matched" });
  /** Beside the trail, which scrolls. */
  private readonly reset = html("button", { type: "button", class: "fg-reset", title: "Zoom out to the whole (Esc)", hidden: true }, "Reset zoom");
  private readonly details = html("div", { class: "fg-details", "aria-live": "polite" });
  private readonly legend = html("div", { class: "fg-legend" });
  private readonly help = html("div", { class: "fg-help", hidden: true });
  private readonly flipButton = html("button", { type: "button", title: "Root at the bottom or at the top (f)" }, "Flip");
  private readonly colourButton = html("button", { type: "button", title: "What the colours mean (c)" });
  private readonly widthButton = html("button", { type: "button", title: "Which weights the widths show (w)" });

  private growth: Growth;
  private painter: Painter;
  private zoomed = 0;
  private hits: Hits | undefined;
  /** The frame whose details are shown: under the pointer, or reached by keyboard. */
  private current: number | undefined;
  private rows = 1;
  private columnWidth = 7.25;
  private drawn: { first: number; last: number } | undefined;
  private onPaper = false;
  /** The size of the view that the picture is laid out for. */
  private size = { width: 0, height: 0 };

  constructor(root: HTMLElement, tree: Tree, address: Address, setting: Setting) {
    this.root = root;
    this.tree = tree;
    this.address = address;
    this.setting = setting;
    this.growth = tree.growth;
    this.painter = new Painter(tree, tree.colours);
    this.build();
    this.listen();
    this.restore();
    new ResizeObserver(() => this.resized()).observe(this.view);
  }

  /** Shows the view of the address. */
  restore(): void {
    const { search: pattern, zoom, widths } = this.address.read();
    this.tree.turnTo(widths === 0 || widths === 1 ? widths : 2);
    this.showWidths();
    this.zoomed = (zoom && this.tree.find(zoom.x, zoom.y)) ?? 0;
    this.input.value = pattern;
    this.setPattern(pattern);
    this.layOut();
    this.scrollToRoot();
  }

  /** Shows every row, scaled to the paper's width by the style sheet. */
  showForPrint(): void {
    this.onPaper = true;
    this.layOut();
    this.canvas.setAttribute("viewBox", `0 0 ${this.zoom().width} ${this.canvas.height.baseVal.value}`);
  }

  /** Shows what fits the view again. */
  showForScreen(): void {
    this.onPaper = false;
    this.canvas.removeAttribute("viewBox");
    this.layOut();
  }

  // Construction

  private build(): void {
    const { title, subtitle } = this.tree;
    const helpButton = html("button", { type: "button", title: "Keys", "aria-label": "Keys" }, "?");
    helpButton.addEventListener("click", () => this.toggleHelp());
    const tools = html("div", { class: "fg-tools" }, this.matched, this.input, this.colourButton, this.flipButton, helpButton);
    if (this.tree.sides) this.colourButton.before(this.widthButton);
    const heading = html("div", { class: "fg-heading" }, html(this.setting === "alone" ? "h1" : "h4", {}, title), html("p", {}, subtitle));
    this.help.append(
      html("dl", {}, ...KEYS.flatMap(([keys, effect]) => [html("dt", {}, keys), html("dd", {}, effect)])),
    );
    this.canvas.append(this.frames, this.outline);
    this.view.append(this.canvas);
    this.view.setAttribute("aria-label", `Flame graph: ${title}. Arrow keys move, Enter zooms.`);
    this.root.classList.add("fg");
    this.root.append(
      html("header", { class: "fg-header" }, heading, tools),
      html("div", { class: "fg-where" }, this.reset, this.trail),
      this.view,
      this.details,
      this.legend,
      this.help,
    );
    this.showLegend();
  }

  private listen(): void {
    this.reset.addEventListener("click", () => this.zoomTo(0));
    this.flipButton.addEventListener("click", () => this.flip());
    this.colourButton.addEventListener("click", () => this.switchColours());
    this.widthButton.addEventListener("click", () => this.switchWidths());
    this.input.addEventListener("input", () => {
      this.setPattern(this.input.value);
      this.remember("same");
      this.draw();
    });
    this.input.addEventListener("keydown", (event) => this.onSearchKey(event));
    this.view.addEventListener("scroll", () => this.onScroll(), { passive: true });
    this.view.addEventListener("pointermove", (event) => this.setCurrent(this.under(event)));
    this.view.addEventListener("pointerleave", () => this.setCurrent(undefined));
    this.view.addEventListener("click", (event) => this.onClick(event));
    this.view.addEventListener("keydown", (event) => this.onKey(event));
  }

  // Actions of the reader

  /** Makes `node` fill the width. */
  zoomTo(node: number): void {
    if (node === this.zoomed || this.tree.size === 0) return;
    this.zoomed = node;
    this.remember("new");
    this.layOut();
    this.scrollToRoot();
  }

  /** Highlights the functions that match. */
  searchFor(pattern: string): void {
    this.input.value = pattern;
    this.setPattern(pattern);
    this.remember("new");
    this.draw();
  }

  focusSearch(): void {
    this.input.focus();
    this.input.select();
  }

  private flip(): void {
    this.growth = this.growth === "up" ? "down" : "up";
    this.layOut();
    this.scrollToRoot();
  }

  private switchColours(): void {
    const choices: Colours[] = this.tree.sides ? ["difference", "kind", "module"] : ["kind", "module"];
    const next = choices[(choices.indexOf(this.painter.colours) + 1) % choices.length];
    this.painter = new Painter(this.tree, next);
    this.showLegend();
    this.draw();
  }

  private switchWidths(): void {
    this.tree.turnTo(((this.tree.widths + 1) % 3) as Widths);
    // The zoomed frame may have no width in the other tree.
    while (this.zoomed !== 0 && !(this.tree.total[this.zoomed] > 0)) this.zoomed = this.tree.parent[this.zoomed];
    this.showWidths();
    this.remember("same");
    this.layOut();
  }

  private showWidths(): void {
    this.widthButton.textContent = `Widths: ${this.tree.widthsName}`;
  }

  private toggleHelp(): void {
    this.help.hidden = !this.help.hidden;
  }

  private onClick(event: MouseEvent): void {
    const node = this.under(event);
    if (node === undefined) return;
    if (event.shiftKey) this.searchFor(exactly(this.tree.frameOf(node).name));
    else this.zoomTo(node);
  }

  private onSearchKey(event: KeyboardEvent): void {
    event.stopPropagation();
    if (event.key === "Enter") this.step(event.shiftKey ? -1 : 1);
    else if (event.key === "Escape") this.escape();
    else return;
    event.preventDefault();
  }

  /** Acts on a key, and calls `preventDefault` if it did. */
  onKey(event: KeyboardEvent): void {
    if (event.defaultPrevented || event.altKey || event.ctrlKey || event.metaKey) return;
    const current = this.current ?? this.zoomed;
    const toCallee = this.growth === "up" ? "ArrowUp" : "ArrowDown";
    const toCaller = this.growth === "up" ? "ArrowDown" : "ArrowUp";
    switch (event.key) {
      case toCallee:
        this.moveTo(this.current === undefined ? this.zoomed : this.widestChild(current));
        break;
      case toCaller:
        this.moveTo(this.tree.parent[current]);
        break;
      case "ArrowLeft":
      case "ArrowRight":
        this.moveTo(this.sibling(current, event.key === "ArrowLeft" ? -1 : 1));
        break;
      case "Enter":
        this.zoomTo(current);
        break;
      case "Backspace":
        this.zoomTo(this.tree.parent[this.zoomed]);
        break;
      case "Escape":
        this.escape();
        break;
      case "Home":
        this.zoomTo(0);
        break;
      case "/":
        this.focusSearch();
        break;
      case "s":
        this.searchFor(exactly(this.tree.frameOf(current).name));
        break;
      case "f":
        this.flip();
        break;
      case "w":
        this.switchWidths();
        break;
      case "c":
        this.switchColours();
        break;
      case "?":
        this.toggleHelp();
        break;
      default:
        return;
    }
    event.preventDefault();
  }

  private escape(): void {
    if (!this.help.hidden) this.toggleHelp();
    else if (this.hits) {
      this.searchFor("");
      this.view.focus();
    } else this.zoomTo(0);
  }

  /** Goes to the next match, zooming where it would be too narrow to see. */
  private step(direction: 1 | -1): void {
    if (!this.hits) return;
    const found = matches(this.tree, this.hits, 0);
    if (found.length === 0) return;
    const current = this.current ?? (direction === 1 ? -1 : this.tree.size);
    const next = direction === 1 ? found.find((node) => node > current) : found.findLast((node) => node < current);
    const node = next ?? found[direction === 1 ? 0 : found.length - 1];
    const { zoomed } = this;
    const inside = node >= zoomed && node < this.tree.end[zoomed];
    if (!inside || this.widthOf(node) < OWN_ELEMENT) this.zoomTo(this.tree.parent[node]);
    this.moveTo(node);
  }

  private widestChild(node: number): number | undefined {
    let widest: number | undefined;
    for (const child of this.tree.children(node)) {
      if (widest === undefined || this.tree.total[child] > this.tree.total[widest]) widest = child;
    }
    return widest;
  }

  private sibling(node: number, direction: 1 | -1): number | undefined {
    const siblings = node === this.zoomed ? [node] : [...this.tree.children(this.tree.parent[node])];
    return siblings[siblings.indexOf(node) + direction];
  }

  private moveTo(node: number | undefined): void {
    if (node === undefined) return;
    this.setCurrent(node);
    const top = this.top(this.tree.depth[node] - firstDepth(this.tree, this.zoom()));
    if (top < this.view.scrollTop) this.view.scrollTop = top;
    const bottom = top + ROW - this.view.clientHeight;
    if (bottom > this.view.scrollTop) this.view.scrollTop = bottom;
  }

  // State

  private setPattern(pattern: string): void {
    this.hits = pattern === "" ? undefined : search(this.tree, pattern);
    this.showMatched();
  }

  private remember(entry: Entry): void {
    const { sides, widths } = this.tree;
    const view = { search: this.hits?.pattern ?? "", ...(sides && widths !== 2 ? { widths } : {}) };
    const zoom = { x: this.tree.start[this.zoomed], y: this.tree.depth[this.zoomed] };
    this.address.write(this.zoomed === 0 ? view : { ...view, zoom }, entry);
  }

  private setCurrent(node: number | undefined): void {
    if (node === this.current) return;
    this.current = node;
    this.showDetails();
    this.showOutline();
  }

  private zoom(): Zoom {
    return { root: this.zoomed, width: this.canvas.width.baseVal.value };
  }

  // Geometry

  private top(row: number): number {
    return (this.growth === "up" ? this.slots() - 1 - row : row) * ROW;
  }

  /** Rows that the canvas has room for. */
  private slots(): number {
    return this.onPaper ? this.rows : Math.max(this.rows, Math.floor(this.view.clientHeight / ROW));
  }

  private widthOf(node: number): number {
    return (this.tree.total[node] / this.tree.total[this.zoomed]) * this.zoom().width;
  }

  private under(event: MouseEvent): number | undefined {
    const box = this.canvas.getBoundingClientRect();
    const slot = Math.floor((event.clientY - box.top) / ROW);
    const row = this.growth === "up" ? this.slots() - 1 - slot : slot;
    return nodeAt(this.tree, this.zoom(), event.clientX - box.left, row);
  }

  private scrollToRoot(): void {
    this.view.scrollTop = this.growth === "up" ? this.view.scrollHeight : 0;
  }

  // Drawing

  /** Draws again unless the picture has this size: the observer also reports the size at its start. */
  private resized(): void {
    if (this.view.clientWidth !== this.size.width || this.view.clientHeight !== this.size.height) this.layOut();
  }

  private layOut(): void {
    const width = Math.max(0, this.view.clientWidth);
    this.canvas.setAttribute("width", String(width));
    this.rows = this.tree.size === 0 || width === 0 ? 1 : rowCount(this.tree, { root: this.zoomed, width });
    this.canvas.setAttribute("height", String(this.slots() * ROW));
    this.size = { width, height: this.view.clientHeight };
    this.columnWidth = this.measureColumn();
    this.showPath();
    this.draw();
  }

  private measureColumn(): number {
    const text = svg("text", { class: "t", visibility: "hidden" }, "0".repeat(64));
    this.canvas.append(text);
    const width = text.getComputedTextLength() / 64;
    text.remove();
    return width > 0 ? width : 7.25;
  }

  private onScroll(): void {
    const { first, last } = this.visibleSlots(0);
    if (this.drawn && first >= this.drawn.first && last <= this.drawn.last) return;
    this.draw();
  }

  private visibleSlots(margin: number): { first: number; last: number } {
    if (this.onPaper) return { first: 0, last: this.slots() - 1 };
    const first = Math.floor(this.view.scrollTop / ROW) - margin;
    const last = Math.ceil((this.view.scrollTop + this.view.clientHeight) / ROW) + margin;
    return { first: Math.max(0, first), last: Math.min(this.slots() - 1, last) };
  }

  /** Draws only the rows in view. */
  private draw(): void {
    this.drawn = this.visibleSlots(MARGIN_ROWS);
    const zoom = this.zoom();
    this.frames.replaceChildren();
    this.root.classList.toggle("fg-searching", this.hits !== undefined);
    this.showMatched();
    this.showDetails();
    if (this.tree.size === 0 || !(this.tree.total[this.zoomed] > 0)) {
      this.frames.append(svg("text", { class: "faint", x: 8, y: 24 }, "No samples."));
      return;
    }
    const { first, last } = this.drawn;
    const turned = this.slots() - 1;
    const [from, to] = this.growth === "up" ? [turned - last, turned - first] : [first, last];
    const slivers = new Map<string, string[]>();
    const elements: Element[] = [];
    visit(this.tree, zoom, from, to, (node, row, x, width) => {
      const top = this.top(row);
      const classes = this.classes(node);
      if (width >= OWN_ELEMENT) {
        elements.push(svg("rect", { class: classes, x: x.toFixed(2), y: top, width: (width - 1).toFixed(2), height: ROW - 1 }));
        const label = this.label(node, x, width, top);
        if (label) elements.push(label);
        return;
      }
      const span = width >= 2 ? width - 0.5 : width;
      const path = slivers.get(classes) ?? [];
      slivers.set(classes, path);
      path.push(`M${x.toFixed(2)} ${top}h${span.toFixed(2)}v${ROW - 1}h${(-span).toFixed(2)}z`);
    });
    for (const [classes, path] of slivers) elements.push(svg("path", { class: classes, d: path.join("") }));
    this.frames.append(...elements);
    this.showOutline();
  }

  private classes(node: number): string {
    const hit = this.hits?.frames[this.tree.frame[node]] ? " hit" : "";
    const caller = this.tree.depth[node] < this.tree.depth[this.zoomed] ? " fg-caller" : "";
    return this.painter.classOf(node) + hit + caller;
  }

  private label(node: number, x: number, width: number, top: number): SVGTextElement | undefined {
    const columns = Math.floor((width - 2 * INSET) / this.columnWidth);
    if (columns < 3) return undefined;
    const frame = this.tree.frameOf(node);
    const text = frame.kind === "group" ? groupLabel(frame.name, columns) : fit(this.formsOf(frame), columns);
    if (text === undefined) return undefined;
    const quiet = this.painter.isQuiet(frame) || this.painter.isDim(node) ? " q" : "";
    const hit = this.hits?.frames[this.tree.frame[node]] ? " hit" : "";
    return svg("text", { class: `t${quiet}${hit}`, x: (x + INSET).toFixed(2), y: top + 13 }, text);
  }

  private formsOf(frame: Frame): Forms {
    let forms = this.forms.get(frame);
    if (!forms) {
      forms = formsOf(frame.name);
      this.forms.set(frame, forms);
    }
    return forms;
  }

  private showOutline(): void {
    const { current, tree } = this;
    const zoom = this.zoom();
    const inside = current !== undefined && (current >= this.zoomed ? current < tree.end[this.zoomed] : tree.end[current] > this.zoomed);
    const row = current === undefined ? -1 : tree.depth[current] - firstDepth(tree, zoom);
    if (current === undefined || !inside || row < 0) {
      this.outline.setAttribute("visibility", "hidden");
      return;
    }
    const caller = current < this.zoomed;
    const scale = zoom.width / tree.total[this.zoomed];
    const x = caller ? 0 : (tree.start[current] - tree.start[this.zoomed]) * scale;
    const width = caller ? zoom.width : tree.total[current] * scale;
    const box = { x: x.toFixed(2), y: this.top(row), width: Math.max(2, width - 1).toFixed(2), height: ROW - 1 };
    for (const [name, value] of Object.entries(box)) this.outline.setAttribute(name, String(value));
    this.outline.setAttribute("visibility", "visible");
  }

  private showPath(): void {
    this.trail.replaceChildren();
    if (this.tree.size === 0) return;
    const path = this.tree.path(this.zoomed);
    this.reset.hidden = path.length <= 1;
    for (const node of path) {
      const { name, kind } = this.tree.frameOf(node);
      const last = node === this.zoomed;
      const text = kind === "group" ? name : (fit(this.formsOf(this.tree.frameOf(node)), last ? 80 : 28) ?? name);
      const crumb = html("button", { type: "button", title: name, "aria-current": last ? "true" : undefined }, text);
      crumb.addEventListener("click", () => this.zoomTo(node));
      this.trail.append(crumb);
    }
    if (path.length <= 1) this.trail.append(html("span", { class: "fg-hint" }, `${this.hint()}Click a frame to zoom in.`));
    this.trail.scrollLeft = this.trail.scrollWidth;
  }

  /** What the widths show, before the hint to click. */
  private hint(): string {
    const { sides, widths, widthsName, inverted } = this.tree;
    const growth = inverted ? "Inverted: callers are drawn as children. " : "";
    if (!sides) return growth;
    const [now, base] = sides;
    switch (widths) {
      case 0:
        return `${growth}Widths show ${now.name}. Press w to see frames that only ${base.name} has. `;
      case 1:
        return `${growth}Widths show ${base.name}. `;
      default:
        return `${growth}Widths show the ${widthsName}. `;
    }
  }

  private showMatched(): void {
    if (!this.hits || this.tree.size === 0) {
      this.matched.replaceChildren();
      return;
    }
    const { hits, tree } = this;
    const share = (root: number) => percent((100 * matchedWeight(tree, hits, root)) / (tree.total[root] || 1));
    const functions = `${hits.functions} ${hits.functions === 1 ? "function" : "functions"}`;
    const all = html("b", {}, `${share(0)} %`);
    if (hits.functions === 0) this.matched.replaceChildren("no match");
    else if (this.zoomed === 0) this.matched.replaceChildren("matched ", all, ` in ${functions}`);
    else this.matched.replaceChildren("matched ", html("b", {}, `${share(this.zoomed)} %`), " of this, ", all, ` of all`);
  }

  private showDetails(): void {
    if (this.tree.size > 0) this.details.replaceChildren(...details(this.tree, this.current ?? this.zoomed, this.zoomed));
  }

  private showLegend(): void {
    const { colours } = this.painter;
    this.colourButton.textContent = `Colours: ${colours}`;
    let legend = this.legends.get(colours);
    if (!legend) {
      legend = legendOf(this.tree, this.painter);
      this.legends.set(colours, legend);
    }
    this.legend.replaceChildren(legend);
  }
}

function groupLabel(name: string, columns: number): string {
  return columnsOf(name) <= columns ? name : cut(name, columns);
}
