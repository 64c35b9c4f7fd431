// What the page shows: one view, as signals, in step with the hash and the browser's history.

import { batch, computed, signal, type ReadonlySignal } from "@preact/signals";
import type { Client } from "../data/client.ts";
import { hashOf, START, viewOf, type Picked, type Screen, type Span, type Transform, type View } from "../profile/address.ts";
import type { CaptureEntry, Manifest } from "../profile/columns.ts";
import { EMPTY } from "../profile/document.ts";
import type { Selection } from "../worker/queries.ts";

/** What the page was made from. Grows while a recording is live. */
export const manifest = signal<Manifest>({ version: 1, title: "", document: EMPTY, captures: [], live: false });

let asks: Client | undefined;

/** Asks the worker. */
export function client(): Client {
  if (!asks) throw new Error("the page has not started");
  return asks;
}

/** All that the hash holds. */
const current = signal<View>(START);
export const view: ReadonlySignal<View> = current;

/** One part of the view, which changes only when that part does. */
function part<Key extends keyof View>(key: Key): ReadonlySignal<View[Key]> {
  return computed(() => current.value[key]);
}

export const screen = part("screen");
export const selection = part("selection");
export const against = part("against");
export const span = part("span");
export const last = part("last");
export const laneSort = part("laneSort");
export const closed = part("closed");
export const idleShown = part("idleShown");
export const hidden = part("hidden");
export const functionSort = part("functionSort");
export const pane = part("pane");
export const weight = part("weight");
export const order = part("order");
export const inverted = part("inverted");
export const startUp = part("startUp");
export const transforms = part("transforms");
export const chosenFunction = part("function");
export const at = part("at");
export const zoom = part("zoom");
export const widths = part("widths");
export const source = part("source");
export const instructions = part("instructions");
export const search = part("search");
export const place = part("place");
export const filter = part("filter");
export const sort = part("sort");

/** Index of the capture. If the hash names none, or one that is not there: the first of the steady phase. */
export const capture = computed(() => captureOf(manifest.value.captures, current.value));
export const entry = computed<CaptureEntry | undefined>(() => manifest.value.captures[capture.value]);
/** Whether the shown capture has times, or gets some. Stacks of a file have none. */
export const hasTime = computed(() => (entry.value?.duration ?? 0) > 0 || manifest.value.live);
/** The capture to compare with: as chosen, else another variant of the same scenario and phase, else another run of it, else another scenario. */
export const base = computed(() => baseOf(manifest.value.captures, capture.value, current.value.base));
/** Counts how often rows of a live recording have arrived. What depends on rows alone asks again. */
export const grown = signal(0);

/** The time up to which all rows of a live recording are known; `undefined` for finished captures. */
export const known = signal<number | undefined>(undefined);

/** The last seconds of a live recording that are known, if only these are shown. */
export const lastPart = computed<Span | undefined>(() => {
  if (last.value === undefined) return undefined;
  const until = entry.value?.duration ?? 0;
  // At the start of a recording, the part waits to be filled.
  const to = Math.min(until, Math.max(known.value ?? until, last.value));
  return { from: Math.max(0, to - last.value), to };
});

/** What queries take. The last seconds of a live recording move with its end, unless a time is selected. */
export const selected = computed<Selection>(() => ({ capture: capture.value, ...lastPart.value, ...selection.value }));

/** What the pointer is at, for other components to mark. Not in the hash. */
export const hovered = signal<{ time?: number; step?: number; lane?: number; function?: string }>({});

/** Whether there is another capture, or other steps of this one, to compare with. */
export const comparable = computed(() => base.value !== undefined || screen.value === "compare");

function captureOf(captures: CaptureEntry[], { capture }: View): number {
  if (capture >= 0 && capture < captures.length) return capture;
  return Math.max(0, captures.findIndex(({ phase }) => phase === "steady"));
}

function baseOf(captures: CaptureEntry[], candidate: number, chosen: number | undefined): number | undefined {
  if (chosen !== undefined && chosen < captures.length) return chosen;
  const { scenario, phase, variant } = captures[candidate] ?? {};
  const find = (isAlike: (entry: CaptureEntry) => boolean) => captures.findIndex((entry, index) => index !== candidate && isAlike(entry));
  const isOfScenario = (entry: CaptureEntry) => entry.scenario === scenario && entry.phase === phase;
  const alike = [find((entry) => isOfScenario(entry) && entry.variant !== variant), find(isOfScenario), find((entry) => entry.phase === phase), find(() => true)];
  return alike.find((index) => index >= 0);
}

// Changes

/** Shows something else; back in the browser returns to what was shown before. */
export function go(change: Partial<View>): void {
  show(change);
  write("new");
}

/** Adjusts what is shown, as while dragging or typing; back does not stop at it. */
export function adjust(change: Partial<View>): void {
  show(change);
  clearTimeout(pending);
  // Browsers refuse more than some hundred changes of the address in half a minute.
  pending = setTimeout(() => write("same"), 250);
}

/** Selects; parts that are `undefined` are taken out of the selection. */
export function select(change: { [Key in keyof Picked]: Picked[Key] | undefined }): void {
  go({ selection: changed(change) });
}

/** Like `select`, while the pointer moves. */
export function adjustSelection(change: { [Key in keyof Picked]: Picked[Key] | undefined }): void {
  adjust({ selection: changed(change) });
}

export function clearSelection(): void {
  go({ selection: {}, last: undefined });
}

/** Goes to another capture. Rows of its tables are others, so the selection by rows ends. */
export function goToCapture(index: number): void {
  go({ capture: index, base: undefined, selection: {}, against: undefined, span: undefined, at: undefined, zoom: "" });
}

export function goToScreen(screen: Screen): void {
  go({ screen });
}

/** Opens the comparison of some steps of this capture with others of the same. */
export function goToCompare(candidate: Picked, against: Picked, more: Partial<View> = {}): void {
  go({ screen: "compare", base: capture.value, selection: candidate, against, zoom: "", ...more });
}

/** Adds a transform to the end of those that are applied. */
export function transform(added: Transform): void {
  go({ transforms: [...transforms.value, added], zoom: "" });
}

/** Takes one transform away; those after it stay. */
export function undoTransform(index: number): void {
  go({ transforms: transforms.value.filter((_, at) => at !== index), zoom: "" });
}

/** The hash of a changed view, for links. */
export function link(change: Partial<View>): string {
  return hashOf({ ...current.value, ...change });
}

/** The hash of another place, from the start: for links that lead away from what is shown. */
export function linkTo(change: Partial<View>): string {
  return hashOf({ ...START, ...change });
}

function changed(change: { [Key in keyof Picked]: Picked[Key] | undefined }): Picked {
  const entries = Object.entries({ ...selection.value, ...change });
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined)) as Picked;
}

// The hash

let pending: ReturnType<typeof setTimeout> | undefined;

/** Parts that are equal keep their identity, so that what depends on them stays as it is. */
function show(change: Partial<View>): void {
  const before = current.peek();
  const kept = Object.entries(change).filter(([key, value]) => JSON.stringify(before[key as keyof View]) !== JSON.stringify(value));
  if (kept.length > 0) batch(() => (current.value = { ...before, ...Object.fromEntries(kept) }));
}

function write(entry: "new" | "same"): void {
  clearTimeout(pending);
  pending = undefined;
  const hash = hashOf(current.peek());
  if (hash === location.hash) return;
  try {
    if (entry === "new") history.pushState(null, "", hash);
    else history.replaceState(null, "", hash);
  } catch {
    // Sandboxed frames have no address to write. Only the link is lost.
  }
}

function read(): void {
  clearTimeout(pending);
  show(viewOf(location.hash));
}

/** Takes what the page was made from, reads the hash, and follows it. */
export function start(given: Manifest, worker: Client): void {
  manifest.value = given;
  asks = worker;
  read();
  addEventListener("popstate", read);
  addEventListener("hashchange", read);
}
