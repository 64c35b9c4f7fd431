// A summary at a glance: the values of a row as named figures.

import { useMemo } from "preact/hooks";
import { Reading } from "../../profile/cells.ts";
import type { DocumentTable } from "../../profile/document.ts";
import { Name, Notes } from "../prose.tsx";

export function Figures({ table, id }: { table: DocumentTable; id: string }) {
  const reading = useMemo(() => new Reading(table), [table]);
  if (reading.rows === 0 && table.notes.length === 0) return null;
  const isKnown = (row: number) => (field: Reading["fields"][number]) => field.column.values[row] !== null && field.column.values[row] !== "";
  return (
    <figure class="figures-of" id={id} aria-label={table.title || table.name}>
      {table.title && <figcaption><h4>{table.title}</h4></figcaption>}
      {Array.from({ length: reading.rows }, (_, row) => (
        <dl class="figures" key={row}>
          {reading.fields.filter(isKnown(row)).map((field) => {
            const { number, unit, bounds } = reading.cell(field, row);
            return (
              <div key={field.column.name} class={field.isText ? "words" : ""} data-tip={field.column.doc}>
                <dt>{field.column.header}</dt>
                <dd>
                  <Name text={number} /> <i>{[unit, field.column.beside].filter(Boolean).join(" ")}</i>
                  {bounds && <small> {bounds}</small>}
                </dd>
              </div>
            );
          })}
        </dl>
      ))}
      <Notes notes={table.notes} />
    </figure>
  );
}
