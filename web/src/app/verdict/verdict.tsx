// The first screen: what changed, what the program keeps up with, what a change would gain, what is doubtful. Each line leads to
// its evidence. The figures come from the sections `verdict` and `comparison` of the report, which crates/lab/src/report composes.

import { useEffect, useRef } from "preact/hooks";
import type { DocumentNote, DocumentTable } from "../../profile/document.ts";
import { Icon } from "../icons.tsx";
import { report, sections } from "../links.ts";
import { ReportProgress } from "../loading.tsx";
import { Notes, Prose } from "../prose.tsx";
import { linkTo, manifest } from "../state.ts";
import { DataTable } from "../tables/table.tsx";
import { Section } from "../tables/tables.tsx";
import { Changes } from "./changes.tsx";
import { comparisonsOf } from "./comparisons.ts";
import { Doubts, Gains, NoDoubts } from "./gains.tsx";
import { Rows, tableOf } from "./rows.ts";
import { Speeds } from "./speeds.tsx";
import { ANCHOR as VARIANTS, Variants } from "./variants.tsx";

const ANCHOR = "verdict";

export function Verdict() {
  const { title, subtitle, warnings } = report.value;
  const comparisons = comparisonsOf();
  // The sentence of a comparison stands with its figures.
  const isSaid = comparisons.some(({ sentence }) => sentence === subtitle);
  return (
    <div class="page verdict">
      <header>
        <h2>{title || manifest.value.title}</h2>
        {subtitle && !isSaid && <p class="subtitle"><Prose text={subtitle} /></p>}
      </header>
      {comparisons.map((comparison, index) => (
        <Changes key={index} comparison={comparison} />
      ))}
      <Notes notes={warnings} />
      <OfRun compares={comparisons.length > 0} />
      <About />
    </div>
  );
}

function OfRun({ compares }: { compares: boolean }) {
  const section = sections.value.get(ANCHOR)?.section;
  if (!section) return compares ? null : <FirstSection />;
  const [speeds, gains, doubts, capacity] = ["verdict_speed", "verdict_gains", "verdict_doubts", "capacity"].map((name) => tableOf(section, name));
  const speedRows = speeds && new Rows(speeds);
  const variants = tableIn(VARIANTS, "variants");
  return (
    <>
      {speedRows && <Speeds rows={speedRows} />}
      {variants && <Variants rows={new Rows(variants)} />}
      {capacity && (
        <section aria-label="Capacity">
          <h3>Up to which size</h3>
          <DataTable table={{ ...capacity, title: "" }} id={`${ANCHOR}/capacity`} capture={undefined} />
        </section>
      )}
      <Gains rows={gains && new Rows(gains)} speeds={speedRows} hints={hintsOfFindings()} />
      {doubts ? <Doubts rows={new Rows(doubts)} /> : <NoDoubts />}
    </>
  );
}

function tableIn(anchor: string, name: string): DocumentTable | undefined {
  const section = sections.value.get(anchor)?.section;
  return section && tableOf(section, name);
}

/** What would let the findings say more. */
function hintsOfFindings(): DocumentNote[] {
  const notes = tableIn("findings", "findings")?.notes ?? [];
  return notes.filter(({ kind }) => kind === "hint");
}

/** What a report without a verdict starts with, as that of a history. */
function FirstSection() {
  const first = report.value.sections[0];
  if (first) return <Section section={first} level={2} />;
  return (
    <>
      <ReportProgress />
      {manifest.value.captures.length > 0 && (
        <p>
          <a class="button" href={linkTo({ screen: "explore" })}>
            Explore the recording <Icon name="arrow" />
          </a>
        </p>
      )}
    </>
  );
}

/** Machine, build and conditions, and what the file lacks: folded, but not on paper. */
function About() {
  const { about } = report.value;
  const footer = useRef<HTMLElement>(null);
  useEffect(() => {
    let folded: HTMLDetailsElement[] = [];
    const unfold = () => {
      folded = [...(footer.current?.querySelectorAll<HTMLDetailsElement>("details:not([open])") ?? [])];
      folded.forEach((one) => (one.open = true));
    };
    const fold = () => folded.forEach((one) => (one.open = false));
    addEventListener("beforeprint", unfold);
    addEventListener("afterprint", fold);
    return () => {
      removeEventListener("beforeprint", unfold);
      removeEventListener("afterprint", fold);
    };
  }, []);
  const { captures } = manifest.value;
  const reduced = captures.filter(({ leftOut }) => leftOut.length > 0);
  const leftOut = reduced.flatMap((entry) => entry.leftOut.map((sentence) => `${entry.label}: ${sentence}`));
  if (about.length === 0 && leftOut.length === 0) return null;
  return (
    <footer ref={footer}>
      {reduced.length > 0 && (
        <details>
          <summary>
            {reduced.length} of {captures.length === 1 ? "1 capture" : `${captures.length} captures`} did not fit whole into this file
          </summary>
          <Notes notes={leftOut.map((text) => ({ kind: "limit" as const, text }))} />
        </details>
      )}
      {about.length > 0 && (
        <details>
          <summary>Machine, build and conditions</summary>
          <dl>
            {about.map(({ name, value }, index) => (
              <div key={index}>
                <dt>{name}</dt>
                <dd>{value}</dd>
              </div>
            ))}
          </dl>
        </details>
      )}
    </footer>
  );
}
