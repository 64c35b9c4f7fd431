// What a change would gain, and what is doubtful.

import type { DocumentNote } from "../../profile/document.ts";
import { exactly } from "../../search.ts";
import { quantity } from "../../units.ts";
import { functionLink } from "../links.ts";
import { Prose } from "../prose.tsx";
import { linkTo } from "../state.ts";
import { captureIndex, type Rows } from "./rows.ts";

interface GainsProps {
  rows: Rows | undefined;
  speeds: Rows | undefined;
  hints: DocumentNote[];
}

/** What the confidence column says of functions that are no findings. */
const OF_FUNCTIONS = new Set(["upper bound", "cost"]);

export function Gains({ rows, speeds, hints }: GainsProps) {
  if (!rows && hints.length === 0) return null;
  const indices = rows?.indices ?? [];
  const isFunction = (row: number) => OF_FUNCTIONS.has(rows!.text(row, "confidence"));
  const [findings, functions] = [indices.filter((row) => !isFunction(row)), indices.filter(isFunction)];
  // Without any gain of a finding, functions come first, as in the terminal.
  const areFunctionsFirst = functions.length > 0 && functions[0] < (findings[0] ?? Infinity);
  const lists = [
    <section key="findings" aria-label="What a change would gain">
      <h3>
        What a change would gain <a class="more-link" href={linkTo({ screen: "tables", place: "findings" })}>All findings</a>
      </h3>
      {findings.length === 0 && <p class="soft">No known kind of defect was found.</p>}
      {findings.length > 0 && <List rows={rows!} of={findings} speeds={speeds} />}
    </section>,
    functions.length > 0 && (
      <section key="functions" aria-label="What costs most">
        <h3>What costs most</h3>
        <List rows={rows!} of={functions} speeds={speeds} />
      </section>
    ),
  ];
  return (
    <>
      {areFunctionsFirst ? lists.reverse() : lists}
      {hints.length > 0 && (
        <ul class="hints" aria-label="Hints">
          {hints.map(({ text }, index) => (
            <li key={index}>
              <Prose text={text} />
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

function List({ rows, of, speeds }: { rows: Rows; of: number[]; speeds: Rows | undefined }) {
  const rtfOf = (label: string) => {
    const row = speeds?.indices.find((row) => speeds.text(row, "capture") === label);
    return row === undefined ? undefined : speeds?.number(row, "rtf");
  };
  const largest = Math.max(1, ...rows.indices.map((row) => rows.number(row, "gain_share") ?? 0));
  return (
    <ol class="gains">
      {of.map((row) => {
        const label = rows.text(row, "capture");
        const [before, after] = [rtfOf(label), rows.number(row, "rtf_after")];
        const share = rows.number(row, "gain_share");
        const isBound = rows.text(row, "confidence") === "upper bound";
        return (
          <li key={row}>
            <a class="what" href={evidence(rows.text(row, "function"), label, rows.text(row, "evidence") === "waits")}>
              <Prose text={rows.text(row, "what")} />
            </a>
            <span class="where">
              {label.replaceAll("/", " · ")} <i data-tip={rows.doc("confidence")}>{rows.text(row, "confidence")}</i>
            </span>
            <span class="gain" data-tip={rows.doc("gain")}>
              {rows.shown(row, "gain") ? (
                <>
                  {isBound && "at most "}
                  <b>−{rows.shown(row, "gain")}</b> {share !== undefined && <small>{quantity(share, "percent", true).number} %</small>}
                </>
              ) : (
                <span class="soft">{share === undefined ? "gain unknown" : `costs ${quantity(share, "percent", true).number} %`}</span>
              )}
              {share !== undefined && <i class="bar" style={{ width: `${(share / largest) * 100}%` }} />}
            </span>
            <span class="after" data-tip={rows.doc("rtf_after")}>
              {after !== undefined && (
                <>
                  RTF {before !== undefined && `${quantity(before, "number", true).number} → `}
                  <b>{rows.shown(row, "rtf_after")}</b>
                </>
              )}
            </span>
          </li>
        );
      })}
    </ol>
  );
}

/** The function in its capture's flame graph; what is about no function leads to the finding. */
function evidence(name: string, label: string, isWaiting: boolean): string {
  const capture = captureIndex(label);
  if (name && capture !== undefined) return functionLink(name, capture, isWaiting);
  if (name) return linkTo({ screen: "explore", function: name, search: exactly(name) });
  return linkTo({ screen: "tables", place: "findings" });
}

export function Doubts({ rows }: { rows: Rows }) {
  return (
    <section aria-label="What is doubtful">
      <h3>What is doubtful</h3>
      <ul class="doubts">
        {rows.indices.map((row) => (
          <li key={row}>
            <p>
              <Prose text={rows.text(row, "doubt")} /> <span class="soft">{rows.text(row, "captures").replaceAll("/", " · ")}</span>
            </p>
            {rows.text(row, "fix") && (
              <p class="fix">
                Fix: <Prose text={rows.text(row, "fix")} />
              </p>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}

export function NoDoubts() {
  return (
    <section aria-label="What is doubtful">
      <h3>What is doubtful</h3>
      <ul class="doubts none">
        <li>Nothing was lost, and everything that was asked for was recorded.</li>
      </ul>
    </section>
  );
}
