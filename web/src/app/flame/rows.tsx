// A table whose rows are made as they come into view: there may be a hundred thousand.

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { useLocalKeys, type LocalKeys } from "../commands.ts";

export interface RowColumn<Key extends string> {
  key: Key;
  title: string;
  /** What it means, on hover. */
  about: string;
  isNumber?: boolean;
  /** Width in pixels; the first column takes the rest. */
  width?: number;
}

interface RowsProps<Key extends string> {
  label: string;
  columns: RowColumn<Key>[];
  count: number;
  /** `room` is the width of the first column in characters of the fixed font. */
  cell(row: number, key: Key, room: number): ComponentChildren;
  /** The column by which rows are sorted, largest first or names from A. */
  sorted?: Key;
  onSort?(key: Key): void;
  /** The chosen row; -1 for none. */
  chosen?: number;
  onChoose?(row: number): void;
  onOpen?(row: number): void;
  onMenu?(row: number, x: number, y: number): void;
  rowTitle?(row: number): string;
}

const HEIGHT = 24;
/** Space between columns and the width of a character, in pixels; as in flame.css. */
const GAP = 10;
const CHARACTER = 7.3;
/** Least width of the first column. */
const NARROWEST = 150;
/** Width of the first column below which others go. */
const ROOMY = 260;
/** Rows made beyond those in view. */
const MARGIN = 12;

const LOCAL_KEYS: LocalKeys[] = [
  { title: "Choose a row", group: "Rows", keys: ["ArrowUp", "ArrowDown", "PageUp", "PageDown", "Home", "End"] },
  { title: "Open the row, its transforms", group: "Rows", keys: ["Enter", "ContextMenu"] },
];

export function Rows<Key extends string>(props: RowsProps<Key>) {
  const { label, count, cell, sorted, onSort, chosen = -1, onChoose, onOpen, onMenu, rowTitle } = props;
  const host = useRef<HTMLDivElement>(null);
  useLocalKeys(LOCAL_KEYS);
  const [port, setPort] = useState({ top: 0, height: 600, width: 600 });
  useEffect(() => {
    const element = host.current!;
    const observe = () => setPort({ top: element.scrollTop, height: element.clientHeight, width: element.clientWidth });
    const observer = new ResizeObserver(observe);
    observer.observe(element);
    element.addEventListener("scroll", observe, { passive: true });
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    const element = host.current!;
    if (chosen < 0) return;
    const [top, bottom] = [chosen * HEIGHT, (chosen + 2) * HEIGHT];
    if (top < element.scrollTop) element.scrollTop = top;
    else if (bottom > element.scrollTop + element.clientHeight) element.scrollTop = bottom - element.clientHeight;
  }, [chosen]);
  const first = Math.max(0, Math.floor(port.top / HEIGHT) - MARGIN);
  const last = Math.min(count, Math.ceil((port.top + port.height) / HEIGHT) + MARGIN);
  const columns = fitting(props.columns, port.width);
  const template = columns.map(({ width }) => (width === undefined ? `minmax(${NARROWEST}px, 1fr)` : `${width}px`)).join(" ");
  const room = Math.floor((Math.max(NARROWEST, port.width - takenBy(columns)) - 14) / CHARACTER);
  const onKey = (event: KeyboardEvent) => {
    const page = Math.max(1, Math.floor(port.height / HEIGHT) - 2);
    const to = { ArrowDown: chosen + 1, ArrowUp: chosen - 1, PageDown: chosen + page, PageUp: chosen - page, Home: 0, End: count - 1 }[event.key];
    if (to !== undefined) onChoose?.(Math.min(Math.max(0, to), count - 1));
    else if (event.key === "Enter" && chosen >= 0) onOpen?.(chosen);
    else if ((event.key === "ContextMenu" || (event.key === "F10" && event.shiftKey)) && chosen >= 0) {
      const box = host.current!.getBoundingClientRect();
      onMenu?.(chosen, box.left + 40, box.top + (chosen + 2) * HEIGHT - port.top);
    } else return;
    event.preventDefault();
  };
  const rows = Array.from({ length: Math.max(0, last - first) }, (_, index) => first + index);
  return (
    <div class="rows" ref={host} role="grid" aria-label={label} aria-rowcount={count + 1} tabIndex={0} onKeyDown={onKey} aria-activedescendant={chosen >= first && chosen < last ? `${label}-${chosen}` : undefined}>
      <div class="row head" role="row" aria-rowindex={1} style={{ gridTemplateColumns: template }}>
        {columns.map(({ key, title, about, isNumber }) => (
          <div key={key} role="columnheader" class={isNumber ? "number" : ""} title={about} aria-sort={sorted === key ? (isNumber ? "descending" : "ascending") : undefined}>
            {onSort ? (
              <button tabIndex={-1} onClick={() => onSort(key)}>
                {title}
                {sorted === key ? (isNumber ? " ▾" : " ▴") : ""}
              </button>
            ) : (
              title
            )}
          </div>
        ))}
      </div>
      <div role="presentation" style={{ height: `${first * HEIGHT}px` }} />
      {rows.map((row) => (
        <div
          key={row}
          id={`${label}-${row}`}
          class="row"
          role="row"
          aria-rowindex={row + 2}
          aria-selected={row === chosen}
          title={rowTitle?.(row)}
          style={{ gridTemplateColumns: template }}
          onClick={() => onChoose?.(row)}
          onDblClick={() => onOpen?.(row)}
          onContextMenu={(event) => {
            if (!onMenu) return;
            event.preventDefault();
            onChoose?.(row);
            onMenu(row, event.clientX, event.clientY);
          }}
        >
          {columns.map(({ key, isNumber }) => (
            <div key={key} role="gridcell" class={isNumber ? "number" : ""}>
              {cell(row, key, room)}
            </div>
          ))}
        </div>
      ))}
      <div role="presentation" style={{ height: `${Math.max(0, count - last) * HEIGHT}px` }} />
    </div>
  );
}

/** Columns for which there is room beside the first one; the last ones go first. */
function fitting<Key extends string>(columns: RowColumn<Key>[], width: number): RowColumn<Key>[] {
  let count = columns.length;
  while (count > 3 && width - takenBy(columns.slice(0, count)) < ROOMY) count--;
  return columns.slice(0, count);
}

function takenBy(columns: RowColumn<string>[]): number {
  return columns.reduce((sum, { width = 0 }) => sum + width + GAP, GAP);
}
