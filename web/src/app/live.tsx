// What a live recording shows and offers: its state, pause, the last seconds, marks of moments, save.

import { batch, computed, signal } from "@preact/signals";
import type { Client } from "../data/client.ts";
import { Live, type Connection } from "../data/live.ts";
import type { CaptureEntry } from "../profile/columns.ts";
import type { Growth, LiveState } from "../worker/store.ts";
import { grouped, weight as quantity } from "../units.ts";
import { useCommands, type Command } from "./commands.ts";
import { Icon } from "./icons.tsx";
import { go, grown, known, last, link, manifest, selection } from "./state.ts";

/** What the recording says of itself; `undefined` if the page shows none that is live. */
export const liveState = signal<LiveState | undefined>(undefined);
const connection = signal<Connection>("connecting");
const paused = signal(false);
/** Messages that this page lost, because it was too slow. */
const dropped = signal(0);
/** How often the connection was lost, and for how long in all, in ms. */
const cuts = signal({ count: 0, time: 0 });
/** The program's last answer. */
const said = signal<{ text: string; failed: boolean } | undefined>(undefined);
let live: Live | undefined;

/** Lengths of the part that is shown, in seconds. */
const LENGTHS = [1, 5, 10, 30, 60];

/** Follows the recording. */
export function follow(token: string, client: Client): void {
  client.grown = grow;
  live = new Live(token, client, {
    connection: (state) => (connection.value = state),
    started: (count) => (dropped.value += count),
    returned: (after) => (cuts.value = { count: cuts.value.count + 1, time: cuts.value.time + after }),
  });
}

/** Takes what has arrived: the page shows more rows of a longer recording. Before the first snapshot, rows have no steps and events have no units. */
function grow({ rows, state }: Growth): void {
  batch(() => {
    liveState.value = state;
    const [first, ...others] = manifest.peek().captures;
    if (!first || state.snapshot === 0) return;
    const tables: Record<string, number> = { ...state.entry.tables };
    for (const [name, count] of Object.entries(rows)) tables[name.slice(name.indexOf("/") + 1)] = count;
    const entry: CaptureEntry = { ...first, ...state.entry, duration: state.until, tables };
    manifest.value = { ...manifest.peek(), title: state.title, captures: [entry, ...others] };
    known.value = state.named;
    grown.value++;
  });
}

function pause(): void {
  if (!live) return;
  if (paused.value) live.resume();
  else live.pause();
  paused.value = !paused.value;
}

async function ask(command: Parameters<Live["ask"]>[0], doing: string): Promise<void> {
  if (!live) return;
  said.value = { text: doing, failed: false };
  said.value = await live.ask(command).then(
    (text) => ({ text, failed: false }),
    (error: Error) => ({ text: error.message, failed: true }),
  );
}

const mark = () => ask({ command: "mark" }, "Marking …");
const save = (seconds?: number) => ask(seconds ? { command: "save", seconds } : { command: "save" }, "Saving …");

/** Shows the last seconds, or everything. */
function showLast(seconds: number): void {
  const { from: _from, to: _to, ...rest } = selection.value;
  go({ last: seconds > 0 ? seconds * 1e9 : undefined, selection: rest });
}

const COMMANDS: Command[] = [
  { title: "Pause or go on", group: "Live", keys: ["Alt+p"], run: pause },
  { title: "Mark this moment", group: "Live", keys: ["Alt+m"], run: () => void mark() },
  { title: "Save the last minute as a capture", group: "Live", run: () => save(60) },
  { title: "Save everything as a capture", group: "Live", run: () => save() },
  ...LENGTHS.map((seconds): Command => ({ title: `Show the last ${seconds} s`, group: "Live", run: () => showLast(seconds) })),
];

/** The state in one word or two, and more of it. */
const status = computed<{ tone: "on" | "off" | "alarm"; text: string; detail: string }>(() => {
  const state = liveState.value;
  if (state?.state === "finished") return { tone: "off", text: "Ended", detail: `The recording ended and its capture is finished: ${state.folder}. This page still shows the live rows.` };
  if (state?.state === "ended") return { tone: "off", text: "Ended", detail: "The recording ended. Its capture is being made." };
  if (state?.state === "killed") return { tone: "alarm", text: "Recorder ended early", detail: `The recorder was killed. What it had written is kept: run stepscope recover ${state.folder}` };
  if (state?.state === "failed") return { tone: "alarm", text: "Cannot follow", detail: state.problem };
  if (connection.value === "lost") return { tone: "alarm", text: "Connection lost", detail: "The page tries to connect again. It shows the rows up to the loss; later ones come when the connection is there." };
  if (connection.value === "ended") return { tone: "off", text: "Ended", detail: "The recording ended." };
  if (!state || state.state === "waiting") return { tone: "off", text: "Waiting", detail: "The recording has no rows yet." };
  if (paused.value) return { tone: "off", text: "Paused", detail: "The recording goes on; the page shows the moment of the pause." };
  if (state.behind > 3e9) return { tone: "alarm", text: `${quantity(state.behind, "ns")} behind`, detail: "The machine is busy, and the recorded program goes first." };
  const nameless = state.until - state.named;
  if (nameless > 2e9) return { tone: "on", text: "Live, naming", detail: `Steps are up to date. Threads and functions are ${quantity(nameless, "ns")} behind: their names are read from debug information.` };
  return { tone: "on", text: "Live", detail: "The page shows the program up to half a second ago." };
});

/** What is missing from the picture, in sentences. */
const losses = computed<string[]>(() => {
  const state = liveState.value;
  const count = (number: number, noun: string) => `${grouped(number)} ${noun}${number === 1 ? "" : "s"}`;
  const found = [
    state?.lost ? `${count(state.lost, "record")} lost: they came faster than the recorder could read them.` : "",
    state?.lostMarks ? `${count(state.lostMarks, "mark")} lost: they came faster than the recorder could read them.` : "",
    state?.summed ? "There are too many waits or samples for single rows: they are added up by thread and stack. Sums are exact." : "",
    cuts.value.count
      ? `Connection lost ${cuts.value.count === 1 ? "once" : `${cuts.value.count} times`}, for ${quantity(cuts.value.time * 1e6, "ns")}. The page got all rows again that are held; the capture has those before, too.`
      : "",
    dropped.value ? `${count(dropped.value, "message")} dropped: this page was too slow, and got everything again.` : "",
  ];
  return found.filter(Boolean);
});

export function LiveBar() {
  if (!manifest.value.live) return null;
  return <Bar />;
}

function Bar() {
  useCommands(COMMANDS);
  const { tone, text, detail } = status.value;
  const state = liveState.value;
  const goesOn = state ? state.state === "waiting" || state.state === "recording" : connection.value !== "ended";
  // A link may name another length.
  const shown = (last.value ?? 0) / 1e9;
  const lengths = shown > 0 && !LENGTHS.includes(shown) ? [shown, ...LENGTHS] : LENGTHS;
  const isServed = connection.value === "open";
  return (
    <div class="live" role="group" aria-label="Live recording">
      <span class={`state ${tone}`} role="status" title={detail}>
        {text}
        {state && <span class="time"> {quantity(state.until, "ns")}</span>}
      </span>
      {goesOn && (
        <button onClick={pause} aria-pressed={paused.value} title="Pause or go on (Alt+P)">
          {paused.value ? "Go on" : "Pause"}
        </button>
      )}
      <select aria-label="Part that is shown" value={String(shown)} onChange={(event) => showLast(Number(event.currentTarget.value))}>
        <option value="0">Everything held</option>
        {lengths.map((seconds) => (
          <option key={seconds} value={String(seconds)}>
            Last {seconds} s
          </option>
        ))}
      </select>
      {goesOn && (
        <button onClick={mark} title="Mark this moment (Alt+M)">
          Mark
        </button>
      )}
      {goesOn && (
        <select aria-label="Save as a capture" value="" onChange={saveChosen}>
          <option value="" disabled hidden>
            Save
          </option>
          <option value="10">Save the last 10 s</option>
          <option value="60">Save the last 60 s</option>
          <option value="0">Save everything</option>
        </select>
      )}
      {state?.state === "finished" && !isServed && (
        <span class="said">
          Show the capture: <code>stepscope view {state.folder}</code>
        </span>
      )}
      {state?.state === "finished" && isServed && (
        <button onClick={() => location.reload()} title="Read the finished capture: exact weights, critical path, sources">
          Show the capture
        </button>
      )}
      {state && state.moments.length > 0 && <Moments state={state} />}
      {losses.value.length > 0 && (
        <details class="losses">
          <summary aria-label="What is missing">
            <Icon name="warning" /> {losses.value.length}
          </summary>
          <ul>
            {losses.value.map((loss) => (
              <li key={loss}>{loss}</li>
            ))}
          </ul>
        </details>
      )}
      {said.value && (
        <span class={said.value.failed ? "said failed" : "said"} role="status" title={said.value.text}>
          {said.value.text}
        </span>
      )}
    </div>
  );
}

function saveChosen(event: preact.TargetedEvent<HTMLSelectElement>): void {
  const seconds = Number(event.currentTarget.value);
  event.currentTarget.value = "";
  void save(seconds || undefined);
}

/** Links to a second around each marked moment. */
function Moments({ state }: { state: LiveState }) {
  const around = (time: number) => link({ screen: "explore", last: undefined, selection: { from: Math.max(0, time - 0.5e9), to: time + 0.5e9 } });
  return (
    <details class="moments">
      <summary>{state.moments.length === 1 ? "1 mark" : `${state.moments.length} marks`}</summary>
      <ul>
        {state.moments.map(({ time, text }, index) => (
          <li key={index}>
            <a href={around(time)}>
              {quantity(time, "ns")} {text}
            </a>
          </li>
        ))}
      </ul>
    </details>
  );
}
