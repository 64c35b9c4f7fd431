// A real browser, and the pages that the Rust crate writes, for tests of what a reader sees and does.

import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { pathToFileURL } from "node:url";
import { chromium, type Browser, type Locator, type Page } from "playwright-core";

const CHROMIUM = [process.env["CHROMIUM"], "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(
  (path) => path && existsSync(path),
);
/** No network beyond the pages under test, not even to ask for updates. */
const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

const folder = mkdtempSync(join(tmpdir(), "stepscope-web-"));
let browser: Browser | undefined;

after(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** The example program of crates/view, built with the features of the whole workspace: others would build its libraries again. */
let drawing: string | undefined;

function drawingProgram(): string {
  const build = ["build", "--quiet", "--workspace", "--example", "folded_to_svg", "--message-format", "json"];
  const messages = execFileSync("cargo", build, { cwd: join(process.cwd(), ".."), stdio: ["ignore", "pipe", "ignore"], maxBuffer: 1 << 28, encoding: "utf8" });
  const program = /"executable":"([^"]*folded_to_svg)"/.exec(messages);
  if (!program) throw new Error("cargo names no program");
  return program[1];
}

/** Writes a flame graph from folded stacks; returns its address. */
export function written(name: string, folded: string, ...flags: string[]): string {
  const out = join(folder, name);
  const stacks = join(folder, `${name}.folded`);
  writeFileSync(stacks, folded);
  execFileSync((drawing ??= drawingProgram()), [stacks, out, ...flags], { stdio: ["ignore", "ignore", "ignore"] });
  return pathToFileURL(out).href;
}

/** Writes a page as it is; returns its address. */
export function saved(name: string, text: string): string {
  const out = join(folder, name);
  writeFileSync(out, text);
  return pathToFileURL(out).href;
}

/** Why there can be no browser tests here, if there cannot. */
function lacking(): string | undefined {
  if (!CHROMIUM) return "chromium is missing (Debian package: chromium)";
  try {
    execFileSync("cargo", ["--version"], { stdio: "ignore" });
    return undefined;
  } catch {
    return "cargo is missing";
  }
}

const reason = lacking();

/** Where an element is. An element that the page replaces meanwhile has no place: it is looked for again. */
export async function boxOf(element: Locator): Promise<{ x: number; y: number; width: number; height: number }> {
  for (let attempt = 0; attempt < 20; attempt++) {
    const box = await element.boundingBox();
    if (box) return box;
  }
  throw new Error(`${element} is not drawn`);
}

export interface Window {
  width?: number;
  height?: number;
  colorScheme?: "light" | "dark";
  /** Whether the page is served from this machine, so that it may ask for more. */
  served?: boolean;
  /** Messages of the console that this test causes. */
  expected?: RegExp;
}

/** A test that is skipped, with a line for the summary. */
export function skipped(name: string, reason: string): void {
  test(name, { skip: reason }, () => {});
  console.log(`skipped: ${name}: ${reason}`);
}

/**
 * A test with a page of its own. It fails too if the page throws, logs an error (as for a violation of its content
 * security policy), opens a dialog or asks for anything but itself.
 */
export function browserTest(name: string, body: (page: Page) => Promise<void>, window: Window = {}): void {
  if (reason) return skipped(name, reason);
  test(name, async () => {
    browser ??= await chromium.launch({ executablePath: CHROMIUM!, args: FLAGS });
    const viewport = { width: window.width ?? 1200, height: window.height ?? 800 };
    const context = await browser.newContext({ viewport, colorScheme: window.colorScheme ?? "light" });
    // A busy machine fails no test.
    context.setDefaultTimeout(120_000);
    const page = await context.newPage();
    const faults: string[] = [];
    page.on("pageerror", (error) => faults.push(`error: ${error.message}`));
    page.on("console", (message) => message.type() === "error" && !window.expected?.test(message.text()) && faults.push(`console: ${message.text()}`));
    page.on("dialog", (dialog) => {
      faults.push(`dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    page.on("request", (request) => {
      if (!(window.served ? /^(blob:|http:\/\/127\.0\.0\.1:)/ : /^(file|about|blob):/).test(request.url())) faults.push(`request: ${request.url()}`);
    });
    try {
      await body(page);
    } finally {
      await context.close();
    }
    if (faults.length > 0) throw new Error(faults.join("\n"));
  });
}
