// Tables of a report as people read them: an estimate and its interval are one cell, a number has the unit of its row.

import { estimate, kindOfUnit, MISSING, quantity, unitBesideNumber, type QuantityKind } from "../units.ts";
import type { DocumentColumn, DocumentTable } from "./document.ts";

export type Value = DocumentColumn["values"][number];

/** A cell as shown. */
export interface Cell {
  number: string;
  unit: string;
  /** The interval of an estimate, such as `[0.48, 0.55]`. */
  bounds: string;
}

/** A column that is shown by itself, not as a bound or below its row. */
export interface Field {
  index: number;
  column: DocumentColumn;
  /** Text stands left, numbers right. */
  isText: boolean;
  /** The largest share, whose bar is as wide as the cell; 0 if the column shows no bars. */
  largest: number;
  /** Whether its numbers carry units of their own, which then take equal room. */
  hasUnits: boolean;
}

/** A table prepared for reading. */
export class Reading {
  readonly table: DocumentTable;
  readonly rows: number;
  readonly fields: Field[];
  /** Columns whose texts stand below their rows. */
  readonly below: DocumentColumn[];
  /** Values of the column that says whether a row is owned. */
  readonly owned: readonly Value[] | undefined;
  private readonly units: readonly Value[] | undefined;
  private readonly real: boolean[];

  constructor(table: DocumentTable) {
    this.table = table;
    const { columns } = table;
    this.rows = columns[0]?.values.length ?? 0;
    this.units = columns.some(({ kind }) => kind === "inrowunit") ? columns.find(({ name }) => name === "unit")?.values : undefined;
    this.real = columns.map(({ values }) => values.some((value) => typeof value === "number" && !Number.isInteger(value)));
    this.owned = columns.find(({ name, kind }) => name === "owned" && kind === "flag")?.values;
    this.below = columns.filter(({ below }) => below);
    const bounds = new Set(columns.flatMap(({ bounds }) => bounds ?? []));
    this.fields = columns
      .map((column, index) => ({ column, index }))
      .filter(({ column, index }) => !column.below && !bounds.has(index))
      .map(({ column, index }) => ({
        column,
        index,
        isText: column.kind === "text" || column.kind === "prose" || column.kind === "flag",
        largest: column.kind === "percent" ? largestShare(column.values) : 0,
        hasUnits: column.kind === "duration" || column.kind === "bytes" || column.kind === "inrowunit",
      }));
  }

  /** Fields that have a value in some row; the others would only take room. */
  known(): Field[] {
    return this.fields.filter(({ column }) => column.values.some((value) => value !== null && value !== ""));
  }

  cell({ column, index }: Field, row: number): Cell {
    const value = column.values[row];
    if (this.units && column.values === this.units) return bare(typeof value === "string" ? unitBesideNumber(value) : "");
    const kind = this.kind(column, row);
    if (column.bounds && kind) {
      const [low, high] = column.bounds.map((bound) => numberOf(this.table.columns[bound].values[row]));
      if (low !== null || high !== null) return estimate(numberOf(value), low, high, kind);
    }
    if (value === null) return bare(MISSING);
    if (typeof value === "boolean") return bare(value ? "yes" : "no");
    if (typeof value === "string") return bare(value);
    return kind ? { ...quantity(value, kind, this.real[index]), bounds: "" } : bare(String(value));
  }

  /** The cell as one line, for copying and for searching. */
  text(field: Field, row: number): string {
    const { number, unit, bounds } = this.cell(field, row);
    return [number, unit, bounds].filter(Boolean).join(" ");
  }

  private kind(column: DocumentColumn, row: number): QuantityKind | undefined {
    switch (column.kind) {
      case "text":
      case "prose":
      case "flag":
        return undefined;
      case "inrowunit": {
        const unit = this.units?.[row];
        return typeof unit === "string" ? kindOfUnit(unit) : "number";
      }
      default:
        return column.kind;
    }
  }
}

function bare(number: string): Cell {
  return { number, unit: "", bounds: "" };
}

export function numberOf(value: Value | undefined): number | null {
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}

/** The largest value of a column of shares; 0 if some are negative, as differences are. */
function largestShare(values: readonly Value[]): number {
  let largest = 0;
  for (const value of values) {
    if (typeof value !== "number") continue;
    if (value < 0) return 0;
    largest = Math.max(largest, value);
  }
  return largest;
}

/** How strongly a verdict is marked; none for other words. */
export function tone(value: Value): "strong" | "alarm" | "calm" | "faint" | undefined {
  switch (value) {
    case "changed":
    case "more":
    case "less":
      return "strong";
    case "regression":
      return "alarm";
    case "equivalent":
    case "pass":
      return "calm";
    case "inconclusive":
      return "faint";
    default:
      return undefined;
  }
}

/** The width of a column in characters of the text font, from the rows that are seen first. */
function widthOf(reading: Reading, field: Field): number {
  const { column } = field;
  const most = column.kind === "prose" || column.prose ? 36 : 46;
  let widest = Math.max(...`${column.header} ${column.beside}`.trim().split(" ").map((word) => word.length)) + 2;
  const samples = Math.min(reading.rows, 200);
  for (let row = 0; row < samples; row++) widest = Math.max(widest, reading.text(field, row).length);
  return Math.min(widest, most) + 2.5;
}

/** Characters that are enough for names. */
const LEAST_NAME = 16;

const ORDER = { essential: 0, normal: 1, detail: 2 } as const;

/**
 * The fields that fit into a width, in characters: the more important first, then in the order of the table. Columns for
 * details stay out even where there is room. The first field is always shown.
 */
export function fitting(reading: Reading, width: number): Field[] {
  const known = reading.known();
  const byImportance = [...known].sort((a, b) => ORDER[a.column.importance] - ORDER[b.column.importance]);
  const widths = new Map(known.map((field) => [field, widthOf(reading, field)]));
  // The widest names tell rows apart; they get more room than others before numbers do.
  const naming = known.filter(({ isText }) => isText).sort((a, b) => widths.get(b)! - widths.get(a)!)[0];
  // On a phone, names break into lines: without a figure they would be a list and no answer.
  const figure = byImportance.find(({ isText }) => !isText);
  const room = Math.max(LEAST_NAME, width - (figure ? widths.get(figure)! : 0));
  const chosen = new Set<Field>();
  let used = 0;
  for (const field of byImportance) {
    if (field.column.importance === "detail" && chosen.size > 0) continue;
    const needed = widths.get(field)!;
    const least = field.isText ? Math.min(needed, field === naming ? Math.min(40, room) : 26) : needed;
    if (chosen.size > 0 && used + least > width) continue;
    used += least;
    chosen.add(field);
  }
  return known.filter((field) => chosen.has(field));
}

export interface SortOrder {
  column: string;
  descending: boolean;
}

/** Rows that pass the filter, in order. Missing values come last in both directions; equal rows keep their order. */
export function rowsOf(reading: Reading, pattern: RegExp | undefined, ownedOnly: boolean, order: SortOrder | undefined): number[] {
  const { columns } = reading.table;
  const rows: number[] = [];
  for (let row = 0; row < reading.rows; row++) {
    if (ownedOnly && reading.owned && reading.owned[row] !== true) continue;
    if (pattern && !columns.some(({ values }) => pattern.test(textOf(values[row])))) continue;
    rows.push(row);
  }
  const sorted = order && columns.find(({ name }) => name === order.column);
  if (sorted) rows.sort((a, b) => compare(sorted.values[a], sorted.values[b], order.descending));
  return rows;
}

function textOf(value: Value): string {
  if (value === null) return "";
  if (typeof value === "boolean") return value ? "yes" : "no";
  return String(value);
}

function compare(a: Value, b: Value, descending: boolean): number {
  if (a === null || b === null) return Number(a === null) - Number(b === null);
  const turned = descending ? -1 : 1;
  if (typeof a === "number" && typeof b === "number") return (a - b) * turned;
  const [first, second] = [textOf(a), textOf(b)];
  return first < second ? -turned : first > second ? turned : 0;
}

/** All columns of these rows as tab-separated values: exact numbers under stable names. */
export function tsvOf(table: DocumentTable, rows: readonly number[]): string {
  // Tabs and line ends would break the rows.
  const safe = (text: string) => text.replace(/[\t\r\n]+/g, " ");
  const header = table.columns.map(({ name }) => name).join("\t");
  return [header, ...rows.map((row) => table.columns.map(({ values }) => safe(textOf(values[row]))).join("\t"))].join("\n") + "\n";
}
