// Ratios and their intervals on one logarithmic axis, a row each. Verdicts differ in shape as well as in colour.

import { useMemo } from "preact/hooks";
import { numberOf, Reading, tone } from "../../profile/cells.ts";
import type { ForestBlock } from "../../profile/document.ts";
import { fit, formsOf } from "../../label.ts";
import { Name } from "../prose.tsx";
import { probability } from "../../units.ts";

/** Ratios beyond this factor stand at the end of the axis: what vanished would need an endless one. */
const FARTHEST = 16;

interface Estimate {
  name: string;
  ratio: number | null;
  low: number | null;
  high: number | null;
  presence: string;
  verdict: string;
  /** The adjusted p-value. */
  q: number | null;
  shown: string;
}

export function Forest({ block, id }: { block: ForestBlock; id: string }) {
  const { rows, left } = useMemo(() => estimates(block), [block]);
  if (rows.length === 0) return null;
  const qDoc = block.table.columns.find(({ name }) => name === "q")?.doc;
  const ends = rows.flatMap(({ ratio, low, high }) => [ratio, low, high]).filter((end): end is number => end !== null && end > 0);
  const farthest = Math.min(FARTHEST, Math.max(1.2, 1 + block.tolerance, ...ends, ...ends.map((end) => 1 / end)) * 1.08);
  const at = (ratio: number) => `${50 + 50 * Math.max(-1, Math.min(1, Math.log(ratio) / Math.log(farthest)))}%`;
  const ticks = [1 / 8, 1 / 4, 1 / 2, 1 / 1.5, 1 / 1.2, 1 / 1.1, 1, 1.1, 1.2, 1.5, 2, 4, 8].filter((tick) => Math.abs(Math.log(tick)) < Math.log(farthest) * 0.97);
  const spread = ticks.filter((tick) => tick === 1 || Math.abs(Math.log(tick)) / Math.log(farthest) > 0.22);
  const band = 1 + block.tolerance;
  return (
    <figure class="forest" id={id} aria-label={block.table.title}>
      <figcaption>
        <h4>{block.table.title}</h4>
        <span class="soft">
          after / before, log scale{block.tolerance > 0 && `; shaded: within ${Math.round(block.tolerance * 100)} %, treated as no change`}
        </span>
      </figcaption>
      <table>
        <tbody>
          {rows.map((row, index) => (
            <tr key={index}>
              <th scope="row" title={row.name}>
                <Name text={fit(formsOf(row.name), 44) ?? row.name} />
              </th>
              <td class="plot">
                <svg aria-hidden="true">
                  {block.tolerance > 0 && <rect class="band" x={at(1 / band)} width={`${parseFloat(at(band)) - parseFloat(at(1 / band))}%`} y="0" height="100%" />}
                  <line class="even" x1="50%" x2="50%" y1="0" y2="100%" />
                  {row.low !== null && row.high !== null && <line class={`interval ${tone(row.verdict) ?? ""}`} x1={at(Math.max(row.low, 1e-9))} x2={at(Math.max(row.high, 1e-9))} y1="50%" y2="50%" />}
                  <Point row={row} at={at} />
                </svg>
              </td>
              <td class="num">{row.shown}</td>
              <td class={`text ${tone(row.verdict) ?? "prose"}`}>{row.verdict}</td>
              <td class="num q soft" data-tip={row.q === null ? undefined : qDoc}>{row.q !== null && `q ${probability(row.q)}`}</td>
            </tr>
          ))}
          <tr class="axis" aria-hidden="true">
            <th />
            <td class="plot">
              <svg>
                {spread.map((tick) => (
                  <text key={tick} x={at(tick)} y="12" text-anchor="middle">
                    {tick === 1 ? "1" : tick < 1 ? `1/${Math.round(10 / tick) / 10}` : tick}
                  </text>
                ))}
              </svg>
            </td>
            <td />
            <td />
            <td />
          </tr>
        </tbody>
      </table>
      {left > 0 && <p class="soft">{left} more rows are in the table.</p>}
    </figure>
  );
}

/** A diamond is changed, a disc equivalent, a ring inconclusive, an arrow new or vanished. */
function Point({ row, at }: { row: Estimate; at: (ratio: number) => string }) {
  const x = row.ratio !== null && row.ratio > 0 ? at(row.ratio) : row.presence === "vanished" || row.ratio === 0 ? at(1e-9) : at(1e9);
  const isArrow = row.ratio === null || row.ratio === 0;
  const isChanged = tone(row.verdict) === "strong" || tone(row.verdict) === "alarm";
  const arrow = parseFloat(x) < 50 ? "M1 -5L-6 0L1 5z" : "M-1 -5L6 0L-1 5z";
  const shape = isArrow ? arrow : isChanged ? "M0 -5.5L5.5 0L0 5.5L-5.5 0z" : undefined;
  const inset = isArrow ? (parseFloat(x) < 50 ? 8 : -8) : 0;
  return (
    <svg class={`point ${tone(row.verdict) ?? ""}`} x={x} y="50%" overflow="visible">
      {shape ? <path d={shape} transform={`translate(${inset} 0)`} /> : <circle r="4" class={tone(row.verdict) === "faint" ? "ring" : ""} />}
    </svg>
  );
}

function estimates({ table, label, ratio, presence, verdict, most }: ForestBlock): { rows: Estimate[]; left: number } {
  const reading = new Reading(table);
  const column = (name: string) => table.columns.find((column) => column.name === name);
  const field = reading.fields.find((field) => field.column.name === ratio);
  const [names, ratios, presences, verdicts] = [column(label), column(ratio), column(presence), column(verdict)];
  if (!names || !ratios || !field) return { rows: [], left: 0 };
  const bound = (side: 0 | 1, row: number) => (ratios.bounds ? numberOf(table.columns[ratios.bounds[side]].values[row]) : null);
  const all = Array.from({ length: reading.rows }, (_, row): Estimate => {
    const said = presences?.values[row];
    return {
      name: String(names.values[row] ?? ""),
      ratio: numberOf(ratios.values[row]),
      low: bound(0, row),
      high: bound(1, row),
      presence: typeof said === "string" ? said : "",
      verdict: String(verdicts?.values[row] ?? ""),
      q: numberOf(column("q")?.values[row]),
      shown: ratios.values[row] === null ? String(said ?? "") : reading.text(field, row),
    };
  }).filter(({ ratio, presence }) => ratio !== null || presence !== "");
  return { rows: all.slice(0, most), left: Math.max(0, all.length - most) };
}
