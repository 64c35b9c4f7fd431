// The differential flame graph of both sides.

import { useMemo } from "preact/hooks";
import { classInk } from "../../draw/flame_colours.ts";
import { css } from "../../draw/ink.ts";
import { weightOf } from "../../profile/capture.ts";
import type { Widths } from "../../profile/difference.ts";
import type { Verdict } from "../../tree.ts";
import { weight as quantity } from "../../units.ts";
import { useAnswer } from "../answers.ts";
import { copy } from "../flame/menu.tsx";
import { Picture, Trail } from "../flame/picture.tsx";
import { hitsOf } from "../flame/search.ts";
import { SharedCallers, WeightChoice } from "../flame/flame.tsx";
import { functionLink } from "../links.ts";
import { adjust, go, search, startUp, weight, widths, zoom } from "../state.ts";
import { isDark } from "../theme.ts";
import { weighingOf, type Side } from "./sides.ts";

const WIDTHS: Record<Widths, string> = { larger: "larger of both", after: "after", before: "before" };

interface Props {
  after: Side;
  before: Side;
  names: [string, string];
  /** What the weights of each side are divided by: steps, or seconds. */
  divisors: [number, number];
  per: "step" | "second";
  /** Verdicts by function, where the comparison is about these sides as a whole. */
  verdicts: Map<string, Verdict> | undefined;
}

export function DifferenceGraph({ after, before, names, divisors, per, verdicts }: Props) {
  const isPerStep = per === "step";
  const scales: [number, number] = [1 / (divisors[0] || 1), 1 / (divisors[1] || 1)];
  const given = { after: weighingOf(after, isPerStep), before: weighingOf(before, isPerStep), scales, widths: widths.value, foldsStartUp: !startUp.value };
  const { answer, failure, loading } = useAnswer("difference", given);
  const functions = answer?.functions;
  const hits = useMemo(() => functions && hitsOf(functions.names, search.value), [functions, search.value]);
  const judged = useMemo(() => verdicts && functions?.names.map((name) => verdicts.get(name)), [verdicts, functions]);
  const unit = `${weightOf(weight.value, after.entry).unit}/${per === "step" ? "step" : "s"}`;
  const hash = Number.parseInt(zoom.value, 16) || 0;
  const zoomTo = (hash: number) => go({ zoom: hash === 0 ? "" : hash.toString(16) });
  const flame = answer?.flame;
  const sides = flame?.sides;
  return (
    <div class="flame difference" data-loading={loading}>
      <div class="bar">
        <WeightChoice />
        <label class="choice">
          <span>Widths</span>
          <select value={widths.value} onChange={(event) => go({ widths: event.currentTarget.value as Widths })}>
            {Object.entries(WIDTHS).map(([value, title]) => (
              <option key={value} value={value}>
                {title}
              </option>
            ))}
          </select>
        </label>
        {flame && functions && <SharedCallers flame={flame} functions={functions} />}
        <Legend />
        <span class="search">
          <input
            type="search"
            placeholder="Search functions"
            aria-label="Search functions by regular expression"
            spellcheck={false}
            value={search.value}
            onInput={(event) => adjust({ search: event.currentTarget.value })}
          />
        </span>
      </div>
      {failure && <p class="failure">The differential flame graph failed: {failure}</p>}
      {flame && functions && sides && flame.size > 1 && (
        <>
          <Trail flame={flame} functions={functions} zoom={hash} onZoom={zoomTo} />
          <Picture
            flame={flame}
            functions={functions}
            unit={unit}
            label={`Differential flame graph: ${names[0]} against ${names[1]}, per ${per}`}
            colours="difference"
            hits={hits}
            verdicts={judged}
            sides={names}
            zoom={hash}
            onZoom={zoomTo}
            items={(node) => {
              const name = functions.names[flame.functions[node]];
              return [
                { title: "Zoom to it", run: () => zoomTo(flame.hashes[node]) },
                { title: `Show it in ${names[0]}`, run: () => (location.hash = functionLink(name, after.capture)) },
                { title: `Show it in ${names[1]}`, run: () => (location.hash = functionLink(name, before.capture)) },
                { title: "Copy its name", run: () => void copy(name) },
              ];
            }}
          />
          <p class="status">
            <span class="soft">
              {names[1]}: {quantity(sides.before[0], unit)} → {names[0]}: {quantity(sides.after[0], unit)}
              {widths.value === "larger" && ". Each frame is as wide as on the side where it costs more, so what was removed is visible."}
            </span>
          </p>
        </>
      )}
      {flame && flame.size <= 1 && <p class="empty">Neither side has this weight in its selection.</p>}
    </div>
  );
}

function Legend() {
  const ink = (name: string) => ({ background: css(classInk(name, isDark.value)) });
  return (
    <span class="legend">
      <span>
        <i style={ink("more3")} />
        costs more
      </span>
      <span>
        <i style={ink("same")} />
        as before
      </span>
      <span>
        <i style={ink("less3")} />
        costs less
      </span>
    </span>
  );
}
