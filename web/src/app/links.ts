// Links from tables to the evidence in Explore.

import { computed } from "@preact/signals";
import type { Document, DocumentSection, DocumentTable } from "../profile/document.ts";
import { EMPTY } from "../profile/document.ts";
import { exactly } from "../search.ts";
import { linkTo, manifest } from "./state.ts";

/** The report of the page. */
export const report = computed<Document>(() => {
  const given = manifest.value.document as Document | null | undefined;
  return given && Array.isArray(given.sections) ? given : EMPTY;
});

/** Every section by its anchor, with those that it is in. */
export const sections = computed(() => {
  const found = new Map<string, { section: DocumentSection; within: DocumentSection[] }>();
  const walk = (section: DocumentSection, within: DocumentSection[]) => {
    found.set(section.anchor, { section, within });
    section.sections.forEach((inner) => walk(inner, [...within, section]));
  };
  report.value.sections.forEach((section) => walk(section, []));
  return found;
});

/** Columns whose texts are functions. */
const FUNCTIONS = new Set(["function", "functions", "caller", "callee", "top_function", "owned_function", "frame", "waits_in", "woken_by_function", "holder_function"]);

export function isOfFunctions(column: string): boolean {
  return FUNCTIONS.has(column);
}

/** The capture that a row is about: that of its section, else the first of the scenario and phase that the row names. */
export function captureOf(table: DocumentTable, row: number, ofSection: number | undefined): number | undefined {
  if (ofSection !== undefined) return ofSection;
  const { captures } = manifest.value;
  const text = (...names: string[]) => {
    const value = names.map((name) => table.columns.find((column) => column.name === name)?.values[row]).find((value) => typeof value === "string");
    return typeof value === "string" ? value : undefined;
  };
  const label = text("capture", "worst_capture");
  const scenario = text("scenario", "worst_scenario", "score_scenario");
  const [phase, variant] = [text("phase"), text("variant")];
  const fits = captures.findIndex(
    (capture) =>
      (label === undefined || capture.label === label) &&
      (scenario === undefined || capture.scenario === scenario || capture.label.startsWith(`${scenario}/`)) &&
      (phase === undefined || capture.phase === phase) &&
      (variant === undefined || capture.variant === variant),
  );
  return fits < 0 ? undefined : fits;
}

/** A function in the flame graph of a capture: of its CPU time, or of where it waits. */
export function functionLink(name: string, capture: number, isWaiting = false): string {
  return linkTo({ screen: "explore", capture, function: name, search: exactly(name), ...(isWaiting && { weight: "offcpu" }) });
}

/** The text of a name column without what is around the name: indentation, and marks of trees. */
export function bareName(text: string): string {
  return text.replace(/^[\s│├└─┬┴┼·]+/u, "").trimEnd();
}
