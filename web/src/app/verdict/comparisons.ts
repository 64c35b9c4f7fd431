// The comparisons of a report: its sentence, its headline figures, its functions.

import type { DocumentSection, DocumentTable, ForestBlock } from "../../profile/document.ts";
import { report } from "../links.ts";
import { tableOf } from "./rows.ts";

export interface Comparison {
  /** What is compared, if the report compares several; else empty. */
  title: string;
  /** What changed and by how much, or the smallest change that the runs could have shown. */
  sentence: string;
  /** The section with the whole run's figures, and its table. */
  runs: { anchor: string; table: DocumentTable };
  /** The section with the functions, and the picture of their ratios. */
  functions: { anchor: string; block: ForestBlock } | undefined;
}

/** Anchor of the section in which a run's report compares its variants. */
const OF_RUN = "comparison";

/** All comparisons of the report, in order. */
export function comparisonsOf(): Comparison[] {
  const { sections, subtitle } = report.value;
  const ofRun = sections.find(({ anchor }) => anchor === OF_RUN);
  const within = ofRun ? ofRun.sections : sections;
  const sentence = ofRun ? (ofRun.notes[0]?.text ?? "") : subtitle;
  const only = comparisonIn(within, "", sentence);
  if (only) return [only];
  const sentences = within.find(({ blocks, notes }) => blocks.length === 0 && notes.length > 0)?.notes ?? [];
  return within.flatMap((section) => {
    const lead = `${section.title}: `;
    const own = sentences.find(({ text }) => text.startsWith(lead))?.text.slice(lead.length) ?? "";
    return comparisonIn(section.sections, section.title, own) ?? [];
  });
}

function comparisonIn(sections: DocumentSection[], title: string, sentence: string): Comparison | undefined {
  const runs = sections.find((section) => tableOf(section, "compare_runs"));
  if (!runs) return undefined;
  const functions = sections.find((section) => tableOf(section, "compare_attributed"));
  const block = functions?.blocks.find((block) => block.kind === "forest");
  return {
    title,
    sentence,
    runs: { anchor: runs.anchor, table: tableOf(runs, "compare_runs")! },
    functions: functions && block && { anchor: functions.anchor, block },
  };
}
