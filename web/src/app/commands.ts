// What the reader can do, each with its keys: the help and the palette are made from it.

import { computed, signal, type Signal } from "@preact/signals";
import { useEffect } from "preact/hooks";

export interface Command {
  title: string;
  /** Where the help and the palette list it. */
  group: string;
  /** Keys as in `KeyboardEvent.key`, with `Ctrl+`, `Alt+` and `Shift+` before those that are held: `g e`, `Ctrl+k`. */
  keys?: string[];
  /** More on it, beside the title. */
  detail?: string;
  run(): void;
}

/** Keys that a part of the screen has while it has the focus. */
export interface LocalKeys {
  title: string;
  group: string;
  keys: string[];
}

/** Finds commands by what was typed, such as one for each function. */
export type Finder = (typed: string) => Command[] | Promise<Command[]>;

const lists = signal<readonly Command[][]>([]);
const localLists = signal<readonly LocalKeys[][]>([]);
const finders = signal<readonly Finder[]>([]);

export const commands = computed<Command[]>(() => lists.value.flat());

export const localKeys = computed<LocalKeys[]>(() => localLists.value.flat());

/** Keeps an entry in a list while the component is shown. */
function useEntry<T>(list: Signal<readonly T[]>, entry: T): void {
  useEffect(() => {
    list.value = [...list.peek(), entry];
    return () => {
      list.value = list.peek().filter((other) => other !== entry);
    };
  }, [entry]);
}

/** Offers commands while the component is shown. The list must be the same one in each rendering (a constant, or `useMemo`). */
export function useCommands(list: Command[]): void {
  useEntry(lists, list);
}

/** Lists keys in the help while the component is shown. The list must be the same one in each rendering. */
export function useLocalKeys(list: LocalKeys[]): void {
  useEntry(localLists, list);
}

/** Offers commands that depend on what is typed into the palette. */
export function useFinder(finder: Finder): void {
  useEntry(finders, finder);
}

/**
 * Commands for what was typed: those whose title holds all words, then what finders find. Shows them as they are found: a
 * finder may wait for the worker.
 */
export function find(typed: string, show: (found: Command[]) => void): void {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  const fits = ({ title, group, detail }: Command) => {
    const text = `${title} ${group} ${detail ?? ""}`.toLowerCase();
    return words.every((word) => text.includes(word));
  };
  const own = commands.peek().filter(fits);
  const found: Command[][] = finders.peek().map(() => []);
  const showAll = () => show([...own, ...found.flat()]);
  showAll();
  finders.peek().forEach(async (finder, place) => {
    try {
      found[place] = await finder(typed);
    } catch {
      // What cannot be searched is not found.
    }
    if (found[place].length > 0) showAll();
  });
}

let held: string | undefined;
let heldAt = 0;

/** Whether keys go into a text that is being written. */
function isWriting(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}

/** The name of a key with those that are held. Shift is part of a character such as `?`. */
export function keyName(event: KeyboardEvent): string {
  const named = event.key.length > 1;
  const modifiers = [event.ctrlKey || event.metaKey ? "Ctrl" : "", event.altKey ? "Alt" : "", event.shiftKey && named ? "Shift" : ""];
  return [...modifiers.filter(Boolean), event.key].join("+");
}

/** Runs the command whose keys were pressed. A component that handled the key itself has prevented its default. */
export function onKey(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.isComposing) return;
  // What is open over the screen has the keys, and Escape closes it.
  if (document.querySelector("dialog[open]")) return;
  const name = keyName(event);
  if (isWriting(event.target) && !name.startsWith("Ctrl+")) return;
  // Two keys one after the other, as in `g e`.
  const pair = held !== undefined && event.timeStamp - heldAt < 1500 ? `${held} ${name}` : undefined;
  const all = commands.peek();
  const command = (pair && all.findLast(({ keys }) => keys?.includes(pair))) || all.findLast(({ keys }) => keys?.includes(name));
  held = command ? undefined : name;
  heldAt = event.timeStamp;
  if (!command) return;
  event.preventDefault();
  command.run();
}
