// Colours of the timeline. Those of states are of Okabe and Ito, so that they differ for all eyes; states also differ in height, and in their
// labels where these have room.

import { faded, ink, mixed } from "./ink.ts";
import type { Ink } from "./surface.ts";

export interface Palette {
  ground: Ink;
  panel: Ink;
  raised: Ink;
  text: Ink;
  soft: Ink;
  line: Ink;
  strongLine: Ink;
  accent: Ink;
  selected: Ink;
  critical: Ink;
  /** On a label of a state. */
  stateText: Ink;
  /** By state. */
  states: Ink[];
  /** The line within a runnable interval. */
  runnableMark: Ink;
  /** Of threads on a CPU, and of scopes: by a number. */
  series: Ink[];
  seriesText: Ink;
  isDark: boolean;
}

/** By the name of a state: its colour and how strong it is. What runs or waits for a CPU stands out. */
const STATES: Record<string, [colour: string, strength: number]> = {
  running: ["#009e73", 1],
  preempted: ["#e69f00", 1],
  woken: ["#e69f00", 1],
  lock: ["#d55e00", 0.72],
  condition: ["#cc79a7", 0.5],
  sleep: ["#8a94a3", 0.3],
  file: ["#56b4e9", 0.75],
  network: ["#0072b2", 0.55],
  page_fault: ["#c9b400", 0.75],
  other: ["#8a94a3", 0.42],
  no_stack: ["#8a94a3", 0.2],
  unknown: ["#8a94a3", 0.1],
};

const SERIES = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#7f7f2a", "#6a51a3", "#2f6f6f", "#a05a2c"];

/** Reads the colours of the page; `states` are the names of the states in tiles. */
export function readPalette(element: Element, states: string[], isDark: boolean): Palette {
  const style = getComputedStyle(element);
  const variable = (name: string, otherwise: string) => {
    const value = style.getPropertyValue(name).trim();
    return ink(/^#[0-9a-f]{3,8}$/i.test(value) ? value : otherwise);
  };
  const ground = variable("--ground", "#ffffff");
  const tint = ([colour, strength]: [string, number]) => mixed(ground, ink(colour), isDark ? Math.min(1, strength * 0.9 + 0.05) : strength);
  return {
    ground,
    panel: variable("--panel", "#f6f7f9"),
    raised: variable("--raised", "#eef0f4"),
    text: variable("--text", "#1a1e24"),
    soft: variable("--soft", "#545d69"),
    line: variable("--line", "#dde1e7"),
    strongLine: variable("--strong-line", "#b9c0cb"),
    accent: variable("--accent", "#0b5cad"),
    selected: variable("--selected", "#dbe8fa"),
    critical: variable("--critical", "#d55e00"),
    stateText: variable("--text", "#1a1e24"),
    states: states.map((name) => tint(STATES[name] ?? STATES["other"])),
    runnableMark: faded(isDark ? 0x14171cff : 0x5a3c00ff, 1),
    series: SERIES.map((colour) => mixed(ground, ink(colour), isDark ? 0.55 : 0.5)),
    seriesText: variable("--text", "#1a1e24"),
    isDark,
  };
}

/** A colour of a series, the same for the same number. */
export function seriesInk({ series }: Palette, number: number): Ink {
  return series[Math.abs(Math.imul(number + 1, 0x9e3779b1) >>> 8) % series.length];
}
