// The class that gives a frame its colour. The colours are in crates/view/src/flamegraph/palette.rs.

import { KINDS, type Colours, type Frame, type Tree } from "./tree.ts";

/** A colour of the legend: its class, what it stands for, and how much of the self weight has it. */
export interface LegendEntry {
  className: string;
  name: string;
  /** Absent where a colour tells of changes. */
  weight?: number;
}

/** From which share of the whole on a change has the strength 1, 2 or 3. As in palette.rs. */
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

function changeClass(share: number): string {
  const strength = STRENGTHS.filter((least) => Math.abs(share) >= least).length;
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
    if (this.colours === "difference") return changeClass(this.tree.change(node));
    const shade = frame.shade ? ` s${frame.shade}` : "";
    return `${this.hue(frame)}${shade}${this.isQuiet(frame) ? " q" : ""}`;
  }

  /** Whether a frame steps back, because it is not owned and others are. */
  isQuiet(frame: Frame): boolean {
    return this.colours !== "difference" && this.tree.hasOwned && !frame.owned && frame.kind !== "group";
  }

  private hue(frame: Frame): string {
    if (frame.kind === "group") return "group";
    if (this.colours === "module") return this.modules.get(frame.module) ?? "mx";
    return frame.owned ? "owned" : frame.kind;
  }

  /** The colours that occur, with their shares of the self weight. */
  legend(): LegendEntry[] {
    if (this.colours === "difference") return CHANGES.map(([className, name]) => ({ className, name }));
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
