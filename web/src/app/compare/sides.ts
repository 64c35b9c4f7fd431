// The two sides of a comparison: what of which capture, and what their weights are multiplied by to be comparable.

import { computed } from "@preact/signals";
import { weightOf } from "../../profile/capture.ts";
import type { CaptureEntry } from "../../profile/columns.ts";
import type { Picked, View } from "../../profile/address.ts";
import { selectsSteps, type StepClass } from "../../profile/steps.ts";
import type { Weighing } from "../../worker/flame.ts";
import { captureName } from "../capture_name.ts";
import { against, base, capture, manifest, selection, transforms, view, weight } from "../state.ts";

/** One side. */
export interface Side {
  /** What the page calls it: `after` or `before`. */
  role: "after" | "before";
  capture: number;
  entry: CaptureEntry;
  selection: Picked;
}

/** What of a selection has a meaning in another capture: rows and times have none. */
function transferable({ stepClass, scopes }: Picked): Picked {
  return { ...(stepClass ? { stepClass } : {}), ...(scopes ? { scopes } : {}) };
}

/** Both sides. Unless the reader chose them, the capture that comes first is the one before. */
const sides = computed<{ after: Side; before: Side } | undefined>(() => {
  const { captures } = manifest.value;
  if (base.value === undefined || !captures[capture.value] || !captures[base.value]) return undefined;
  const own = { capture: capture.value, entry: captures[capture.value], selection: selection.value };
  const other = { capture: base.value, entry: captures[base.value], selection: against.value ?? transferable(selection.value) };
  const isSwapped = view.value.base === undefined && other.capture > own.capture;
  const [after, before] = isSwapped ? [other, own] : [own, other];
  return { after: { role: "after", ...after }, before: { role: "before", ...before } };
});

export const after = computed(() => sides.value?.after);
export const before = computed(() => sides.value?.before);

/** The part of the address that shows these selections of the sides as they are now. */
export function shown(change: { after?: Picked; before?: Picked }): Partial<View> {
  const { after, before } = sides.value!;
  return { capture: after.capture, base: before.capture, selection: change.after ?? after.selection, against: change.before ?? before.selection, zoom: "" };
}

const SAID: Record<StepClass, string> = { slow: "slow steps", typical: "typical steps", stall: "stalls", lower: "lower level", upper: "upper level" };

/** The names of both sides: only what tells them apart. */
export function namesOf(one: Side, other: Side): [string, string] {
  const of = (side: Side, also: Side): string => {
    const steps = side.selection.stepClass ? SAID[side.selection.stepClass] : selectsSteps(side.selection) ? "selected steps" : side.selection.from !== undefined ? "selected time" : "";
    const capture = side.capture === also.capture ? "" : captureName(side.entry, [side.entry, also.entry]);
    return [capture, steps].filter(Boolean).join(": ") || captureName(side.entry, manifest.value.captures);
  };
  return [of(one, other), of(other, one)];
}

/** What a side weighs. Without a selection of steps all steps count, so that both sides are per step. */
export function weighingOf({ capture, entry, selection }: Side, isPerStep: boolean): Weighing {
  const { weight: kind, event } = weightOf(weight.value, entry);
  const steps: Picked = isPerStep && !selectsSteps(selection) ? { steps: [[0, (entry.tables["steps"] ?? 1) - 1]] } : {};
  return { selection: { capture, ...selection, ...steps }, weight: kind, event, transforms: transforms.value, states: entry.states };
}
