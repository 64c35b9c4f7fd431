// The screen Tables: the contents at the left, one section of the report with all that it holds beside them.

import { Fragment } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import type { DocumentBlock, DocumentSection } from "../../profile/document.ts";
import { useCommands, type Command } from "../commands.ts";
import { Icon } from "../icons.tsx";
import { report, sections } from "../links.ts";
import { ReportProgress, isAnalysing, reportFailure } from "../loading.tsx";
import { Notes } from "../prose.tsx";
import { adjust, go, link, linkTo, place } from "../state.ts";
import { Chart } from "./chart.tsx";
import { Graph } from "./graph.tsx";
import { Figures } from "./figures.tsx";
import { Forest } from "./forest.tsx";
import { DataTable } from "./table.tsx";

/** Sections that the first screen shows already are no tables. */
const ELSEWHERE = "verdict";

export function Tables() {
  const all = report.value.sections.filter((section) => section.anchor !== ELSEWHERE && holds(section));
  const wanted = topOf(place.value);
  // The verdict comes before the other sections.
  const current = wanted ?? (place.value && isAnalysing.value ? undefined : all[0]);
  const at = all.indexOf(current!);
  useEffect(() => {
    // A table by itself, else the section it was in when the link was made.
    const target = place.value && (document.getElementById(place.value) ?? document.getElementById(place.value.replace(/\/[^/]*$/, "")));
    if (target && !target.contains(document.activeElement)) target.scrollIntoView();
    else if (!place.value) scrollTo(0, 0);
  }, [current?.anchor, place.value]);
  useCommands(
    useMemo<Command[]>(
      () => [
        { title: "Next section", group: "Tables", keys: ["n"], run: () => turn(1) },
        { title: "Previous section", group: "Tables", keys: ["p"], run: () => turn(-1) },
      ],
      [all.length, at],
    ),
  );
  const turn = (by: number) => {
    const next = all[at + by];
    if (next) go({ place: next.anchor, filter: "", sort: "" });
  };
  if (!current) return isAnalysing.value || reportFailure.value ? <div class="empty"><ReportProgress /></div> : <p class="empty">The report has no tables.</p>;
  return (
    <div class="tables">
      <nav class="contents" aria-label="Sections">
        <ol>
          {all.map((section) => (
            <li key={section.anchor}>
              <SectionLink section={section} isCurrent={section === current} />
              {section === current && section.sections.some(holds) && (
                <ol>
                  {section.sections.filter(holds).map((inner) => (
                    <li key={inner.anchor}>
                      <SectionLink section={inner} isCurrent={place.value === inner.anchor || place.value.startsWith(`${inner.anchor}/`)} />
                    </li>
                  ))}
                </ol>
              )}
            </li>
          ))}
        </ol>
        <label class="jump">
          <span class="unseen">Section</span>
          <select value={current.anchor} onChange={(event) => go({ place: event.currentTarget.value, filter: "", sort: "" })}>
            {all.map((section) => (
              <option key={section.anchor} value={section.anchor}>
                {section.title}
              </option>
            ))}
          </select>
        </label>
      </nav>
      <article key={current.anchor}>
        <Notes notes={at === 0 ? report.value.warnings : []} />
        <Section section={current} level={2} />
        <p class="turn">
          {at > 0 && <a href={link({ place: all[at - 1].anchor, filter: "", sort: "" })}>← {all[at - 1].title}</a>}
          {at + 1 < all.length && (
            <a class="next" href={link({ place: all[at + 1].anchor, filter: "", sort: "" })}>
              {all[at + 1].title} →
            </a>
          )}
        </p>
      </article>
    </div>
  );
}

function SectionLink({ section, isCurrent }: { section: DocumentSection; isCurrent: boolean }) {
  return (
    <a href={link({ screen: "tables", place: section.anchor, filter: "", sort: "" })} aria-current={isCurrent ? "true" : undefined}>
      {section.title}
    </a>
  );
}

/** The section of the top level that holds an anchor; of a table, that of its section. */
function topOf(anchor: string): DocumentSection | undefined {
  const known = sections.value;
  for (let name = anchor; name !== ""; name = name.slice(0, Math.max(0, name.lastIndexOf("/")))) {
    const found = known.get(name);
    if (found) return found.within[0] ?? found.section;
  }
  return undefined;
}

/** Whether a section shows anything: empty ones take no room. */
export function holds({ notes, blocks, sections }: DocumentSection): boolean {
  return notes.some(({ kind }) => kind === "loss") || blocks.some(isFilled) || sections.some(holds);
}

function isFilled(block: DocumentBlock): boolean {
  switch (block.kind) {
    case "flame":
    case "difference":
      return true;
    default:
      return block.table.notes.length > 0 || (block.table.columns[0]?.values.length ?? 0) > 0;
  }
}

/** A section with all that it holds. */
export function Section({ section, level }: { section: DocumentSection; level: 2 | 3 | 4 }) {
  const Heading = `h${level}` as const;
  return (
    <section id={section.anchor} class={`level${level}`}>
      <Heading>
        {section.title}{" "}
        <a class="anchor" href={linkTo({ screen: "tables", place: section.anchor })} aria-label={`Link to ${section.title}`} onClick={() => adjust({ filter: "", sort: "" })}>
          <Icon name="link" />
        </a>
      </Heading>
      <Notes notes={section.notes} />
      {section.blocks.map((block, index) => (
        <Fragment key={index}>
          <Block block={block} section={section} index={index} />
        </Fragment>
      ))}
      {section.sections.filter(holds).map((inner) => (
        <Section key={inner.anchor} section={inner} level={level === 2 ? 3 : 4} />
      ))}
    </section>
  );
}

function Block({ block, section, index }: { block: DocumentBlock; section: DocumentSection; index: number }) {
  const { anchor, capture, blocks } = section;
  switch (block.kind) {
    case "figures":
      return <Figures table={block.table} id={`${anchor}/${block.table.name}`} />;
    case "table":
      return <DataTable table={block.table} id={tableId(anchor, blocks, index)} capture={capture} />;
    case "chart":
      return <Chart block={block} id={`${anchor}/chart-${block.table.name}-${index}`} capture={capture} />;
    case "forest":
      return <Forest block={block} id={`${anchor}/forest-${block.table.name}-${index}`} />;
    case "flame":
      if (block.tree) return <Graph tree={block.tree} id={`${anchor}/flame-${index}`} />;
      return (
        <p class="to-flame">
          <a href={linkTo({ screen: "explore", capture: capture ?? 0, weight: /off|block|wait/i.test(block.title) ? "offcpu" : "cpu" })}>
            {block.title || "Flame graph"} <Icon name="arrow" />
          </a>
          <span class="soft">{block.weight}</span>
        </p>
      );
    case "difference":
      return <Graph tree={block.tree} id={`${anchor}/difference-${index}`} />;
  }
}

/** A table's address: its name, with a number if the section has several of that name. */
export function tableId(anchor: string, blocks: DocumentBlock[], index: number): string {
  const name = (block: DocumentBlock) => ("table" in block && block.kind === "table" ? block.table.name : undefined);
  const before = blocks.slice(0, index).filter((block) => name(block) === name(blocks[index])).length;
  return `${anchor}/${name(blocks[index])}${before > 0 ? `-${before + 1}` : ""}`;
}
