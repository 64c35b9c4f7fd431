// How the reader arranged the timeline.

import { signal } from "@preact/signals";
import { EVIDENCE, type Evidence } from "../../profile/address.ts";
import { adjust, hidden, view } from "../state.ts";

/** Most rows of nested scopes of a thread. */
export const scopeRows = signal(4);
/** Whether a drag measures, and what was measured. */
export const measuring = signal(false);
export const measured = signal<[number, number] | undefined>(undefined);

/** Whether this is shown over the lanes. */
export function shows(name: Evidence): boolean {
  return !hidden.value.includes(name);
}

/** Shows this over the lanes, or hides it. */
export function toggleEvidence(name: Evidence): void {
  adjust({ hidden: EVIDENCE.filter((one) => hidden.peek().includes(one) !== (one === name)) });
}

/** Adds the name of a heading to a list, or takes it out. */
export function toggle(list: "closed" | "idleShown", name: string): void {
  const names = view.peek()[list];
  adjust({ [list]: names.includes(name) ? names.filter((other) => other !== name) : [...names, name] });
}

export function toggleMeasuring(): void {
  measuring.value = !measuring.value;
  if (!measuring.value) measured.value = undefined;
}
