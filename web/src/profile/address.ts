// The hash of the page: `#explore?capture=0&t=0-5000000&focus=gz::sim::Step`. It holds all that the page shows, so that a
// link leads back to it, also in the single file. Reading never throws: what has no meaning is left out.

import type { Selection } from "../worker/queries.ts";
import type { Widths } from "./difference.ts";
import { SORTS, type Sort } from "./lanes.ts";
import { STEP_CLASSES } from "./steps.ts";

export const SCREENS = ["verdict", "explore", "compare", "tables"] as const;
export type Screen = (typeof SCREENS)[number];

/** The panes of the screen Explore. */
export const PANES = ["flame", "functions", "tree", "source"] as const;
export type Pane = (typeof PANES)[number];

/** Orders of siblings in a flame graph: the heaviest first, by function name, or as they ran. */
export const ORDERS = ["left", "name", "time"] as const;
export type Order = (typeof ORDERS)[number];

/**
 * How call trees are changed before they are shown, one after the other.
 * `focus`: only stacks with this function, from it on. `path`: only what is below one call path.
 * `drop`: no stacks with the function. `merge`: its cost goes to its callers.
 * `collapse`: each run of frames of this module becomes one. `recursion`: calls of this function within itself become one.
 * `owned`: frames that are not owned go to their callers; it has no name.
 */
export const TRANSFORMS = ["focus", "path", "drop", "merge", "collapse", "recursion", "owned"] as const;
export interface Transform {
  kind: (typeof TRANSFORMS)[number];
  /** A function; for `collapse` a module; for `path` its hash, a dot and the function; empty for `owned`. */
  name: string;
}

/** Columns that the functions are sorted by. */
export const FUNCTION_SORTS = ["self", "total", "attributed", "name", "module"] as const;
export type FunctionSort = (typeof FUNCTION_SORTS)[number];

/** Evidence over the lanes that can be hidden. */
export const EVIDENCE = ["path", "wakeups", "samples"] as const;
export type Evidence = (typeof EVIDENCE)[number];

/** Whose weights give the widths of a differential flame graph. */
const WIDTHS = ["larger", "after", "before"] as const satisfies readonly Widths[];

/** What of a capture is selected. Parts that are missing limit nothing. */
export type Picked = Omit<Selection, "capture">;

/** A range of time in nanoseconds since the capture's first event. */
export interface Span {
  from: number;
  to: number;
}

/** All that the page shows. */
export interface View {
  /** Widths of a differential flame graph. */
  widths: Widths;
  screen: Screen;
  /** Index of the capture in the manifest; negative for the one that opens by itself. */
  capture: number;
  /** The capture that it is compared with. */
  base: number | undefined;
  selection: Picked;
  /** What is selected of the capture that it is compared with, where that is something else. */
  against: Picked | undefined;
  /** The part of the recording that the timeline shows; all of it if absent. */
  span: Span | undefined;
  /** The last nanoseconds of a live recording, which the selection follows. */
  last: number | undefined;
  /** What the timeline's lanes are sorted by. */
  laneSort: Sort;
  /** Headings of the timeline that are closed, and those whose idle threads are shown. */
  closed: string[];
  idleShown: string[];
  /** What the timeline does not show over its lanes. */
  hidden: Evidence[];
  /** What the functions are sorted by. */
  functionSort: FunctionSort;
  pane: Pane;
  /** What widths stand for: `cpu`, `offcpu`, `wall`, or another event of the capture as `event-2`. */
  weight: string;
  order: Order;
  /** Leaves at the root. */
  inverted: boolean;
  /** Whether callers that all stacks share, such as start-up code, are shown. */
  startUp: boolean;
  transforms: Transform[];
  /** The chosen function. */
  function: string;
  /** The chosen point of the timeline: a row of `threads` (or `-1 - cpu`) and a time. */
  at: { lane: number; time: number } | undefined;
  /** The zoomed frame of a flame graph, as its drawing code writes it. */
  zoom: string;
  /** A source file and a line. */
  source: { file: string; line: number } | undefined;
  /** Whether instructions are shown beside the source. */
  instructions: boolean;
  /** Pattern that is highlighted. */
  search: string;
  /** Anchor of a section of the tables. */
  place: string;
  /** Filter of the table at `place`. */
  filter: string;
  /** The column that the table at `place` is sorted by, with `-` before it for the largest first. */
  sort: string;
}

export const START: View = {
  widths: "larger",
  screen: "verdict",
  capture: -1,
  base: undefined,
  selection: {},
  against: undefined,
  span: undefined,
  last: undefined,
  laneSort: "cpu",
  closed: [],
  idleShown: [],
  hidden: [],
  functionSort: "self",
  pane: "flame",
  weight: "cpu",
  order: "left",
  inverted: false,
  startUp: false,
  transforms: [],
  function: "",
  at: undefined,
  zoom: "",
  source: undefined,
  instructions: false,
  search: "",
  place: "",
  filter: "",
  sort: "",
};

/** Values longer than this stay out of the hash: browsers cut long addresses. */
export const LONGEST = 4000;
/** Lists are read up to this length, so that a hostile link makes no large selection. */
const MOST = 10_000;
/** Parameters beyond this many are not read. */
const MOST_PARAMETERS = 1000;

/** One parameter of the hash. Parameters that repeat keep their order. */
interface Field {
  write(view: View): [name: string, value: string][];
  /** Takes what it knows of; `undefined` if the value has no meaning. */
  read: Record<string, (value: string, view: View) => Partial<View> | undefined>;
}

/** A field of one parameter that is absent where `text` gives nothing. */
function one(name: string, text: (view: View) => string | undefined, read: Field["read"][string]): Field {
  return {
    write: (view) => {
      const value = text(view);
      return value ? [[name, value]] : [];
    },
    read: { [name]: read },
  };
}

/** One of some words, absent where it is as at the start. */
function choice<Key extends "pane" | "order" | "widths" | "laneSort" | "functionSort">(name: string, key: Key, words: readonly View[Key][]): Field {
  return one(
    name,
    ({ [key]: value }) => (value === START[key] ? undefined : value),
    (value) => {
      const known = word<string>(words, value);
      return known === undefined ? undefined : { [key]: known };
    },
  );
}

/** A list of names, each a parameter of its own. */
function named(name: string, key: "closed" | "idleShown"): Field {
  return {
    write: ({ [key]: names }) => names.map((value) => [name, value]),
    read: { [name]: (value, { [key]: names }) => ({ [key]: [...names, value] }) },
  };
}

/** What a view selects: of its capture, or of the one it is compared with. */
type Side = "selection" | "against";

/** A part of a selection. */
function picked<Key extends keyof Picked>(name: string, key: Key, text: (value: NonNullable<Picked[Key]>) => string, read: (value: string) => Picked[Key] | undefined, side: Side = "selection"): Field {
  return one(
    name,
    ({ [side]: selection }) => (selection?.[key] === undefined ? undefined : text(selection[key]!)),
    (value, { [side]: selection }) => {
      const part = read(value);
      return part === undefined ? undefined : { [side]: { ...selection, [key]: part } };
    },
  );
}

/** The parts of a selection that say when, each parameter with this prefix. */
function times(prefix: string, side: Side): Field[] {
  const range = (value: string) => {
    const times = span(value);
    return times && [times.from, times.to] as [number, number];
  };
  return [
    one(
      `${prefix}t`,
      ({ [side]: selection }) => (selection?.from === undefined || selection.to === undefined ? undefined : spanText({ from: selection.from, to: selection.to })),
      (value, { [side]: selection }) => {
        const times = span(value);
        return times && { [side]: { ...selection, ...times } };
      },
    ),
    picked(`${prefix}steps`, "steps", (steps) => steps.map(([first, last]) => `${first}-${last}`).join(","), (value) => {
      const ranges = value.split(",", MOST).map(range);
      return ranges.every((part) => part !== undefined) ? (ranges as [number, number][]) : undefined;
    }, side),
    picked(`${prefix}class`, "stepClass", String, (value) => word(STEP_CLASSES, value), side),
    picked(`${prefix}steptime`, "stepTime", ([from, to]) => spanText({ from, to }), range, side),
    picked(`${prefix}loop`, "loop", String, whole, side),
  ];
}

function word<const Word extends string>(words: readonly Word[], value: string): Word | undefined {
  return words.find((word) => word === value);
}

/** A whole number that is not negative; `undefined` for anything else. */
function whole(text: string): number | undefined {
  const value = /^\d{1,16}$/.test(text) ? Number(text) : NaN;
  return Number.isSafeInteger(value) ? value : undefined;
}

function signed(text: string): number | undefined {
  const value = whole(text.replace(/^-/, ""));
  return value !== undefined && text.startsWith("-") ? -value : value;
}

function listed(text: string): number[] | undefined {
  const parts = text.split(",", MOST).map(whole);
  return parts.every((part) => part !== undefined) ? (parts as number[]) : undefined;
}

/** `12-34`; the end is never before the start. */
function span(text: string): Span | undefined {
  const [from, to, ...more] = text.split("-").map(whole);
  return from === undefined || to === undefined || more.length > 0 || to < from ? undefined : { from, to };
}

const time = (value: number): string => String(Math.max(0, Math.round(value)));
const spanText = ({ from, to }: Span): string => `${time(from)}-${time(Math.max(from, to))}`;

const FIELDS: Field[] = [
  one("capture", ({ capture }) => (capture < 0 ? undefined : String(capture)), (value) => numbered("capture", whole(value))),
  one("base", ({ base }) => (base === undefined ? undefined : String(base)), (value) => numbered("base", whole(value))),
  ...times("", "selection"),
  ...times("vs-", "against"),
  picked("threads", "threads", String, listed),
  picked("processes", "processes", String, listed),
  picked("states", "states", String, listed),
  {
    write: ({ selection }) => (selection.scopes ?? []).map((scope) => ["scope", scope]),
    read: { scope: (value, { selection }) => ({ selection: { ...selection, scopes: [...(selection.scopes ?? []), value] } }) },
  },
  one("view", ({ span }) => span && spanText(span), (value) => {
    const times = span(value);
    return times && { span: times };
  }),
  one("last", ({ last }) => (last ? time(last) : undefined), (value) => numbered("last", whole(value))),
  choice("lanes", "laneSort", SORTS),
  named("closed", "closed"),
  named("idle", "idleShown"),
  one("hide", ({ hidden }) => hidden.join(","), (value) => {
    const hidden = EVIDENCE.filter((name) => value.split(",").includes(name));
    return hidden.length > 0 ? { hidden } : undefined;
  }),
  choice("functions", "functionSort", FUNCTION_SORTS),
  choice("pane", "pane", PANES),
  one(
    "weight",
    ({ weight }) => (weight === START.weight ? undefined : weight),
    (value) => (/^[a-z]+(-\d{1,4})?$/.test(value) ? { weight: value } : undefined),
  ),
  choice("order", "order", ORDERS),
  choice("widths", "widths", WIDTHS),
  { write: ({ inverted }) => (inverted ? [["inverted", ""]] : []), read: { inverted: () => ({ inverted: true }) } },
  { write: ({ startUp }) => (startUp ? [["startup", ""]] : []), read: { startup: () => ({ startUp: true }) } },
  {
    write: ({ transforms }) => transforms.map(({ kind, name }) => [kind, name]),
    read: Object.fromEntries(
      TRANSFORMS.map((kind) => [kind, (name: string, { transforms }: View) => ({ transforms: [...transforms, { kind, name }] })]),
    ),
  },
  one("f", (view) => view.function, (value) => ({ function: value })),
  one("at", ({ at }) => at && `${at.lane},${time(at.time)}`, (value) => {
    const [lane, moment, ...more] = value.split(",").map(signed);
    return lane === undefined || moment === undefined || more.length > 0 ? undefined : { at: { lane, time: moment } };
  }),
  one("zoom", ({ zoom }) => zoom, (zoom) => ({ zoom })),
  one("source", ({ source }) => source && `${source.line},${source.file}`, (value) => {
    const comma = value.indexOf(",");
    const line = whole(value.slice(0, Math.max(0, comma)));
    return line === undefined || comma < 0 ? undefined : { source: { line, file: value.slice(comma + 1) } };
  }),
  { write: ({ instructions }) => (instructions ? [["instructions", ""]] : []), read: { instructions: () => ({ instructions: true }) } },
  one("s", ({ search }) => search, (search) => ({ search })),
  one("place", ({ place }) => place, (place) => ({ place })),
  one("filter", ({ filter }) => filter, (filter) => ({ filter })),
  one("sort", ({ sort }) => sort, (sort) => ({ sort })),
];

const READERS = new Map(FIELDS.flatMap(({ read }) => Object.entries(read)));

function numbered(name: "capture" | "base" | "last", value: number | undefined): Partial<View> | undefined {
  return value === undefined ? undefined : { [name]: value };
}

/** Colons, commas and slashes stay readable; they have no meaning in a hash. Halves of characters have no code. */
function encode(text: string): string {
  const whole = text.replace(/\p{Cs}/gu, "\ufffd");
  return encodeURIComponent(whole).replace(/%(3A|2C|2F|40|24)/g, (code) => decodeURIComponent(code));
}

/** Writes a view as a hash, with `#`. */
export function hashOf(view: View): string {
  const parameters = FIELDS.flatMap((field) => field.write(view))
    .filter(([, value]) => value.length <= LONGEST)
    .map(([name, value]) => (value ? `${name}=${encode(value)}` : name));
  return `#${view.screen}${parameters.length > 0 ? `?${parameters.join("&")}` : ""}`;
}

/** Reads a hash, with or without `#`. What it does not name is as at the start. */
export function viewOf(hash: string): View {
  const text = hash.replace(/^#/, "");
  const mark = text.indexOf("?");
  let view: View = { ...START, screen: word(SCREENS, mark < 0 ? text : text.slice(0, mark)) ?? START.screen };
  if (mark < 0) return view;
  let count = 0;
  for (const [name, value] of new URLSearchParams(text.slice(mark + 1))) {
    if (++count > MOST_PARAMETERS) break;
    if (value.length <= LONGEST) view = { ...view, ...READERS.get(name)?.(value, view) };
  }
  return view;
}
