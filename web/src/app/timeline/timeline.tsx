// The timeline: a lane per thread and per CPU, with the critical path, wake-ups and counters.

import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { said } from "../../draw/timeline_lanes.ts";
import type { Evidence } from "../../profile/address.ts";
import { numbers, type LanesEntry } from "../../profile/columns.ts";
import { measure as measureOf } from "../../profile/intervals.ts";
import { SORTS, type Sort } from "../../profile/lanes.ts";
import { loopsOf } from "../../profile/steps.ts";
import { moment } from "../../profile/ticks.ts";
import { grouped, percent, weight } from "../../units.ts";
import { useTable, useTableAnswer } from "../answers.ts";
import { useCommands, useLocalKeys, type Command, type LocalKeys } from "../commands.ts";
import { adjust, at, capture, client, entry, laneSort, manifest, selection } from "../state.ts";
import { useEscape } from "../tooltip.tsx";
import { bounded } from "./gestures.ts";
import { measured, measuring, shows, toggleEvidence, toggleMeasuring } from "./options.ts";
import { Timeline as Picture } from "./picture.ts";
import { LaneSource, shownLanes } from "./source.ts";

const SORTS_SAID: Record<Sort, string> = { cpu: "CPU time", wait: "waiting for a CPU", path: "time on the critical path", name: "name" };
const KEYS = "Wheel or W and S zoom, drag or A and D move, a drag with Shift or over the time scale selects, M measures.";

const LOCAL_KEYS: LocalKeys[] = [
  { title: "Zoom in, out", group: "Timeline", keys: ["w", "s", "+", "-"] },
  { title: "Move in time", group: "Timeline", keys: ["a", "d", "ArrowLeft", "ArrowRight"] },
  { title: "Scroll the lanes", group: "Timeline", keys: ["ArrowUp", "ArrowDown", "PageUp", "PageDown"] },
  { title: "Interval before, after the chosen one", group: "Timeline", keys: [",", "."] },
  { title: "Show the whole recording", group: "Timeline", keys: ["Home"] },
];

const WAITING = "The recording has no threads with times yet.";

export function Timeline() {
  const answers = [useTableAnswer("lane_order"), useTableAnswer("threads"), useTableAnswer("processes"), useTableAnswer("scope_names"), useTableAnswer("counter_names"), useTableAnswer("steps")];
  const [order, threads, processes, scopeNames, counterNames, steps] = answers.map(({ answer }) => answer);
  const failure = answers.find(({ failure }) => failure !== undefined)?.failure;
  const tables = entry.value?.tables ?? {};
  if (!tables["lane_order"]) return <p class="empty">{manifest.value.live ? WAITING : "This capture has no times, so there is no timeline."}</p>;
  const isHere = order && threads && (processes || !tables["processes"]) && (scopeNames || !tables["scope_names"]) && (counterNames || !tables["counter_names"]) && (steps || !tables["steps"]);
  if (!isHere && failure) return <p class="failure">The timeline failed: {failure}</p>;
  if (!isHere) return <p class="empty">Reading the lanes.</p>;
  const none = { rows: 0, columns: {} };
  return <OfTables key={capture.value} tables={{ order, threads, processes: processes ?? none, scopeNames, counterNames }} steps={steps} />;
}

type Tables = ConstructorParameters<typeof LaneSource>[4];

function OfTables({ tables, steps }: { tables: Tables; steps: ReturnType<typeof useTable> }) {
  const host = useRef<HTMLDivElement>(null);
  const picture = useRef<Picture>();
  const [made, setMade] = useState<Picture>();
  const { lanes, duration } = entry.value!;
  useEffect(() => {
    const source: LaneSource = new LaneSource(client(), capture.peek(), lanes, duration, tables, () => picture.current?.tileCame());
    shownLanes.value = source;
    if (picture.current) return picture.current.use(source, steps);
    picture.current = new Picture(host.current!, source, steps);
    setMade(picture.current);
  }, [versionOf(tables, lanes), steps?.rows]);
  useEffect(
    () => () => {
      picture.current?.end();
      picture.current = undefined;
      shownLanes.value = undefined;
    },
    [],
  );
  useCommands(useMemo(() => commandsOf(made), [made]));
  useLocalKeys(LOCAL_KEYS);
  return (
    <div class="lanes">
      <Bar />
      <div
        class={`lanes-picture${measuring.value ? " measuring" : ""}`}
        ref={host}
        tabIndex={0}
        role="application"
        aria-label={`Timeline. ${KEYS} Arrow keys move, comma and full stop choose the interval before and after.`}
        onKeyDown={(event) => made?.onKey(event)}
      >
        {made && <Hint picture={made} />}
        {made && <Tip picture={made} states={lanes.states} />}
      </div>
      {made && <LaneTable picture={made} duration={duration} />}
    </div>
  );
}

// What changes while the pointer moves is in parts of its own, so that the rest is not rendered with each frame.

function Hint({ picture }: { picture: Picture }) {
  return picture.hint.value ? <p class="lanes-hint">{picture.hint.value}</p> : null;
}

/** Changes with the content of the lanes. Tables of a live recording come again and again, mostly the same. */
function versionOf({ order, threads }: Tables, lanes: LanesEntry): string {
  const running = order.rows > 0 ? numbers(order, "running").reduce((sum, ns) => sum + ns, 0) : 0;
  return [order.rows, running, threads.rows, JSON.stringify(lanes)].join(" ");
}

function commandsOf(picture: Picture | undefined): Command[] {
  const zoomToSelection = () => {
    const selected = picture?.selectedSpan();
    if (!picture || !selected) return;
    const { from, to } = selected;
    const margin = (to - from) * 0.05;
    picture.show(bounded(from - margin, to + margin, picture.target.duration()));
  };
  return [
    { title: "Zoom to the selected time or steps", group: "Timeline", keys: ["z"], run: zoomToSelection },
    { title: "Show the whole recording", group: "Timeline", keys: ["Z"], run: () => picture?.show({ from: 0, to: picture.target.duration() }) },
    { title: "Measure between two points", group: "Timeline", keys: ["m"], run: toggleMeasuring },
    { title: "Show or hide the critical path", group: "Timeline", run: () => toggleEvidence("path") },
    { title: "Show or hide wake-ups", group: "Timeline", run: () => toggleEvidence("wakeups") },
    { title: "Show or hide samples", group: "Timeline", run: () => toggleEvidence("samples") },
    ...SORTS.map((by): Command => ({ title: `Sort lanes by ${SORTS_SAID[by]}`, group: "Timeline", run: () => adjust({ laneSort: by }) })),
  ];
}

function Bar() {
  const states = entry.value!.lanes.switches ? ["running", "woken", "lock", "condition", "sleep", "file", "network", "page_fault", "other"] : ["running", "unknown"];
  const table = useTable("steps");
  const ends = table && table.rows > 0 ? loopsOf(table)[0].end : new Float64Array();
  const between = measured.value && measureOf(...measured.value, ends);
  return (
    <div class="lanes-bar">
      <label>
        Sort by{" "}
        <select value={laneSort.value} onChange={(event) => adjust({ laneSort: event.currentTarget.value as Sort })}>
          {SORTS.map((by) => (
            <option key={by} value={by}>
              {SORTS_SAID[by]}
            </option>
          ))}
        </select>
      </label>
      {entry.value!.tables["path"] && <Switch text="Critical path" name="path" />}
      {entry.value!.lanes.switches && <Switch text="Wake-ups" name="wakeups" />}
      <Switch text="Samples" name="samples" />
      <button aria-pressed={measuring.value} onClick={toggleMeasuring} title="Measure between two points (m)">
        Measure
      </button>
      {between && (
        <output>
          {weight(between.length, "ns")}
          {between.steps > 0 && `, ${between.steps === 1 ? "1 step ends" : `${grouped(between.steps)} steps end`} in it`}
        </output>
      )}
      <ul class="lanes-legend" aria-label="States">
        {states.map((state) => (
          <li key={state} class={`state-${state}`}>
            {state === "woken" ? "runnable" : said(state)}
          </li>
        ))}
      </ul>
    </div>
  );
}

function Switch({ text, name }: { text: string; name: Evidence }) {
  return (
    <button aria-pressed={shows(name)} onClick={() => toggleEvidence(name)}>
      {text}
    </button>
  );
}

/** What is under the pointer, in words. */
function Tip({ picture, states }: { picture: Picture; states: string[] }) {
  useEscape(useCallback(() => picture.target.hover(undefined), [picture]));
  const pointed = picture.pointed.value;
  if (!pointed?.lane) return null;
  const { x, y, time, lane, interval, scope } = pointed;
  const left = x > 420 ? undefined : `${x + 14}px`;
  const place = { left, right: left === undefined ? `calc(100% - ${x - 10}px)` : undefined, top: `${y + 14}px` };
  return (
    <div class="lanes-tip" style={place} role="presentation">
      <b>{lane.name}</b> {lane.tid >= 0 && !lane.name.endsWith(` ${lane.tid}`) && <span class="soft">{lane.tid}</span>} at {moment(time)}
      {scope && (
        <div>
          {scope.name}: {weight(scope.end - scope.start, "ns")}
        </div>
      )}
      {interval && (
        <div>
          {lane.lane < 0 ? (shownLanes.value?.threadNames[interval.thread] ?? "") : stateText(interval.state, states)} for {weight(interval.end - interval.start, "ns")}
          {lane.lane >= 0 && interval.state === 0 && interval.cpu >= 0 && ` on CPU ${interval.cpu}`}
          {interval.state > 2 && interval.waker >= 0 && `, woken by ${shownLanes.value?.threadNames[interval.waker] ?? interval.waker}`}
        </div>
      )}
      {!interval && !scope && lane.lane >= 0 && at.value === undefined && <div class="soft">Click for details.</div>}
    </div>
  );
}

/** A state in words. */
export function stateText(state: number, states: string[]): string {
  if (state === 1) return "preempted, waits for a CPU";
  if (state === 2) return "woken, waits for a CPU";
  const name = states[state] ?? "unknown";
  return state < 3 || name === "unknown" || name === "no_stack" ? said(name) : `blocked: ${said(name)}`;
}

/** The lanes in view, for screen readers. */
function LaneTable({ picture, duration }: { picture: Picture; duration: number }) {
  const lanes = picture.visible.value;
  const share = (ns: number) => `${percent((ns / Math.max(1, duration)) * 100)} %`;
  return (
    <div class="unseen">
      <table>
        <caption>Lanes in view: shares of the recording</caption>
        <thead>
          <tr>
            {["Lane", "Running", "Runnable", "Blocked", "Critical path", "Switches"].map((head) => (
              <th key={head} scope="col">
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {lanes.map((lane) => (
            <tr key={lane.lane}>
              <th scope="row">
                {lane.name}
                {selection.value.threads?.includes(lane.lane) && ", selected"}
              </th>
              {[lane.running, lane.runnable, lane.blocked, lane.path].map((ns, index) => (
                <td key={index}>{share(ns)}</td>
              ))}
              <td>{grouped(lane.switches)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
