// What the palette finds beside commands: captures, sections and tables, functions, threads, steps, transforms.

import { TRANSFORMS, type Transform } from "../profile/address.ts";
import type { Table } from "../profile/columns.ts";
import { rankedFunctions } from "../profile/function_rank.ts";
import { threadNames } from "../profile/lanes.ts";
import { exactly } from "../search.ts";
import { grouped } from "../units.ts";
import { captureName } from "./capture_name.ts";
import type { Command } from "./commands.ts";
import { weighing } from "./flame/asked.ts";
import { sections } from "./links.ts";
import { capture, client, entry, go, goToCapture, manifest, select, transform } from "./state.ts";

/** Entries of each kind. */
const MOST = 20;

function wordsOf(typed: string): string[] {
  return typed.toLowerCase().split(/\s+/).filter(Boolean);
}

function fits(text: string, words: string[]): boolean {
  const lower = text.toLowerCase();
  return words.every((word) => lower.includes(word));
}

export function findCaptures(typed: string): Command[] {
  const { captures } = manifest.value;
  if (captures.length < 2) return [];
  const words = wordsOf(typed);
  return captures
    .map((entry, index) => ({ title: captureName(entry, captures), group: "Captures", run: () => goToCapture(index) }))
    .filter(({ title }) => fits(`capture ${title}`, words))
    .slice(0, MOST);
}

/** Sections, and tables by their titles. */
export function findTables(typed: string): Command[] {
  const words = wordsOf(typed);
  if (words.length === 0) return [];
  const found: Command[] = [];
  for (const { section, within } of sections.value.values()) {
    const path = [...within, section].map(({ title }) => title).join(" · ");
    const add = (title: string, place: string, detail: string) => {
      if (found.length < MOST && fits(`table ${title} ${detail}`, words)) found.push({ title, group: "Tables", detail, run: () => go({ screen: "tables", place, filter: "", sort: "" }) });
    };
    add(section.title, section.anchor, within.map(({ title }) => title).join(" · "));
    for (const block of section.blocks) {
      if ("table" in block && block.table.title) add(block.table.title, `${section.anchor}/${block.table.name}`, path);
    }
  }
  return found;
}

/** `step 120` selects a step. */
export function findSteps(typed: string): Command[] {
  const [, digits] = /^\s*(?:go to )?step\s+(\d{1,9})\s*$/i.exec(typed) ?? [];
  const count = entry.value?.tables["steps"] ?? 0;
  const row = Number(digits);
  if (digits === undefined || row >= count) return [];
  return [
    {
      title: `Select step ${grouped(row)}`,
      group: "Steps",
      run: () => go({ screen: "explore", selection: { steps: [[row, row]] } }),
    },
  ];
}

let held: { capture: number; rows: number; functions: Promise<string[]>; threads: Promise<string[]> } | undefined;

/** Names of the shown capture, each once. */
function names(): { functions: Promise<string[]>; threads: Promise<string[]> } {
  const rows = entry.value?.tables["frames"] ?? 0;
  if (held?.capture !== capture.value || held.rows !== rows) {
    const read = (name: string, names: (table: Table) => string[]) => {
      const has = (entry.value?.tables[name] ?? 0) > 0;
      return has ? client().ask("table", { capture: capture.value, name }).then(names) : Promise.resolve<string[]>([]);
    };
    held = { capture: capture.value, rows, functions: weightsByName().then((weights) => read("frames", (table) => rankedFunctions(table, weights))), threads: read("threads", threadNames) };
  }
  return held;
}

/** The CPU time of each function of the shown capture. */
async function weightsByName(): Promise<Map<string, number>> {
  const { states } = weighing.peek();
  const { event = 0 } = entry.peek() ?? {};
  try {
    const table = await client().ask("functionTable", { selection: { capture: capture.peek() }, weight: "cpu", event, transforms: [], states });
    const { names } = await client().ask("functions", { capture: capture.peek(), states, count: table.functionCount });
    return new Map(Array.from(table.functions, (of, row) => [names[of], table.total[row]]));
  } catch {
    // Without weights, names are found nevertheless.
    return new Map();
  }
}

const VERBS: Partial<Record<string, Transform["kind"]>> = Object.fromEntries(TRANSFORMS.filter((kind) => kind !== "owned" && kind !== "collapse").map((kind) => [kind, kind]));

/** Functions; after `focus`, `drop`, `merge` or `recursion`, that transform of them. */
export async function findFunctions(typed: string): Promise<Command[]> {
  if (manifest.value.captures.length === 0) return [];
  const words = wordsOf(typed);
  const kind = VERBS[words[0] ?? ""];
  if (kind) words.shift();
  if (words.length === 0 || words.join("").length < 2) return [];
  const found: string[] = [];
  for (const name of await names().functions) {
    if (fits(name, words)) found.push(name);
    if (found.length >= MOST) break;
  }
  return found.map((name) => ({
    title: name,
    group: kind ? kind[0].toUpperCase() + kind.slice(1) : "Functions",
    run: () => (kind ? (go({ screen: "explore" }), transform({ kind, name })) : go({ screen: "explore", function: name, search: exactly(name) })),
  }));
}

export async function findThreads(typed: string): Promise<Command[]> {
  const words = wordsOf(typed);
  if (words.length === 0 || manifest.value.captures.length === 0) return [];
  const found: Command[] = [];
  (await names().threads).forEach((name, row) => {
    if (found.length < MOST && fits(`thread ${name}`, words)) {
      found.push({ title: name, group: "Threads", run: () => (go({ screen: "explore" }), select({ threads: [row] })) });
    }
  });
  return found;
}
