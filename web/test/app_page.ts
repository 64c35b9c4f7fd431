// Pages of the app: of a recorded run, and of reports that a test draws.

import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { buildSync } from "esbuild";
import type { Page } from "playwright-core";
import { browserTest, saved, skipped, type Window } from "./browser.ts";
import { lackingProgram, PROGRAM, PROJECT } from "./served.ts";

/** Two scenarios, recorded: of one, two variants. */
const RUN = join(PROJECT, "stepscope-runs/run");

const folder = mkdtempSync(join(tmpdir(), "stepscope-app-"));
after(() => rmSync(folder, { recursive: true, force: true }));

let recorded: string | undefined;

/** The text of the page that `stepscope report` writes of a recorded run. */
function recordedText(): string {
  // A page made before, for work on the scripts alone.
  const made = process.env["STEPSCOPE_APP_PAGE"];
  if (recorded === undefined && made) recorded = readFileSync(made, "utf8");
  if (recorded === undefined) {
    const out = join(folder, "app.html");
    execFileSync(PROGRAM, ["report", RUN, "-o", out], { stdio: ["ignore", "ignore", "inherit"] });
    recorded = readFileSync(out, "utf8");
  }
  return recorded;
}

/** Why there is no page of a recorded run, if there is none. */
export function lackingPage(): string | undefined {
  return process.env["STEPSCOPE_APP_PAGE"] ? undefined : lackingProgram();
}

/** A browser test of the page of a recorded run. */
export function appTest(name: string, body: (page: Page) => Promise<void>, window: Window = {}): void {
  const reason = lackingPage();
  if (reason) return skipped(name, reason);
  browserTest(name, body, window);
}

/** The page of a recorded run; returns its address. */
export function recordedPage(): string {
  return saved("recorded.html", recordedText());
}

/** The page of this manifest, without tables of captures; returns its address. */
export function drawnPage(name: string, manifest: unknown): string {
  const options = { bundle: true, write: false, format: "iife", define: { WORKER_SCRIPT: '""' } } as const;
  const script = buildSync({ ...options, entryPoints: ["src/app/main.tsx"], jsx: "automatic", jsxImportSource: "preact" }).outputFiles[0].text;
  const style = buildSync({ ...options, entryPoints: ["src/app/app.css"] }).outputFiles[0].text;
  const json = JSON.stringify(manifest).replaceAll("<", "\\u003c");
  return saved(
    name,
    `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>app</title><style>${style}</style><div id="app"></div>` +
      `<script type="application/json" id="manifest">${json}</script><script>${script.replaceAll("</script", "<\\/script")}</script></html>`,
  );
}

/** Opens a page at a hash and waits until it is drawn. */
export async function open(page: Page, address: string, hash = ""): Promise<void> {
  await page.goto(`${address}${hash}`);
  await page.waitForFunction(() => performance.getEntriesByName("stepscope-ready").length > 0);
}

/** Whether anything of the page reaches beyond its right edge. */
export function overflows(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const wide = document.documentElement.scrollWidth > innerWidth ? ["the page"] : [];
    const tables = [...document.querySelectorAll<HTMLElement>(".table .scroll")].filter(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth + 1);
    return [...wide, ...tables.map((table) => table.closest("figure")?.id ?? "a table")];
  });
}
