// A table of a report: sorted, filtered, its columns chosen; long ones draw only the rows in view.

import { elementScroll, observeElementOffset, observeElementRect, Virtualizer } from "@tanstack/virtual-core";
import { useEffect, useLayoutEffect, useMemo, useReducer, useRef, useState } from "preact/hooks";
import { fitting, Reading, rowsOf, tone, tsvOf, type Field, type SortOrder } from "../../profile/cells.ts";
import type { DocumentTable } from "../../profile/document.ts";
import { fit, formsOf } from "../../label.ts";
import { compile } from "../../search.ts";
import { grouped } from "../../units.ts";
import { Icon } from "../icons.tsx";
import { bareName, captureOf, functionLink, isOfFunctions } from "../links.ts";
import { Name, Notes, Prose } from "../prose.tsx";
import { adjust, filter, place, sort } from "../state.ts";
import { Cards } from "./cards.tsx";

/** Rows of a long table that are shown until the reader asks for more. */
const FOLDED = 15;
/** Tables with more rows draw only those in view. */
const MANY = 300;
/** Height of a row whose texts take one line. */
const ROW = 25;
/** Tables with fewer rows need no filter. */
const FEW = 8;
/** Width of a character of the text font, in pixels. */
const CHARACTER = 7.1;
/** Names longer than this are shown shortened in the middle. */
const LONGEST_NAME = 110;

export interface TableProps {
  table: DocumentTable;
  /** Its address: anchor of the section, slash, name of the table. */
  id: string;
  /** The capture of its section. */
  capture: number | undefined;
}

export function DataTable({ table, id, capture }: TableProps) {
  const reading = useMemo(() => new Reading(table), [table]);
  const pattern = place.value === id ? filter.value : "";
  const [ownedOnly, setOwnedOnly] = useState(false);
  const order = place.value === id ? orderOf(sort.value) : undefined;
  const setOrder = (order: SortOrder | undefined) => adjust({ place: id, filter: pattern, sort: order ? `${order.descending ? "-" : ""}${order.column}` : "" });
  const [unfolded, setUnfolded] = useState(false);
  const [chosen, setChosen] = useState<ReadonlySet<string>>();
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  const [narrowed, setNarrowed] = useState({ width: 0, share: 1 });
  const share = narrowed.width === width ? narrowed.share : 1;
  const fields = useMemo(() => {
    if (chosen) return reading.known().filter(({ column }) => chosen.has(column.name));
    return fitting(reading, (width * share) / CHARACTER);
  }, [reading, chosen, width, share]);
  // Widths are estimates: fonts differ. A table that is too wide loses its least important columns.
  useLayoutEffect(() => {
    const scroll = box.current?.querySelector(".scroll");
    if (!chosen && scroll && scroll.scrollWidth > scroll.clientWidth + 1 && fields.length > 1 && share > 0.2) setNarrowed({ width, share: share * 0.9 });
  });
  const rows = useMemo(() => rowsOf(reading, pattern ? compile(pattern) : undefined, ownedOnly, order), [reading, pattern, ownedOnly, order?.column, order?.descending]);

  if (reading.rows === 0) return <Notes notes={table.notes} />;
  const hidden = reading.known().length - fields.length;
  const shown = unfolded || pattern ? rows : rows.slice(0, FOLDED);
  return (
    <figure class="table" id={id} aria-label={table.title || table.name} ref={box}>
      <figcaption>
        {table.title && <h4>{table.title}</h4>}
        <span class="tools">
          <output>{rows.length === reading.rows ? `${grouped(reading.rows)} ${reading.rows === 1 ? "row" : "rows"}` : `${grouped(rows.length)} of ${grouped(reading.rows)} rows`}</output>
          {reading.owned && reading.rows > 1 && (
            <button aria-pressed={ownedOnly} onClick={() => setOwnedOnly(!ownedOnly)}>
              Owned only
            </button>
          )}
          {reading.rows >= FEW && (
            <input
              type="search"
              placeholder="Filter"
              aria-label="Filter rows by regular expression"
              spellcheck={false}
              autocomplete="off"
              value={pattern}
              onInput={(event) => adjust({ place: id, filter: event.currentTarget.value, sort: order ? sort.value : "" })}
            />
          )}
          {reading.below.length === 0 && <ColumnMenu reading={reading} fields={fields} hidden={hidden} choose={setChosen} />}
          <CopyButton table={table} rows={rows} />
        </span>
      </figcaption>
      {reading.below.length > 0 ? (
        <Cards reading={reading} rows={rows} capture={capture} />
      ) : (
        <Rows reading={reading} fields={fields} rows={shown} order={order} sort={setOrder} capture={capture} width={width} />
      )}
      {rows.length > shown.length && reading.below.length === 0 && (
        <p class="on-paper soft">
          The first {grouped(shown.length)} of {grouped(rows.length)} rows.
        </p>
      )}
      {rows.length > FOLDED && reading.below.length === 0 && !pattern && (
        <button class="more" onClick={() => setUnfolded(!unfolded)}>
          {unfolded ? `Show the first ${FOLDED} rows` : `Show all ${grouped(rows.length)} rows`}
        </button>
      )}
      <Notes notes={table.notes} />
    </figure>
  );
}

function orderOf(text: string): SortOrder | undefined {
  if (text === "") return undefined;
  const descending = text.startsWith("-");
  return { column: descending ? text.slice(1) : text, descending };
}

/** The width of an element in pixels, followed. */
function useWidth(box: preact.RefObject<HTMLElement>): number {
  const [width, setWidth] = useState(() => Math.min(1180, innerWidth - 60));
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    setWidth(element.clientWidth);
    const observer = new ResizeObserver(() => setWidth(element.clientWidth));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return width;
}

interface RowsProps {
  reading: Reading;
  fields: Field[];
  rows: number[];
  order: SortOrder | undefined;
  sort: (order: SortOrder | undefined) => void;
  capture: number | undefined;
  width: number;
}

function Rows(props: RowsProps) {
  const { reading, fields, rows, order, sort } = props;
  const isLong = rows.length > MANY;
  const scroll = useRef<HTMLDivElement>(null);
  const part = useVirtual(scroll, rows.length, isLong);
  return (
    <div class={`scroll${isLong ? " long" : ""}`} ref={scroll} tabIndex={isLong ? 0 : undefined} role={isLong ? "group" : undefined} aria-label={isLong ? "Rows" : undefined}>
      <table aria-rowcount={rows.length + 1}>
        <thead>
          <tr>
            {fields.map((field) => (
              <Header key={field.column.name} field={field} order={order} sort={sort} isSortable={reading.rows > 1} />
            ))}
          </tr>
        </thead>
        <tbody>
          {part.before > 0 && <tr style={{ height: `${part.before}px` }} aria-hidden="true" />}
          {rows.slice(part.first, part.last).map((row, index) => (
            <Row key={row} {...props} row={row} above={order ? undefined : rows[part.first + index - 1]} place={part.first + index + 2} />
          ))}
          {part.after > 0 && <tr style={{ height: `${part.after}px` }} aria-hidden="true" />}
          {rows.length === 0 && (
            <tr>
              <td class="none" colSpan={fields.length}>
                No row matches.
              </td>
            </tr>
          )}
        </tbody>
      </table>
    </div>
  );
}

interface Part {
  first: number;
  last: number;
  /** Pixels of rows that are not drawn. */
  before: number;
  after: number;
}

/** The rows in view of a scrolled element; all of them if there are few. */
function useVirtual(scroll: preact.RefObject<HTMLDivElement>, count: number, isLong: boolean): Part {
  const [, redraw] = useReducer((turn: number) => turn + 1, 0);
  const virtualizer = useRef<Virtualizer<HTMLDivElement, HTMLElement>>();
  const options = {
    count: isLong ? count : 0,
    getScrollElement: () => scroll.current,
    estimateSize: () => ROW,
    overscan: 12,
    scrollToFn: elementScroll,
    observeElementRect,
    observeElementOffset,
    onChange: () => redraw(0),
  };
  virtualizer.current ??= new Virtualizer(options);
  const current = virtualizer.current;
  current.setOptions(options);
  useEffect(() => current._didMount(), []);
  useLayoutEffect(() => current._willUpdate());
  if (!isLong) return { first: 0, last: count, before: 0, after: 0 };
  const items = current.getVirtualItems();
  const first = items[0]?.index ?? 0;
  const last = (items[items.length - 1]?.index ?? Math.min(count, 40) - 1) + 1;
  return { first, last, before: first * ROW, after: Math.max(0, count - last) * ROW };
}

function Header({ field, order, sort, isSortable }: { field: Field; order: SortOrder | undefined; sort: RowsProps["sort"]; isSortable: boolean }) {
  const { column, isText } = field;
  const descending = order?.column === column.name ? order.descending : undefined;
  const natural = !isText;
  // The column's natural order first, the other way second, the table's own order third.
  const turn = () => sort(descending === undefined ? { column: column.name, descending: natural } : descending === natural ? { column: column.name, descending: !natural } : undefined);
  const label = (
    <>
      {column.header}
      {column.beside && <i> {column.beside}</i>}
    </>
  );
  return (
    <th
      scope="col"
      class={isText ? "text" : "num"}
      data-name={column.name}
      aria-sort={descending === undefined ? undefined : descending ? "descending" : "ascending"}
      data-tip={isSortable ? undefined : column.doc}
    >
      {isSortable ? (
        <button onClick={turn} data-tip={column.doc} aria-description={column.doc}>
          {label}
          <span class="arrow" aria-hidden="true">
            {descending === undefined ? "" : descending ? "↓" : "↑"}
          </span>
        </button>
      ) : (
        label
      )}
    </th>
  );
}

function Row({ reading, fields, row, above, capture, place }: RowsProps & { row: number; above: number | undefined; place: number }) {
  const isMine = reading.owned?.[row] === true;
  const startsGroup = above !== undefined && fields.some(({ column }) => column.groups && column.values[row] !== column.values[above]);
  return (
    <tr class={`${isMine ? "mine" : ""}${startsGroup ? " starts" : ""}`} aria-rowindex={place}>
      {fields.map((field) => (
        <Cell key={field.column.name} reading={reading} field={field} row={row} above={above} capture={capture} />
      ))}
    </tr>
  );
}

interface CellProps {
  reading: Reading;
  field: Field;
  row: number;
  above: number | undefined;
  capture: number | undefined;
}

function Cell({ reading, field, row, above, capture }: CellProps) {
  const { column, isText, largest, hasUnits } = field;
  const value = column.values[row];
  const cell = reading.cell(field, row);
  if (isText) {
    const repeats = column.groups && above !== undefined && column.values[above] === value;
    const marked = column.verdict ? tone(value) : undefined;
    const kind = marked ?? (value === false || repeats ? "off" : column.prose || column.kind === "flag" ? "prose" : "name");
    return <td class={`text ${kind}`}>{typeof value === "string" && kind === "name" ? <NameCell text={value} reading={reading} row={row} column={column.name} capture={capture} /> : <Prose text={cell.number} />}</td>;
  }
  const share = largest > 0 && typeof value === "number" ? Math.round((value / largest) * 100) : 0;
  return (
    <td class={value === null ? "num off" : "num"}>
      {share > 0 && <span class="bar" style={{ width: `${share}%` }} />}
      <span class="value">{cell.number}</span>
      {hasUnits && <i class="unit"> {cell.unit}</i>}
      {!hasUnits && cell.unit && <i> {cell.unit}</i>}
      {cell.bounds && <small> {cell.bounds}</small>}
    </td>
  );
}

function NameCell({ text, reading, row, column, capture }: { text: string; reading: Reading; row: number; column: string; capture: number | undefined }) {
  const name = bareName(text);
  const depth = text.length - text.trimStart().length;
  const shown = name.length > LONGEST_NAME ? (fit(formsOf(name), LONGEST_NAME) ?? name) : name;
  const about = isOfFunctions(column) ? captureOf(reading.table, row, capture) : undefined;
  const inner = <Name text={shown} />;
  return (
    <span class="indented" style={depth > 0 ? { paddingLeft: `${depth * 0.55}em` } : undefined} title={shown === name ? undefined : name}>
      {about === undefined || name === "" ? inner : <a href={functionLink(name, about)}>{inner}</a>}
    </span>
  );
}

function ColumnMenu({ reading, fields, hidden, choose }: { reading: Reading; fields: Field[]; hidden: number; choose: (names: ReadonlySet<string> | undefined) => void }) {
  const all = reading.known();
  if (all.length < 2) return null;
  const shown = new Set(fields.map(({ column }) => column.name));
  const toggle = (name: string) => {
    const names = new Set(shown);
    if (!names.delete(name)) names.add(name);
    if (names.size > 0) choose(names);
  };
  return (
    <details class="column-menu" onKeyDown={(event) => event.key === "Escape" && ((event.currentTarget.open = false), event.stopPropagation())}>
      <summary aria-label={`Columns${hidden > 0 ? `, ${hidden} hidden` : ""}`}>
        <Icon name="columns" />
        Columns{hidden > 0 && <span class="badge">+{hidden}</span>}
      </summary>
      <div class="popup">
        {all.map(({ column }) => (
          <label key={column.name}>
            <input type="checkbox" checked={shown.has(column.name)} onChange={() => toggle(column.name)} />
            <span>
              <b>{column.header}</b> {column.beside && <i>{column.beside}</i>}
              <small>{column.doc}</small>
            </span>
          </label>
        ))}
        <p>
          <button onClick={() => choose(new Set(all.map(({ column }) => column.name)))}>All</button> <button onClick={() => choose(undefined)}>What fits</button>
        </p>
      </div>
    </details>
  );
}

function CopyButton({ table, rows }: { table: DocumentTable; rows: number[] }) {
  const [said, setSaid] = useState("");
  const copy = async () => {
    const isCopied = await copyText(tsvOf(table, rows));
    setSaid(isCopied ? "Copied" : "Not copied: the browser refused");
    setTimeout(() => setSaid(""), 1500);
  };
  return (
    <button class="copy" onClick={copy} data-tip="Copy these rows with all columns, as tab-separated values" aria-label="Copy as TSV">
      <Icon name="copy" />
      <span role="status">{said}</span>
    </button>
  );
}

/** Copies text; pages from `file://` may lack the clipboard's own interface. */
async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "unseen";
    document.body.append(area);
    area.select();
    const isCopied = document.execCommand("copy");
    area.remove();
    return isCopied;
  }
}
