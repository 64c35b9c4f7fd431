// The tables of the verdict, read by the names of their columns.

import { numberOf, Reading, type Field } from "../../profile/cells.ts";
import type { DocumentSection, DocumentTable } from "../../profile/document.ts";
import { weight } from "../../units.ts";
import { sections } from "../links.ts";
import { linkTo, manifest } from "../state.ts";

/** Rows of a table by name, with the means to read cells by column. */
export class Rows {
  readonly reading: Reading;
  private readonly fields: Map<string, Field>;

  constructor(table: DocumentTable) {
    this.reading = new Reading(table);
    this.fields = new Map(this.reading.fields.map((field) => [field.column.name, field]));
  }

  get indices(): number[] {
    return Array.from({ length: this.reading.rows }, (_, row) => row);
  }

  text(row: number, name: string): string {
    const value = this.fields.get(name)?.column.values[row];
    return typeof value === "string" ? value : "";
  }

  number(row: number, name: string): number | undefined {
    const value = this.fields.get(name)?.column.values[row];
    return typeof value === "number" ? value : undefined;
  }

  /** A cell with its unit; empty if unknown. */
  shown(row: number, name: string): string {
    const field = this.fields.get(name);
    if (!field || field.column.values[row] === null) return "";
    const text = this.reading.text(field, row);
    return field.column.kind === "percent" ? `${text} %` : text;
  }

  /** An estimate without its interval. */
  point(row: number, name: string): string {
    const field = this.fields.get(name);
    if (!field || field.column.values[row] === null) return "";
    const { number, unit } = this.reading.cell(field, row);
    return [number, unit].filter(Boolean).join(" ");
  }

  /** The interval of an estimate, as `2 ms to 3 ms`. */
  spread(row: number, name: string): string {
    const { column } = this.fields.get(name) ?? {};
    const kind = column?.kind === "duration" ? "duration" : "number";
    const ends = (column?.bounds ?? []).map((bound) => numberOf(this.reading.table.columns[bound].values[row]));
    return ends.map((end) => (end === null ? "" : weight(end, kind === "duration" ? "ns" : ""))).join(" to ");
  }

  header(name: string): string {
    return this.fields.get(name)?.column.header ?? name;
  }

  doc(name: string): string {
    return this.fields.get(name)?.column.doc ?? "";
  }
}

/** Rows by a key, in the order of their first ones. */
export function grouped(rows: number[], key: (row: number) => string): Map<string, number[]> {
  const groups = new Map<string, number[]>();
  for (const row of rows) groups.set(key(row), [...(groups.get(key(row)) ?? []), row]);
  return groups;
}

export function tableOf({ blocks }: DocumentSection, name: string): DocumentTable | undefined {
  const isOfName = (block: DocumentSection["blocks"][number]): block is { kind: "table"; table: DocumentTable } => block.kind === "table" && block.table.name === name;
  return blocks.find(isOfName)?.table;
}

/** The capture of a label, and of a repetition if the label has several. */
export function captureIndex(label: string, repetition?: number): number | undefined {
  const { captures } = manifest.value;
  const exact = captures.findIndex((entry) => entry.label === label && entry.repetition === (repetition ?? 0));
  const index = exact < 0 ? captures.findIndex((entry) => entry.label === label) : exact;
  return index < 0 ? undefined : index;
}

/** The section of a capture in the tables, or a part of it. */
export function placeOf(label: string, repetition: number | undefined, part: string): string | undefined {
  const anchor = `${[label.replaceAll("/", "-"), repetition].filter(Boolean).join("-")}/${part}`;
  return sections.value.has(anchor) ? linkTo({ screen: "tables", place: anchor }) : undefined;
}
