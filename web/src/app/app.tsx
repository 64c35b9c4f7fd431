// The frame around all screens: the top bar, the screen, and what opens over it.

import { useEffect, useMemo } from "preact/hooks";
import type { Client } from "../data/client.ts";
import { SCREENS, type Screen } from "../profile/address.ts";
import type { CaptureEntry, Manifest } from "../profile/columns.ts";
import { Boundary } from "./boundary.tsx";
import { captureName } from "./capture_name.ts";
import { onKey, useCommands, useFinder, type Command } from "./commands.ts";
import { Compare } from "./compare/compare.tsx";
import { Explore } from "./explore.tsx";
import { findCaptures, findFunctions, findSteps, findTables, findThreads } from "./finders.ts";
import { Icon } from "./icons.tsx";
import { LiveBar } from "./live.tsx";
import { LoadingLine } from "./loading.tsx";
import { Overlay, openHelp, openPalette } from "./overlay.tsx";
import { capture, clearSelection, comparable, goToCapture, goToScreen, link, manifest, screen, start } from "./state.ts";
import { Tooltip } from "./tooltip.tsx";
import { Tables } from "./tables/tables.tsx";
import { cycleTheme, followTheme, theme } from "./theme.ts";
import { Verdict } from "./verdict/verdict.tsx";

const TITLES: Record<Screen, string> = { verdict: "Verdict", explore: "Explore", compare: "Compare", tables: "Tables" };
const PARTS: Record<Screen, () => preact.JSX.Element | null> = { verdict: Verdict, explore: Explore, compare: Compare, tables: Tables };

/** Reads the hash and the theme before the first picture. */
export function prepare(given: Manifest, worker: Client): void {
  start(given, worker);
  followTheme();
  addEventListener("keydown", onKey);
}

const SCREEN_COMMANDS = SCREENS.map((name) => ({ name, title: `Go to ${TITLES[name]}`, group: "Screens", keys: [`g ${name[0]}`], run: () => goToScreen(name) }));

const COMMANDS: Command[] = [
  { title: "Command palette", group: "General", keys: ["Ctrl+k", "Ctrl+K"], run: openPalette },
  { title: "Keys and help", group: "General", keys: ["?"], run: openHelp },
  { title: "Change the theme", group: "General", keys: ["T"], run: cycleTheme },
  { title: "Clear the selection", group: "Selection", keys: ["Escape"], run: clearSelection },
];

const CAPTURE_COMMANDS: Command[] = [
  { title: "Next capture", group: "Captures", keys: ["]"], run: () => turn(1) },
  { title: "Previous capture", group: "Captures", keys: ["["], run: () => turn(-1) },
];

/** In the order in which the palette lists what they find. */
const FINDERS = [findSteps, findCaptures, findFunctions, findThreads, findTables];

function turn(by: number): void {
  const count = manifest.value.captures.length;
  if (count > 1) goToCapture((capture.value + by + count) % count);
}

export function App() {
  useEffect(() => {
    performance.mark("stepscope-ready");
  }, []);
  const there = SCREENS.filter(isThere).join(" ");
  useCommands(useMemo(() => SCREEN_COMMANDS.filter(({ name }) => there.split(" ").includes(name)), [there]));
  useCommands(COMMANDS);
  const hasOthers = manifest.value.captures.length > 1;
  useCommands(useMemo(() => (hasOthers ? CAPTURE_COMMANDS : []), [hasOthers]));
  FINDERS.forEach(useFinder);
  const name = screen.value === "compare" && !comparable.value ? "verdict" : screen.value;
  const Part = PARTS[name];
  return (
    <>
      <a class="skip" href="#main" onClick={skip}>
        Skip to the content
      </a>
      <TopBar shown={name} />
      <main id="main" class={`screen on-${name}`} tabIndex={-1} aria-label={TITLES[name]}>
        <Boundary name={TITLES[name]} key={name}>
          <Part />
        </Boundary>
      </main>
      <Overlay />
      <Tooltip />
      <LoadingLine />
    </>
  );
}

/** The hash belongs to the view, so the link moves the focus itself. */
function skip(event: Event): void {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

function isThere(name: Screen): boolean {
  if (name === "compare") return comparable.value;
  return name !== "explore" || manifest.value.captures.length > 0 || screen.value === name;
}

function TopBar({ shown }: { shown: Screen }) {
  const { title, captures, live } = manifest.value;
  useEffect(() => {
    if (title) document.title = title;
  }, [title]);
  return (
    <header class="top">
      <h1 title={title}>{title}</h1>
      <nav aria-label="Screens">
        {SCREENS.filter(isThere).map((name) => (
          <a key={name} href={link({ screen: name })} aria-current={name === shown ? "page" : undefined}>
            {TITLES[name]}
          </a>
        ))}
      </nav>
      <Boundary name="The live bar">
        <LiveBar />
      </Boundary>
      {captures.length > 0 && !live && (shown === "explore" || shown === "compare") && <CaptureChooser captures={captures} />}
      <div class="tools">
        <button class="wide" onClick={openPalette} aria-keyshortcuts="Control+K">
          <Icon name="search" />
          <span>Find</span>
          <kbd aria-hidden="true">Ctrl K</kbd>
        </button>
        <button onClick={cycleTheme} title={`Theme: ${theme.value}`} aria-label={`Theme: ${theme.value}`}>
          <Icon name={theme.value} />
        </button>
        <button onClick={openHelp} title="Keys and help (?)" aria-label="Keys and help">
          <Icon name="help" />
        </button>
      </div>
    </header>
  );
}

function CaptureChooser({ captures }: { captures: CaptureEntry[] }) {
  if (captures.length === 1) {
    const name = captureName(captures[0], captures);
    // Beside the title, the same name would look like a screen.
    return name === manifest.value.title ? null : <span class="capture-name">{name}</span>;
  }
  return (
    <select class="capture" aria-label="Capture" value={capture.value} onChange={(event) => goToCapture(Number(event.currentTarget.value))}>
      {captures.map((entry, index) => (
        <option key={index} value={index}>
          {captureName(entry, captures)}
        </option>
      ))}
    </select>
  );
}
