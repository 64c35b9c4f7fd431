// The flame graph of what is selected.

import { signal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { heaviestModules, legendOf } from "../../draw/flame_colours.ts";
import { css } from "../../draw/ink.ts";
import type { Order } from "../../profile/address.ts";
import type { Flame } from "../../profile/flame.ts";
import type { Colours } from "../../tree.ts";
import type { FunctionNames } from "../../worker/flame.ts";
import { counted, grouped, percent, weight as quantity } from "../../units.ts";
import { useCommands, useLocalKeys, type Command, type LocalKeys } from "../commands.ts";
import { adjust, chosenFunction, entry, go, inverted, order, search, startUp, weight, zoom } from "../state.ts";
import { isDark } from "../theme.ts";
import { useNamed, weighed, weighing } from "./asked.ts";
import { functionItems } from "./menu.tsx";
import { clipped, Picture, Trail } from "./picture.tsx";
import { hitsOf, matched } from "./search.ts";

const ORDER_TITLES: Record<Order, string> = { left: "Heaviest first", name: "By name", time: "In time order" };

/** What colours mean is a preference of the reader, as the theme is. */
const colours = signal<Colours>("kind");

const COMMANDS: Command[] = [
  { title: "Flame graph: leaves at the root, heaviest first (inverted)", group: "Flame graph", keys: ["i"], run: () => go({ inverted: !inverted.value, zoom: "" }) },
  { title: "Flame graph: colour by module or kind", group: "Flame graph", keys: ["c"], run: () => (colours.value = colours.value === "kind" ? "module" : "kind") },
  { title: "Flame graph: search functions", group: "Flame graph", keys: ["/"], run: () => document.querySelector<HTMLElement>(".flame .search input")?.focus() },
  { title: "Flame graph: owned code only", group: "Flame graph", keys: ["o"], run: () => toggleOwned() },
];

const LOCAL_KEYS: LocalKeys[] = [
  { title: "Walk the tree", group: "Flame graph", keys: ["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight"] },
  { title: "Zoom to the frame, to its caller, to all", group: "Flame graph", keys: ["Enter", "Backspace", "Escape"] },
  { title: "Zoom in, out", group: "Flame graph", keys: ["+", "-"] },
  { title: "Scroll", group: "Flame graph", keys: ["PageUp", "PageDown"] },
  { title: "Transforms of the frame", group: "Flame graph", keys: ["ContextMenu", "Shift+F10"] },
];

function toggleOwned(): void {
  const rest = weighing.value.transforms.filter(({ kind }) => kind !== "owned");
  const had = rest.length < weighing.value.transforms.length;
  go({ transforms: had ? rest : [...rest, { kind: "owned", name: "" }], zoom: "" });
}

export function FlameGraph() {
  useCommands(COMMANDS);
  useLocalKeys(LOCAL_KEYS);
  const given = { ...weighing.value, order: order.value, inverted: inverted.value, foldsStartUp: !startUp.value };
  const { answer, functions, failure, loading } = useNamed("flame", given);
  const flame = answer?.flame;
  const names = functions?.names;
  const hits = useMemo(() => names && hitsOf(names, search.value), [names, search.value]);
  const found = useMemo(() => (flame && hits ? matched(flame, hits) : undefined), [flame, hits]);
  const hash = Number.parseInt(zoom.value, 16) || 0;
  const zoomTo = (hash: number) => go({ zoom: hash === 0 ? "" : hash.toString(16) });
  const { unit } = weighed.value;
  return (
    <div class="flame" data-loading={loading}>
      <div class="bar">
        <WeightChoice />
        <label class="choice">
          <span>Order</span>
          <select value={order.value} onChange={(event) => go({ order: event.currentTarget.value as Order, zoom: "" })}>
            {Object.entries(ORDER_TITLES).map(([value, title]) => (
              <option key={value} value={value}>
                {title}
              </option>
            ))}
          </select>
        </label>
        <button aria-pressed={inverted.value} disabled={order.value === "time"} title="Leaves at the root, heaviest first (i)" onClick={() => go({ inverted: !inverted.value, zoom: "" })}>
          Inverted
        </button>
        {functions?.hasOwned && (
          <button aria-pressed={given.transforms.some(({ kind }) => kind === "owned")} title="Code that is not owned belongs to its nearest owned caller (o)" onClick={toggleOwned}>
            Owned only
          </button>
        )}
        {flame && functions && <SharedCallers flame={flame} functions={functions} />}
        <button title="What the colours mean (c)" onClick={() => (colours.value = colours.value === "kind" ? "module" : "kind")}>
          Colours: {colours.value}
        </button>
        <span class="search">
          <input
            type="search"
            placeholder="Search functions (/)"
            aria-label="Search functions by regular expression"
            spellcheck={false}
            autocomplete="off"
            value={search.value}
            onInput={(event) => adjust({ search: event.currentTarget.value })}
            onKeyDown={(event) => event.key === "Escape" && (adjust({ search: "" }), event.preventDefault())}
          />
          <output aria-live="polite">
            {flame && found && `${percent((found.weight * 100) / (flame.total[0] || 1))} % matched, ${quantity(found.weight, unit)}`}
          </output>
        </span>
      </div>
      {failure && <p class="failure">The flame graph failed: {failure}</p>}
      {flame && functions && flame.size > 1 && (
        <>
          <Trail flame={flame} functions={functions} zoom={hash} onZoom={zoomTo} />
          <Picture
            flame={flame}
            functions={functions}
            unit={unit}
            label={`Flame graph of ${weightTitle()}`}
            colours={colours.value}
            hits={hits}
            zoom={hash}
            onZoom={zoomTo}
            chosen={chosenFunction.value}
            onChoose={(index) => adjust({ function: functions.names[index] })}
            items={(node) => [
              { title: "Zoom to it", run: () => zoomTo(flame.hashes[node]) },
              ...functionItems(functions, flame.functions[node], inverted.value || order.value === "time" ? undefined : flame.hashes[node]),
            ]}
          />
          <p class="status">
            <Legend flame={flame} functions={functions} />
            <span class="soft">
              {quantity(flame.total[0], unit)}, {counted(flame.size - 1, "frame")}
              {flame.pruned > 0 && (order.value === "time" ? `; ${counted(flame.pruned, "moment")} joined with their neighbours` : `; ${grouped(flame.pruned)} too narrow`)}
            </span>
          </p>
        </>
      )}
      {flame && flame.size <= 1 && <p class="empty">No {weightTitle()} in this selection.</p>}
    </div>
  );
}

/** Folded roots that are described. */
const DESCRIBED = 4;

/** Shows or folds the callers that stacks share, and says what is folded. */
export function SharedCallers({ flame: { folded }, functions }: { flame: Flame; functions: Pick<FunctionNames, "names"> }) {
  if (startUp.value) {
    return (
      <button aria-pressed onClick={() => go({ startUp: false })}>
        Shared callers
      </button>
    );
  }
  if (folded.length === 0) return null;
  const count = folded.reduce((sum, { runs }) => sum + runs.reduce((sum, run) => sum + run.length, 0), 0);
  const said = folded.slice(0, DESCRIBED).map(({ runs, weight, whole }) => {
    const names = runs.map((run) => run.map((index) => clipped(functions.names[index])).join(" › ")).join("; ");
    const rest = whole > weight ? ` The other ${percent(((whole - weight) * 100) / whole)} % is drawn with them.` : "";
    return `Not drawn: ${names}.${rest}`;
  });
  if (folded.length > DESCRIBED) said.push(`And callers of ${grouped(folded.length - DESCRIBED)} more roots.`);
  return (
    <button title={said.join("\n")} onClick={() => go({ startUp: true })}>
      Show {counted(count, "shared caller")}
    </button>
  );
}

/** The shown weight in words. */
export function weightTitle(): string {
  const { weight, event, unit } = weighed.value;
  if (weight === "offcpu") return "off-CPU time";
  if (weight === "wall") return "on-CPU and off-CPU time";
  const name = entry.value?.events[event]?.name;
  if (weight !== "cpu") return name?.toLowerCase() ?? "";
  return unit === "ns" ? "on-CPU time" : (name ?? "samples");
}

/** Chooses what widths and columns stand for: only what the capture has. */
export function WeightChoice() {
  const { events = [], event: primary = 0, tables = {} } = entry.value ?? {};
  const hasWaits = (tables["waits"] ?? 0) > 0;
  const choices: [string, string][] = [
    ["cpu", events[primary]?.unit === "ns" || events.length === 0 ? "CPU time" : (events[primary]?.name ?? "CPU time")],
    ...(hasWaits ? ([["offcpu", "Off-CPU time"], ["wall", "Both (wall)"]] as [string, string][]) : []),
    ...events.map(({ name }, index): [string, string] => [`event-${index}`, name]).filter((_, index) => index !== primary),
  ];
  const shown = choices.some(([value]) => value === weight.value) ? weight.value : "cpu";
  return (
    <label class="choice">
      <span>Weight</span>
      <select value={shown} onChange={(event) => go({ weight: event.currentTarget.value, zoom: "" })}>
        {choices.map(([value, title]) => (
          <option key={value} value={value}>
            {title}
          </option>
        ))}
      </select>
    </label>
  );
}

function Legend({ flame, functions }: Pick<Parameters<typeof Picture>[0], "flame" | "functions">) {
  const lines = useMemo(() => {
    const modules = colours.value === "module" ? heaviestModules(flame, functions) : [];
    return legendOf(functions, flame, colours.value, modules, isDark.value);
  }, [flame, functions, colours.value, isDark.value]);
  return (
    <span class="legend">
      {lines.map(({ ink, name }) => (
        <span key={name}>
          <i style={{ background: css(ink) }} />
          {name.length > 30 ? `${name.slice(0, 29)}…` : name}
        </span>
      ))}
    </span>
  );
}

