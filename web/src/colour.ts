// The class that gives a frame its colour. The colours are in crates/view/src/flamegraph/palette.rs.

import { KINDS, type Colours, type Frame, type Tree, type Verdict } from "./tree.ts";

/** A colour of the legend: its class, what it stands for, and how much of the self weight has it. */
export interface LegendEntry {
  className: string;
  name: string;
  /** Absent in differences. */
  weight?: number;
  /** Number of frames that have it; present with verdicts. */
  count?: number;
}

/** The least share of the whole at which a change has strength 1, 2 or 3. As in palette.rs. */
const STRENGTHS = [0.002, 0.01, 0.05];

const CHANGES = [
  ["more3", "5 % of the whole more"],
  ["more2", "1 % more"],
  ["more1", "0.2 % more"],
  ["same", "the same"],
  ["less1", "0.2 % less"],
  ["less2", "1 % less"],
  ["less3", "5 % less"],
] as const;

/** As in palette.rs. */
const JUDGED = [
  ["more3", "+5 % of the whole"],
  ["more2", "+1 %"],
  ["more1", "+<1 %"],
  ["less1", "−<1 %"],
  ["less2", "−1 %"],
  ["less3", "−5 %"],
  ["even", "equivalent"],
  ["unsure", "inconclusive"],
] as const;

/** The class of a change by this share of the whole. A significant change is never grey, however small. */
export function changeClass(share: number, verdict: Verdict | undefined): string {
  if (verdict === "equivalent") return "even";
  if (verdict === "inconclusive") return "unsure";
  const known = verdict === "changed" ? 1 : 0;
  const strength = Math.max(known, STRENGTHS.filter((least) => Math.abs(share) >= least).length);
  return CHANGES[share > 0 ? 3 - strength : 3 + strength][0];
}

/** Gives frames of one tree their colours. */
export class Painter {
  readonly colours: Colours;
  private readonly tree: Tree;
  private readonly modules: Map<string, string>;

  constructor(tree: Tree, colours: Colours) {
    this.tree = tree;
    this.colours = colours;
    this.modules = new Map(tree.modules.map((module, rank) => [module, `m${rank}`]));
  }

  /** Classes of a node's rectangle. */
  classOf(node: number): string {
    const frame = this.tree.frameOf(node);
    if (this.colours === "difference") return this.changeOf(node) + this.presenceOf(node);
    const shade = frame.shade ? ` s${frame.shade}` : "";
    return `${this.hue(frame)}${shade}${this.isQuiet(frame) ? " q" : ""}`;
  }

  private changeOf(node: number): string {
    return changeClass(this.tree.change(node), this.tree.verdictOf(node));
  }

  /** Outlines frames that only one of two trees has. */
  private presenceOf(node: number): string {
    const only = this.tree.onlyIn(node);
    return only === undefined ? "" : only === this.tree.sides![0] ? " fresh" : " gone";
  }

  /** Whether a frame's label must be light on a dark background: its colour is near to that. */
  isDim(node: number): boolean {
    return this.colours === "difference" && !this.changeOf(node).endsWith("3");
  }

  /** Whether a frame is paler, because it is not owned and others are. */
  isQuiet(frame: Frame): boolean {
    return this.colours !== "difference" && this.tree.hasOwned && !frame.owned && frame.kind !== "group";
  }

  private differences(): LegendEntry[] {
    const { tree } = this;
    const classes = new Map<string, number>();
    const only = new Map<string, number>();
    for (let node = 0; node < tree.size; node++) {
      const [change, presence] = [this.changeOf(node), this.presenceOf(node)];
      classes.set(change, (classes.get(change) ?? 0) + 1);
      if (presence) only.set(presence, (only.get(presence) ?? 0) + 1);
    }
    const hasVerdicts = tree.size > 0 && tree.verdictOf(0) !== undefined;
    const colours: LegendEntry[] = hasVerdicts
      ? JUDGED.map(([className, name]) => ({ className, name, count: classes.get(className) ?? 0 }))
      : CHANGES.map(([className, name]) => ({ className, name }));
    const presence = ["fresh", "gone"].flatMap((mark, side) => {
      const count = only.get(` ${mark}`);
      return count && tree.sides ? [{ className: `even ${mark}`, name: `only in ${tree.sides[side].name}`, count }] : [];
    });
    return [...colours, ...presence];
  }

  private hue(frame: Frame): string {
    if (frame.kind === "group") return "group";
    if (this.colours === "module") return this.modules.get(frame.module) ?? "mx";
    return frame.owned ? "owned" : frame.kind;
  }

  /** The colours that occur, with their shares of the self weight. */
  legend(): LegendEntry[] {
    if (this.colours === "difference") return this.differences();
    const weights = new Map<string, number>();
    for (let node = 0; node < this.tree.size; node++) {
      const frame = this.tree.frameOf(node);
      if (frame.kind === "group") continue;
      const hue = this.hue(frame);
      weights.set(hue, (weights.get(hue) ?? 0) + this.tree.leafWeight(node));
    }
    const names: [string, string][] =
      this.colours === "kind"
        ? ["owned", ...KINDS].map((name) => [name, name])
        : [...this.tree.modules.map((module): [string, string] => [this.modules.get(module)!, module]), ["mx", "other"]];
    return names
      .filter(([hue]) => weights.has(hue))
      .map(([hue, name]) => {
        const quiet = this.colours === "kind" && this.tree.hasOwned && hue !== "owned" ? " q" : "";
        return { className: hue + quiet, name, weight: weights.get(hue)! };
      });
  }
}
