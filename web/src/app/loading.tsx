// Tables that are on their way from the program.

import { computed, signal } from "@preact/signals";
import { REPORT, type Loading } from "../data/source.ts";
import type { Document } from "../profile/document.ts";
import { manifest } from "./state.ts";

/** Most tables come within this time, in milliseconds. The line would only flicker. */
const PATIENCE = 400;

const tables = signal<Loading[]>([]);
const isLate = signal(false);
let timer: ReturnType<typeof setTimeout> | undefined;

/** Takes what is on its way now. */
export function showLoading(loading: Loading[]): void {
  tables.value = loading;
  if (loading.length === 0) {
    clearTimeout(timer);
    timer = undefined;
    isLate.value = false;
  } else {
    timer ??= setTimeout(() => (isLate.value = true), PATIENCE);
  }
}

/** Why there is no report. */
export const reportFailure = signal("");

/** Whether the report is still being made. */
export const isAnalysing = computed(() => tables.value.some(({ name }) => name === REPORT));

/** Adds a report that was made after the page was shown. */
export function showReport(report: Document): void {
  manifest.value = { ...manifest.value, title: report.title, document: report };
}

export function failReport(error: Error): void {
  reportFailure.value = error.message;
}

/** In place of the report, while there is none. */
export function ReportProgress() {
  if (reportFailure.value) return <p class="failure" role="alert">{reportFailure.value}</p>;
  return isAnalysing.value ? <p role="status">Analysing the captures. The figures appear here.</p> : null;
}

/** A line at the edge of the page, while tables take long. */
export function LoadingLine() {
  const first = tables.value[0];
  return (
    <p class="loading" role="status" hidden={!isLate.value || !first}>
      {isLate.value && first && inWords(first)}
    </p>
  );
}

function inWords({ name, received, total }: Loading): string {
  const table = name.replace(/^\d+\//, "").replace(/^lanes.*/, "timeline");
  return total === undefined ? `Preparing ${table}` : `Reading ${table}: ${megabytes(received)} of ${megabytes(total)} MB`;
}

function megabytes(bytes: number): string {
  return (bytes / 1e6).toFixed(1);
}
