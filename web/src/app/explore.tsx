// The screen Explore: steps, timeline, a pane and details, all of the same selection.

import { useRef } from "preact/hooks";
import { signal } from "@preact/signals";
import { PANES, type Pane } from "../profile/address.ts";
import { Boundary } from "./boundary.tsx";
import { useCommands, type Command } from "./commands.ts";
import { Details } from "./details.tsx";
import { CostTree } from "./flame/tree.tsx";
import { FlameGraph } from "./flame/flame.tsx";
import { Functions } from "./flame/functions.tsx";
import { Source } from "./flame/source.tsx";
import { SelectionBar } from "./selection.tsx";
import { adjust, entry, go, hasTime, link, pane } from "./state.ts";
import { StepStrip } from "./strip/strip.tsx";
import { Timeline } from "./timeline/timeline.tsx";

const TITLES: Record<Pane, string> = { flame: "Flame graph", functions: "Functions", tree: "Cost tree", source: "Source" };
const PARTS: Record<Pane, () => preact.JSX.Element | null> = { flame: FlameGraph, functions: Functions, tree: CostTree, source: Source };

const COMMANDS: Command[] = PANES.map((name, index) => ({
  title: `Show the ${TITLES[name].toLowerCase()}`,
  group: "Panes",
  keys: [String(index + 1)],
  run: () => go({ screen: "explore", pane: name }),
}));

/** Height of the timeline in pixels; of the window, not of the link. */
const timelineHeight = signal(Math.max(140, Math.round(innerHeight * 0.34)));

export function Explore() {
  useCommands(COMMANDS);
  if (!entry.value) return <p class="empty">There is no capture to explore. The tables hold all there is.</p>;
  return (
    <div class="explore">
      <SelectionBar />
      <section class="strip" aria-label="Steps">
        <Boundary name="The step strip">
          <StepStrip />
        </Boundary>
      </section>
      {hasTime.value && (
        <>
          <section class="timeline" aria-label="Timeline" style={{ height: `${timelineHeight.value}px` }}>
            <Boundary name="The timeline">
              <Timeline />
            </Boundary>
          </section>
          <Splitter />
        </>
      )}
      <div class="lower">
        <PaneTabs />
        <aside class="details" aria-label="Details">
          <Boundary name="The details">
            <Details />
          </Boundary>
        </aside>
      </div>
    </div>
  );
}

function PaneTabs() {
  const Part = PARTS[pane.value];
  const list = useRef<HTMLDivElement>(null);
  const turn = (event: KeyboardEvent) => {
    const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (by === 0) return;
    event.preventDefault();
    adjust({ pane: PANES[(PANES.indexOf(pane.value) + by + PANES.length) % PANES.length] });
    requestAnimationFrame(() => list.current?.querySelector<HTMLElement>("[aria-selected=true]")?.focus());
  };
  return (
    <section class="pane" aria-label="Pane">
      <div class="tabs" role="tablist" aria-label="Panes" ref={list} onKeyDown={turn}>
        {PANES.map((name) => (
          <a
            key={name}
            id={`tab-${name}`}
            role="tab"
            href={link({ pane: name })}
            aria-selected={name === pane.value}
            aria-controls="pane"
            tabIndex={name === pane.value ? 0 : -1}
          >
            {TITLES[name]}
          </a>
        ))}
      </div>
      <div id="pane" class={`panel ${pane.value}`} role="tabpanel" aria-labelledby={`tab-${pane.value}`}>
        <Boundary name={TITLES[pane.value]} key={pane.value}>
          <Part />
        </Boundary>
      </div>
    </section>
  );
}

/** The bar between the timeline and the pane: dragged, or moved by arrow keys. */
function Splitter() {
  const set = (height: number) => (timelineHeight.value = Math.round(Math.min(Math.max(60, height), innerHeight - 200)));
  const drag = (event: PointerEvent) => {
    const bar = event.currentTarget as HTMLElement;
    const offset = timelineHeight.value - event.clientY;
    bar.setPointerCapture(event.pointerId);
    bar.onpointermove = ({ clientY }) => set(clientY + offset);
    bar.onpointerup = bar.onpointercancel = () => (bar.onpointermove = null);
  };
  const move = (event: KeyboardEvent) => {
    const by = event.key === "ArrowDown" ? 24 : event.key === "ArrowUp" ? -24 : 0;
    if (by === 0) return;
    event.preventDefault();
    set(timelineHeight.value + by);
  };
  return (
    <div
      class="splitter"
      role="separator"
      tabIndex={0}
      aria-orientation="horizontal"
      aria-label="Height of the timeline"
      aria-valuemin={60}
      aria-valuenow={timelineHeight.value}
      onPointerDown={drag}
      onKeyDown={move}
    />
  );
}
