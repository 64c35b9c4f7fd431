// What the program keeps up with: a card for each scenario, its variants side by side.

import { Name, Prose } from "../prose.tsx";
import { linkTo } from "../state.ts";
import { captureIndex, grouped, placeOf, type Rows } from "./rows.ts";

export function Speeds({ rows }: { rows: Rows }) {
  const cards = grouped(rows.indices, (row) => {
    const scenario = rows.text(row, "scenario");
    return scenario ? JSON.stringify([scenario, rows.text(row, "phase")]) : String(row);
  });
  return (
    <section aria-label="What it keeps up with">
      <h3>What it keeps up with</h3>
      <div class="speeds">
        {[...cards.values()].map((of) => (of.length === 1 ? <Speed key={of[0]} rows={rows} row={of[0]} /> : <Variants key={of[0]} rows={rows} of={of} />))}
      </div>
    </section>
  );
}

/** The longest time that a row's picture holds. */
function longest(rows: Rows, row: number): number {
  return Math.max(0, ...["step_median", "step_p99", "budget"].map((name) => rows.number(row, name) ?? 0));
}

function Variants({ rows, of }: { rows: Rows; of: number[] }) {
  const widest = Math.max(...of.map((row) => longest(rows, row)));
  return (
    <article class="several">
      <h4>
        <Name text={[rows.text(of[0], "scenario"), rows.text(of[0], "phase")].filter(Boolean).join(" · ")} />
      </h4>
      <div class="variants">
        {of.map((row) => (
          <Speed key={row} rows={rows} row={row} title={rows.text(row, "variant")} widest={widest} />
        ))}
      </div>
    </article>
  );
}

interface SpeedProps {
  rows: Rows;
  row: number;
  /** In place of the capture's label. */
  title?: string;
  /** The end of the picture's scale, if it has to be that of others. */
  widest?: number;
}

function Speed({ rows, row, title, widest = longest(rows, row) }: SpeedProps) {
  const label = rows.text(row, "capture");
  const rtf = rows.number(row, "rtf");
  const capture = captureIndex(label, rows.number(row, "repetition"));
  const state = rtf === undefined ? "unknown" : rtf >= 0.99 ? "good" : "slow";
  const over = rows.number(row, "over_budget");
  const steps = placeOf(label, rows.number(row, "repetition"), "steps");
  const runs = rows.number(row, "runs") ?? 1;
  const Heading = title ? "h5" : "h4";
  const name = title || label.replaceAll("/", " · ");
  const count = `${rows.shown(row, "steps")} steps`;
  return (
    <article class={`speed ${state}`}>
      <div class="rtf" data-tip={rows.doc(rtf === undefined ? "step_median" : "rtf")}>
        <b>{rows.point(row, rtf === undefined ? "step_median" : "rtf")}</b>
        <span>{state === "slow" ? "▼ RTF" : state === "good" ? "● RTF" : "median step"}</span>
      </div>
      <div class="said">
        <Heading>{capture === undefined ? <Name text={name} /> : <a href={linkTo({ screen: "explore", capture })}><Name text={name} /></a>}</Heading>
        <p><Prose text={rows.text(row, "verdict")} /></p>
        <Budget rows={rows} row={row} widest={widest} />
        <p class="facts">
          {steps ? <a href={steps}>{count}</a> : <span>{count}</span>}
          <span data-tip={rows.doc("step_median")}>median step <b>{rows.point(row, "step_median")}</b></span>
          <span data-tip={rows.doc("step_p99")}>p99 <b>{rows.point(row, "step_p99")}</b></span>
          {rows.shown(row, "budget") && <span data-tip={rows.doc("budget")}>budget <b>{rows.shown(row, "budget")}</b></span>}
          {over !== undefined && <span data-tip={rows.doc("over_budget")}>over budget <b>{rows.shown(row, "over_budget")}</b></span>}
          {capture !== undefined && <a href={linkTo({ screen: "explore", capture })}>Show the steps</a>}
        </p>
        {runs > 1 && (
          <p class="soft" data-tip={rows.doc("runs")}>
            Median of {runs} runs{rtf !== undefined && `; RTF ${rows.spread(row, "rtf")}`}, median step {rows.spread(row, "step_median")}
          </p>
        )}
      </div>
    </article>
  );
}

/** Median and 99th percentile of the step time on one scale with the budget. The figures below say the same. */
function Budget({ rows, row, widest }: { rows: Rows; row: number; widest: number }) {
  const [median, p99, budget] = ["step_median", "step_p99", "budget"].map((name) => rows.number(row, name));
  if (median === undefined || widest <= 0) return null;
  const at = (value: number) => `${Math.min(100, (value / (widest * 1.04)) * 100)}%`;
  const isOver = budget !== undefined && median > budget;
  return (
    <svg class="budget" height="18" aria-hidden="true">
      {p99 !== undefined && <rect class="p99" x="0" y="6" height="6" width={at(p99)} rx="2" />}
      <rect class={isOver ? "median over" : "median"} x="0" y="4" height="10" width={at(median)} rx="2" />
      {budget !== undefined && <line class="limit" x1={at(budget)} x2={at(budget)} y1="0" y2="18" />}
    </svg>
  );
}
