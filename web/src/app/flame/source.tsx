// Source files with the cost of each line.

import { useEffect, useMemo, useRef } from "preact/hooks";
import { integers, texts } from "../../profile/columns.ts";
import type { Answer } from "../../worker/queries.ts";
import { percent, weight as quantity } from "../../units.ts";
import { useAnswer, useTable } from "../answers.ts";
import { chosenFunction, entry, go, instructions, source } from "../state.ts";
import { weighed, weighing } from "./asked.ts";
import { WeightChoice } from "./flame.tsx";
import { InstructionTable } from "./instructions.tsx";
import { clipped } from "./picture.tsx";

/** Lines shown beyond the last one with weight, in files whose text is not there. */
const MOST_LINES = 40_000;

type LineCosts = Answer<"lines">;

export function Source() {
  const frames = useTable("frames");
  const sources = useTable("sources");
  const { answer: found, failure } = useAnswer("files", weighing.value);
  const readable = useMemo(() => new Set(sources && sources.rows > 0 ? texts(sources, "file") : []), [sources]);
  // The most costly file that can be read, if it costs about as much as the first.
  const first = found?.files.find(({ file, cost }) => readable.has(file) && cost * 10 >= found.files[0].cost) ?? found?.files[0];
  const file = source.value?.file ?? fileOf(chosenFunction.value, frames) ?? first?.file;
  const { answer: lines } = useAnswer("lines", file === undefined ? undefined : { ...weighing.value, file });
  const text = useMemo(() => {
    if (!sources || sources.rows === 0 || file === undefined) return undefined;
    const at = texts(sources, "file").indexOf(file);
    return at < 0 ? undefined : texts(sources, "text")[at].split(/\r?\n/);
  }, [sources, file]);
  const chosenLine = source.value?.line ?? lineOf(chosenFunction.value, file, frames);
  if (failure) return <p class="failure">The source failed: {failure}</p>;
  if (!found) return <p class="empty">Adding up.</p>;
  if (file === undefined) return <p class="empty">No stack of this selection names a source file. Debug information (-g) names them.</p>;
  const { unit } = weighed.value;
  const known = found.files.some((one) => one.file === file);
  const frame = lines && frameOf(lines, chosenLine);
  const shown = chosenLine || (lines && heaviestLine(lines));
  return (
    <div class="source">
      <div class="pane-bar">
        <WeightChoice />
        <label class="choice path">
          <span>File</span>
          <select value={file} onChange={(event) => go({ source: { file: event.currentTarget.value, line: 0 }, function: "" })}>
            {!known && <option value={file}>{clipped(file)}</option>}
            {found.files.slice(0, 500).map(({ file, cost }) => (
              <option key={file} value={file}>
                {percent((cost * 100) / (found.whole || 1))} % {clipped(file)}
              </option>
            ))}
          </select>
        </label>
        <button aria-pressed={instructions.value} title="Machine code of the function at the chosen line" onClick={() => go({ instructions: !instructions.value })}>
          Instructions
        </button>
        {lines && text === undefined && <span class="soft">The text of this file is not here; its lines are.</span>}
      </div>
      <div class={`sides${instructions.value ? " two" : ""}`}>
        {lines && <Lines lines={lines} text={text} whole={found.whole} unit={unit} chosen={chosenLine} file={file} />}
        {instructions.value && (
          <div class="beside-source">
            {(entry.value?.tables["instructions"] ?? 0) === 0 ? (
              <p class="empty">This page holds no instructions. `stepscope view` shows them.</p>
            ) : frame === undefined ? (
              <p class="empty">Choose a line that has a cost.</p>
            ) : (
              <InstructionTable frame={frame} file={file} line={shown} />
            )}
          </div>
        )}
      </div>
    </div>
  );
}

/** The line that is shown first. */
export function heaviestLine({ lines, self, total }: LineCosts): number | undefined {
  const [heaviest] = [...lines.keys()].filter((index) => lines[index] > 0).sort((a, b) => self[b] - self[a] || total[b] - total[a]);
  return heaviest === undefined ? undefined : lines[heaviest];
}

/** The frame whose code is shown beside a line: that of the line, else of the nearest line with weight before it, which is likely of the same function. */
function frameOf(costs: LineCosts, line: number | undefined): number | undefined {
  const wanted = line || heaviestLine(costs);
  if (wanted === undefined) return undefined;
  const at = costs.lines.findLastIndex((one) => one > 0 && one <= wanted);
  return at < 0 ? undefined : costs.frames[at];
}

interface LinesProps {
  lines: LineCosts;
  text: string[] | undefined;
  whole: number;
  unit: string;
  chosen: number | undefined;
  file: string;
}

function Lines({ lines: costs, text, whole, unit, chosen, file }: LinesProps) {
  const { lines, self, total } = costs;
  const table = useRef<HTMLTableElement>(null);
  const at = useMemo(() => new Map(Array.from(lines, (line, index) => [line, index])), [lines]);
  const heaviest = useMemo(() => self.reduce((most, weight) => Math.max(most, weight), 0) || 1, [self]);
  const first = chosen || heaviestLine(costs);
  useEffect(() => {
    table.current?.querySelector(`[data-line="${first}"]`)?.scrollIntoView({ block: "center" });
  }, [file, first, text]);
  const shown = text ? Array.from({ length: Math.min(text.length, MOST_LINES) }, (_, index) => index + 1) : [...lines].filter((line) => line > 0);
  const unknown = at.get(0);
  const share = (weight: number) => percent((weight * 100) / (whole || 1));
  return (
    <table class="lines" ref={table}>
      <caption class="unseen">Cost of the lines of {clipped(file)}</caption>
      <thead>
        <tr>
          <th class="number" title="Weight that ends in the line.">self</th>
          <th class="number" title="Weight of stacks that hold the line, each once.">total</th>
          <th class="number">line</th>
          <th>source</th>
        </tr>
      </thead>
      <tbody>
        {unknown !== undefined && (
          <tr>
            <td class="number">{quantity(self[unknown], unit)}</td>
            <td class="number">{quantity(total[unknown], unit)}</td>
            <td />
            <td class="soft">(unknown lines)</td>
          </tr>
        )}
        {shown.map((line) => {
          const index = at.get(line);
          return (
            <tr key={line} data-line={line} class={line === chosen ? "chosen" : ""}>
              <td class="number" title={index !== undefined ? `${share(self[index])} %` : undefined}>
                {index !== undefined && self[index] > 0 ? quantity(self[index], unit) : ""}
              </td>
              <td class="number" title={index !== undefined ? `${share(total[index])} %` : undefined}>
                {index !== undefined ? quantity(total[index], unit) : ""}
              </td>
              <td class="number soft">
                <button class="link" title="Choose the line" onClick={() => go({ source: { file, line }, function: "" })}>
                  {line}
                </button>
              </td>
              <td class="code" style={index !== undefined && self[index] > 0 ? { "--part": self[index] / heaviest } : undefined}>
                {text ? text[line - 1].slice(0, 2000) : ""}
              </td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

type Frames = ReturnType<typeof useTable>;

/** The file of a function's frames: the first one that names one. */
function fileOf(name: string, frames: Frames): string | undefined {
  if (!name || !frames || frames.rows === 0) return undefined;
  const [names, files] = [texts(frames, "function"), texts(frames, "file")];
  const at = names.findIndex((one, frame) => one === name && files[frame] !== "");
  return at < 0 ? undefined : files[at];
}

/** The first line of a function that frames name. */
function lineOf(name: string, file: string | undefined, frames: Frames): number | undefined {
  if (!name || !frames || frames.rows === 0) return undefined;
  const [names, files, lines] = [texts(frames, "function"), texts(frames, "file"), integers(frames, "line")];
  let first: number | undefined;
  names.forEach((one, frame) => {
    if (one === name && files[frame] === file && lines[frame] > 0 && (first === undefined || lines[frame] < first)) first = lines[frame];
  });
  return first;
}
