// Rows with text below them, each as a card: its first prose as the heading, its figures in a line, then the texts.

import type { Reading } from "../../profile/cells.ts";
import { captureOf, functionLink } from "../links.ts";
import { Prose } from "../prose.tsx";

export function Cards({ reading, rows, capture }: { reading: Reading; rows: number[]; capture: number | undefined }) {
  const heading = reading.fields.find(({ column }) => column.kind === "prose");
  const number = reading.fields.find(({ column }) => column.name === "number" && column.kind === "count");
  const facts = reading.fields.filter((field) => field !== heading && field !== number && field.column.importance !== "detail");
  return (
    <ol class="cards">
      {rows.map((row) => {
        const own = number?.column.values[row];
        const about = captureOf(reading.table, row, capture);
        return (
          <li key={row}>
            <h4>
              <span class="count">{typeof own === "number" ? own : row + 1}</span> {heading && <Prose text={String(heading.column.values[row] ?? "")} />}
            </h4>
            <p class="facts">
              {facts
                .filter(({ column }) => column.values[row] !== null && column.values[row] !== "")
                .map((field) => {
                  const { number, unit, bounds } = reading.cell(field, row);
                  return (
                    <span key={field.column.name} data-tip={field.column.doc}>
                      {field.column.header} <b>{number}</b> {[unit, field.column.beside].filter(Boolean).join(" ")} {bounds && <small>{bounds}</small>}
                    </span>
                  );
                })}
            </p>
            <dl>
              {reading.below.map((column) => {
                const text = column.values[row];
                if (typeof text !== "string" || text === "") return null;
                return (
                  <>
                    <dt data-tip={column.doc}>{column.header}</dt>
                    {text.split("\n").map((line, index) => (
                      <dd key={index}>
                        <Prose text={line} />
                      </dd>
                    ))}
                  </>
                );
              })}
            </dl>
            {about !== undefined && <Evidence text={heading ? String(heading.column.values[row] ?? "") : ""} capture={about} />}
          </li>
        );
      })}
    </ol>
  );
}

/** Links to the functions that a sentence names in backticks. */
function Evidence({ text, capture }: { text: string; capture: number }) {
  const names = text.split("`").filter((_, index) => index % 2 === 1);
  if (names.length === 0) return null;
  return (
    <p class="evidence">
      {names.map((name) => (
        <a key={name} href={functionLink(name, capture)}>
          Show in the flame graph
        </a>
      ))}
    </p>
  );
}
