// The variants of each scenario side by side: a row for each figure, a bar for each variant.

import { linkTo } from "../state.ts";
import { Name } from "../prose.tsx";
import { OWN_PREFIX } from "./changes.tsx";
import { grouped, type Rows } from "./rows.ts";

/** The section with the table. */
export const ANCHOR = "variants";

export function Variants({ rows }: { rows: Rows }) {
  const scenarios = grouped(rows.indices, (row) => [rows.text(row, "scenario"), rows.text(row, "phase")].filter(Boolean).join(" · "));
  return (
    <section aria-label="Variants side by side">
      <h3>
        Variants side by side
        <a class="more-link" href={linkTo({ screen: "tables", place: ANCHOR })}>
          As a table
        </a>
      </h3>
      <div class="sides">
        {[...scenarios].map(([scenario, of]) => (
          <Scenario key={scenario} name={scenario} rows={rows} of={of} />
        ))}
      </div>
    </section>
  );
}

function Scenario({ name, rows, of }: { name: string; rows: Rows; of: number[] }) {
  const variants = [...new Set(of.map((row) => rows.text(row, "variant")))];
  const metrics = grouped(of, (row) => rows.text(row, "metric"));
  return (
    <div class="side">
      <table>
        <thead>
          <tr>
            <th scope="col"><Name text={name} /></th>
            {variants.map((variant) => (
              <th key={variant} scope="col" class="num"><Name text={variant} /></th>
            ))}
          </tr>
        </thead>
        <tbody>
          {[...metrics].map(([metric, of]) => (
            <Figure key={metric} metric={metric} rows={rows} of={of} variants={variants} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface FigureProps {
  metric: string;
  rows: Rows;
  of: number[];
  variants: string[];
}

function Figure({ metric, rows, of, variants }: FigureProps) {
  const largest = Math.max(...of.map((row) => rows.number(row, "value") ?? 0));
  const unit = rows.text(of[0], "unit");
  return (
    <tr>
      <th scope="row">
        {metric.replace(OWN_PREFIX, "")} {/\/(s|step)$/.test(unit) && <small>{unit.replace(/^.*\//, "/")}</small>}
      </th>
      {variants.map((variant, place) => {
        const row = of.find((row) => rows.text(row, "variant") === variant);
        if (row === undefined) return <td key={variant} class="num soft">–</td>;
        const width = largest > 0 ? (100 * (rows.number(row, "value") ?? 0)) / largest : 0;
        const ofFirst = place > 0 && rows.shown(row, "of_first");
        const spread = rows.point(row, "low") && `${rows.point(row, "low")} to ${rows.point(row, "high")} in ${rows.shown(row, "runs")} runs`;
        return (
          <td key={variant} class="num" data-tip={[ofFirst && `${ofFirst} of ${variants[0]}`, spread].filter(Boolean).join("; ") || undefined}>
            {rows.point(row, "value")}
            {unit === "percent" && " %"}
            <i class="bar" style={{ width: `${width}%` }} />
          </td>
        );
      })}
    </tr>
  );
}
