// Colours of frames in pictures: by kind of code, by module, or by what changed.

import palette from "../palette.json";
import { changeClass } from "../colour.ts";
import { NONE } from "../profile/call_tree.ts";
import type { Flame } from "../profile/flame.ts";
import { KINDS, type Colours, type Verdict } from "../tree.ts";
import { ink, mixed } from "./ink.ts";
import type { Ink } from "./surface.ts";

/** Facts on the functions that a tree names by index. */
export interface FrameColours {
  names: readonly string[];
  modules: readonly string[];
  kinds: Uint8Array;
  owned: Uint8Array;
  hasOwned: boolean;
}

/** Number of modules with a colour of their own. As in palette.rs. */
const COLOURED_MODULES = 6;

/** The ink of a class of frames. */
export function classInk(name: string, isDark: boolean): Ink {
  const colours: Record<string, string> = palette[isDark ? "dark" : "light"];
  return ink(colours[name] ?? colours["unknown"]);
}

/** A legend's colour and what it stands for. */
export interface LegendLine {
  ink: Ink;
  name: string;
}

/** The ink of each function. Three shades, chosen by the name, separate neighbours; what is not owned is paler, if anything is owned. */
export function functionInks(functions: FrameColours, colours: Colours, modules: readonly string[], isDark: boolean): Uint32Array {
  const ground = classInk("ground", isDark);
  const inks = new Uint32Array(functions.names.length);
  for (let index = 0; index < inks.length; index++) {
    const isGroup = KINDS[functions.kinds[index]] === "group";
    const quiet = functions.hasOwned && !functions.owned[index] && !isGroup ? "q." : "";
    const top = classInk(quiet + hue(functions, index, colours, modules), isDark);
    inks[index] = mixed(ground, top, 1 - shadeOf(functions.names[index]) * (isDark ? 0.08 : 0.12));
  }
  return inks;
}

function hue({ modules, kinds, owned }: FrameColours, index: number, colours: Colours, coloured: readonly string[]): string {
  const kind = KINDS[kinds[index]] ?? "unknown";
  if (kind === "group") return "group";
  if (colours !== "module") return owned[index] ? "owned" : kind;
  const rank = coloured.indexOf(modules[index]);
  return rank < 0 ? "mx" : `m${rank}`;
}

/** The modules with the largest self weight in a tree, heaviest first. */
export function heaviestModules(flame: Flame, functions: FrameColours): string[] {
  const weights = new Map<string, number>();
  for (let node = 1; node < flame.size; node++) {
    const module = functions.modules[flame.functions[node]];
    if (module && flame.own[node] > 0) weights.set(module, (weights.get(module) ?? 0) + flame.own[node]);
  }
  return [...weights].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).slice(0, COLOURED_MODULES).map(([module]) => module);
}

/** The ink of each node of a difference. `verdicts` are by function. */
export function changeInks(flame: Flame, isDark: boolean, verdicts?: readonly (Verdict | undefined)[]): Uint32Array {
  const { after, before } = flame.sides!;
  const whole = Math.max(after[0], before[0]) || 1;
  const inks = new Uint32Array(flame.size);
  for (let node = 0; node < flame.size; node++) {
    const of = flame.functions[node];
    const verdict = of === NONE ? undefined : verdicts?.[of];
    inks[node] = classInk(changeClass((after[node] - before[node]) / whole, verdict), isDark);
  }
  return inks;
}

/** What the colours of a tree stand for. */
export function legendOf(functions: FrameColours, flame: Flame, colours: Colours, modules: readonly string[], isDark: boolean): LegendLine[] {
  const used = new Set<string>();
  for (let node = 1; node < flame.size; node++) used.add(hue(functions, flame.functions[node], colours, modules));
  const names: [string, string][] =
    colours === "module"
      ? [...modules.map((module, rank): [string, string] => [`m${rank}`, module]), ["mx", "other modules"]]
      : ["owned", ...KINDS].map((kind) => [kind, kind === "group" ? "states and threads" : kind]);
  const quiet = (name: string) => (functions.hasOwned && colours !== "module" && name !== "owned" && name !== "group" ? "q." : "");
  return names.filter(([hue]) => used.has(hue)).map(([hue, name]) => ({ ink: classInk(quiet(hue) + hue, isDark), name }));
}

/** FNV-1a of the name's UTF-8, as in palette.rs, so that a function has one shade in every picture. */
function shadeOf(name: string): number {
  let hash = 0x811c9dc5;
  if (/^[\x00-\x7f]*$/.test(name)) {
    for (let at = 0; at < name.length; at++) hash = Math.imul(hash ^ name.charCodeAt(at), 0x01000193);
  } else {
    for (const byte of new TextEncoder().encode(name)) hash = Math.imul(hash ^ byte, 0x01000193);
  }
  return ((hash >>> 0) >>> 16) % 3;
}
