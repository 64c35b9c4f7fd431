// The chosen function: its cost, where it is, what can be done with it.

import { texts, integers } from "../../profile/columns.ts";
import { percent, weight as quantity } from "../../units.ts";
import { useTable } from "../answers.ts";
import { go } from "../state.ts";
import { indexOf, useNamed, weighed, weighing } from "./asked.ts";
import { copy, functionItems } from "./menu.tsx";
import { clipped } from "./picture.tsx";

export function FunctionDetails({ name }: { name: string }) {
  const { answer, functions } = useNamed("functionTable", weighing.value);
  const frames = useTable("frames");
  const index = functions ? indexOf(functions, name) : -1;
  const row = answer ? answer.functions.indexOf(index) : -1;
  const { unit } = weighed.value;
  const share = (weight: number) => `${quantity(weight, unit)} (${percent((weight * 100) / (answer?.whole || 1))} %)`;
  const place = placeOf(name, frames);
  return (
    <section class="function-details" aria-label="Chosen function">
      <h3 class="mono">{clipped(name)}</h3>
      {functions && index >= 0 && (
        <p class="soft">
          {functions.modules[index]}
          {functions.owned[index] ? " · owned" : ""}
        </p>
      )}
      {answer && row >= 0 && (
        <dl class="figures">
          <dt>self</dt>
          <dd>{share(answer.self[row])}</dd>
          <dt>total</dt>
          <dd>{share(answer.total[row])}</dd>
          {answer.attributed[row] > 0 && <dt title="Weight of stacks whose nearest owned function this is.">attributed</dt>}
          {answer.attributed[row] > 0 && <dd>{share(answer.attributed[row])}</dd>}
        </dl>
      )}
      {answer && functions && row < 0 && <p class="soft">No weight in this selection.</p>}
      {place && (
        <button class="link" onClick={() => go({ pane: "source", source: place })}>
          {clipped(place.file)}:{place.line}
        </button>
      )}
      <div class="actions">
        <button onClick={() => void copy(name)}>Copy name</button>
        {functions && index >= 0 && functionItems(functions, index).slice(0, 3).map(({ title, run }) => (
          <button key={title} onClick={run}>
            {title}
          </button>
        ))}
        <button onClick={() => go({ function: "" })}>Close</button>
      </div>
    </section>
  );
}

function placeOf(name: string, frames: ReturnType<typeof useTable>): { file: string; line: number } | undefined {
  if (!frames || frames.rows === 0) return undefined;
  const [names, files, lines] = [texts(frames, "function"), texts(frames, "file"), integers(frames, "line")];
  const at = names.findIndex((one, frame) => one === name && files[frame] !== "" && lines[frame] > 0);
  return at < 0 ? undefined : { file: files[at], line: lines[at] };
}
