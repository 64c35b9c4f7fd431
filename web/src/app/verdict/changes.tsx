// What a comparison found: its sentence, the headline figures of both sides, the functions that changed.

import { tone } from "../../profile/cells.ts";
import { probability } from "../../units.ts";
import { Icon } from "../icons.tsx";
import { Name, Prose } from "../prose.tsx";
import { comparable, linkTo } from "../state.ts";
import { Forest } from "../tables/forest.tsx";
import type { Comparison } from "./comparisons.ts";
import { Rows } from "./rows.ts";

/** The figures that are shown here, in this order, after the reader's own. The tables have all. */
const FIGURES = ["rtf", "step.median", "step.p99", "flows.median", "flows.p99", "cpu", "wall", "rss.peak"];
const OWN = /^metric\..*\.(median|p99)$/;
export const OWN_PREFIX = /^metric\./;
/** Functions that are shown if none changed. */
const FEW = 3;
/** Functions that are shown at most. */
const MOST = 12;

export function Changes({ comparison }: { comparison: Comparison }) {
  const { title, sentence, runs, functions } = comparison;
  return (
    <section class="changed" aria-label={title ? `What changed: ${title}` : "What changed"}>
      <h3>
        What changed{title && <>: <Name text={title} /></>}
        <a class="more-link" href={linkTo({ screen: "tables", place: runs.anchor })}>
          All figures
        </a>
      </h3>
      {sentence && (
        <p class="sentence">
          <Prose text={sentence} />
        </p>
      )}
      <Figures rows={new Rows(runs.table)} />
      {functions && (
        <>
          <Forest block={{ ...functions.block, most: mostOf(functions.block.table) }} id={`${functions.anchor}/verdict`} />
          <p class="facts">
            <a href={linkTo({ screen: "tables", place: functions.anchor })}>All functions</a>
            {comparable.value && (
              <a href={linkTo({ screen: "compare" })}>
                Differential flame graph <Icon name="arrow" />
              </a>
            )}
          </p>
        </>
      )}
    </section>
  );
}

/** Those that changed come first. */
function mostOf(table: Comparison["runs"]["table"]): number {
  const verdicts = table.columns.find(({ name }) => name === "verdict")?.values ?? [];
  return Math.min(MOST, Math.max(FEW, verdicts.filter((verdict) => verdict === "changed").length));
}

function Figures({ rows }: { rows: Rows }) {
  const known = FIGURES.flatMap((name) => rows.indices.filter((row) => rows.text(row, "metric") === name));
  const own = rows.indices.filter((row) => OWN.test(rows.text(row, "metric")));
  const shown = [...own, ...known].filter((row) => rows.shown(row, "before") || rows.shown(row, "after"));
  if (shown.length === 0) return null;
  return (
    <table class="changes">
      <thead>
        <tr>
          <th scope="col">Figure</th>
          {["before", "after", "ratio", "verdict", "q"].map((name) => (
            <th key={name} scope="col" class={name === "verdict" ? "" : "num"} data-tip={rows.doc(name)}>
              {rows.header(name)}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {shown.map((row) => {
          const verdict = rows.text(row, "verdict");
          const q = rows.number(row, "q");
          return (
            <tr key={row}>
              <th scope="row">{rows.text(row, "metric").replace(OWN_PREFIX, "")}</th>
              <td class="num">{rows.shown(row, "before")}</td>
              <td class="num">{rows.shown(row, "after")}</td>
              <td class="num">{rows.shown(row, "ratio") && `×${rows.shown(row, "ratio")}`}</td>
              <td class={tone(verdict) ?? ""}>
                <span>{verdict}</span>
              </td>
              <td class="num soft">{q !== undefined && probability(q)}</td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}
