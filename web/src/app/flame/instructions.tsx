// The machine code of a function beside its source.

import { Fragment } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { percent, weight as quantity } from "../../units.ts";
import { useAnswer } from "../answers.ts";
import { go } from "../state.ts";
import { weighed, weighing } from "./asked.ts";
import { clipped } from "./picture.tsx";

interface Props {
  /** A row of `frames`. */
  frame: number;
  /** The file and the line beside it, which is marked. */
  file: string;
  line: number | undefined;
}

export function InstructionTable({ frame, file, line }: Props) {
  const { answer: code, failure, loading } = useAnswer("instructions", { ...weighing.value, frame });
  const table = useRef<HTMLTableElement>(null);
  const heaviest = useMemo(() => code?.self.reduce((most, weight) => Math.max(most, weight), 0) || 1, [code]);
  const whole = useMemo(() => code?.self.reduce((sum, weight) => sum + weight, 0) || 1, [code]);
  // The heaviest instruction of the line, else of all.
  const first = useMemo(() => {
    if (!code) return -1;
    const all = [...code.lines.keys()];
    const ofLine = all.filter((at) => code.lines[at] === line && code.files[at] === file);
    return (ofLine.length > 0 ? ofLine : all).reduce((best, at) => (best < 0 || code.self[at] > code.self[best] ? at : best), -1);
  }, [code, file, line]);
  useEffect(() => {
    table.current?.querySelector(`[data-instruction="${first}"]`)?.scrollIntoView({ block: "center" });
  }, [code, first]);
  if (failure) return <p class="failure">The instructions failed: {failure}</p>;
  if (!code) return <p class="empty">Reading instructions.</p>;
  if (code.problem) return <p class="empty">{code.problem}</p>;
  const { unit, weight } = weighed.value;
  const isWeighed = weight === "cpu" || weight === "wall";
  return (
    <>
      {!isWeighed && <p class="soft">Instructions have the cost of samples only.</p>}
      <table class="lines" ref={table} data-loading={loading}>
        <caption class="unseen">Instructions and their cost</caption>
        <thead>
          <tr>
            <th class="number" title="Weight of samples in the instruction.">self</th>
            <th class="number" title="The same, and that of samples in what it calls.">total</th>
            <th>instruction</th>
          </tr>
        </thead>
        <tbody>
          {code.texts.map((text, at) => {
            const isNew = at === 0 || code.lines[at] !== code.lines[at - 1] || code.files[at] !== code.files[at - 1] || code.functions[at] !== code.functions[at - 1];
            return (
              <Fragment key={at}>
                {isNew && <Place name={code.functions[at]} file={code.files[at]} line={code.lines[at]} />}
                <tr data-instruction={at} class={code.lines[at] === line && code.files[at] === file ? "of-line" : ""}>
                  <td class="number" title={code.self[at] > 0 ? `${percent((code.self[at] * 100) / whole)} % of the function` : undefined}>
                    {code.self[at] > 0 ? quantity(code.self[at], unit) : ""}
                  </td>
                  <td class="number">{code.total[at] > 0 ? quantity(code.total[at], unit) : ""}</td>
                  <td class="code" title={code.addresses[at].toString(16)} style={code.self[at] > 0 ? { "--part": code.self[at] / heaviest } : undefined}>
                    {text}
                  </td>
                </tr>
              </Fragment>
            );
          })}
        </tbody>
      </table>
    </>
  );
}

/** Where the instructions below it come from. */
function Place({ name, file, line }: { name: string; file: string; line: number }) {
  const place = `${file.slice(file.lastIndexOf("/") + 1)}:${line}`;
  return (
    <tr class="place">
      <td colSpan={3} title={`${name}\n${file}:${line}`}>
        {clipped(name)}{" "}
        {line > 0 && (
          <button class="link" onClick={() => go({ source: { file, line }, function: "" })}>
            {place}
          </button>
        )}
      </td>
    </tr>
  );
}
