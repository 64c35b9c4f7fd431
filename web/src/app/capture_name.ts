// Names of captures.

import type { CaptureEntry } from "../profile/columns.ts";

/** A capture in words: only what tells it from the others. */
export function captureName(entry: CaptureEntry, among: CaptureEntry[]): string {
  const differs = (key: "scenario" | "phase" | "variant" | "repetition") => among.some((other) => other[key] !== entry[key]);
  const parts = [
    differs("scenario") && entry.scenario,
    differs("phase") && entry.phase,
    differs("variant") && entry.variant,
    differs("repetition") && `#${entry.repetition}`,
  ];
  return parts.filter(Boolean).join(" · ") || entry.label || entry.scenario;
}
