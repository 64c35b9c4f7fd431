// Captures from a stranger, served and in a single file: their names do nothing, they load nothing, and the page answers as ever.

import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import type { Page } from "playwright-core";
import { open } from "./app_page.ts";
import { browserTest, saved, skipped, type Window } from "./browser.ts";
import { HOSTILE, lackingHostile, lackingProgram, PROGRAM, view } from "./served.ts";

const FOLDED = [
  "main;</script><script>document.title='ran'</script>;<img src=x onerror=document.title='ran'> 5",
  `main;${"n::".repeat(200_000)};inner 3`,
  `"><svg onload=document.title='ran'>;{{constructor}};javascript:alert(1) 2`,
];

const SCREENS = ["#verdict", "#explore", "#explore?pane=functions", "#explore?pane=tree", "#explore?pane=source", "#explore?weight=offcpu", "#explore?weight=event-1", "#compare", "#tables"];

const folder = mkdtempSync(join(tmpdir(), "stepscope-hostile-"));
after(() => rmSync(folder, { recursive: true, force: true }));

/** A test that needs what was built, or says that it is missing. */
function builtTest(name: string, missing: string | undefined, body: (page: Page) => Promise<void>, window: Window = {}): void {
  if (missing) return skipped(name, missing);
  browserTest(name, body, window);
}

const folded = (name: string, body: (page: Page) => Promise<void>, window?: Window) => builtTest(name, lackingProgram(), body, window);
const hostile = (name: string, body: (page: Page) => Promise<void>, window?: Window) => builtTest(name, lackingHostile(), body, window);

let text: string | undefined;

function page(): string {
  if (text === undefined) {
    const [stacks, out] = [join(folder, "a.folded"), join(folder, "a.html")];
    writeFileSync(stacks, FOLDED.join("\n"));
    execFileSync(PROGRAM, ["report", stacks, "-o", out], { stdio: "ignore" });
    text = readFileSync(out, "utf8");
  }
  return saved("hostile.html", text);
}

let written = false;

/** The folder of a hostile capture. */
function capture(name: string): string {
  if (!written) execFileSync(HOSTILE, [folder], { stdio: ["ignore", "ignore", "inherit"] });
  written = true;
  return join(folder, `${name}.capture`);
}

/** That no name became an element, all are cut, and the page still answers to keys. */
async function isHarmless(tab: Page, at: string): Promise<void> {
  assert.notEqual(await tab.title(), "ran", at);
  assert.equal(await tab.locator("img, svg[onload], main script").count(), 0, at);
  assert.ok((await tab.evaluate(() => document.getElementById("app")!.innerHTML.length)) < 3_000_000, `${at}: names are cut`);
  await tab.keyboard.press("Control+k");
  await tab.locator("dialog.palette input").waitFor();
  await tab.keyboard.press("Escape");
  await tab.locator("dialog").waitFor({ state: "detached" });
  assert.equal(await tab.locator(".failure").count(), 0, at);
}

folded("names of a capture neither run nor load anything", async (tab) => {
  const requests: string[] = [];
  const address = page();
  tab.on("request", (request) => requests.push(request.url()));
  for (const hash of SCREENS) {
    await open(tab, address, hash);
    await isHarmless(tab, hash);
  }
  await open(tab, address, "#explore?pane=flame");
  await tab.getByText(/\b[\d,]+ frames/).first().waitFor();
  assert.equal(await tab.locator("script:not([id]):not([type])").count(), 1, "the app's own script");
  assert.deepEqual(requests.filter((url) => !url.startsWith("file:") && !url.startsWith("blob:")), []);
});

hostile(
  "a hostile capture is served, and neither runs anything nor stops the page",
  async (tab) => {
    const served = await view(capture("names"));
    try {
      const { origin } = new URL(served.address);
      await tab.goto(`${served.address}#verdict`);
      // A name of the capture is shown as it is.
      await tab.getByText("document.title='ran'").first().waitFor();
      for (const hash of SCREENS) {
        await tab.goto(`${origin}/${hash}`);
        await tab.locator("main").waitFor();
        await isHarmless(tab, hash);
      }
      await tab.goto(`${origin}/#explore`);
      await tab.getByText(/\b[\d,]+ frames/).first().waitFor();
      await tab.locator(".lanes-picture canvas").first().waitFor();
      // Clients that send nonsense disturb neither the server nor the page.
      await Promise.all(Array.from({ length: 40 }, (_, seed) => sends(origin, nonsense(seed))));
      await tab.reload();
      await tab.locator(".lanes-picture canvas").first().waitFor();
      await isHarmless(tab, "after nonsense");
    } finally {
      await tab.close();
      await served.end();
    }
  },
  { served: true },
);

hostile("the report of a hostile capture neither runs anything nor stops the page", async (tab) => {
  const out = join(folder, "names.html");
  execFileSync(PROGRAM, ["report", capture("names"), "-o", out], { stdio: ["ignore", "ignore", "inherit"] });
  assert.ok(statSync(out).size < 15_000_000, `${statSync(out).size} bytes`);
  const address = saved("names.html", readFileSync(out, "utf8"));
  for (const hash of SCREENS) {
    await open(tab, address, hash);
    await isHarmless(tab, hash);
  }
});

const circular = "stacks that are a circle are refused";
const missing = lackingHostile();
if (missing) skipped(circular, missing);
else test(circular, () => {
  for (const command of [["view", "--no-open"], ["report", "-o", join(folder, "circle.html")], ["show", "--view", "hotspots"]]) {
    const { status, stderr } = spawnSync(PROGRAM, [...command, capture("circle")], { encoding: "utf8", timeout: 300_000 });
    assert.equal(status, 1, stderr);
    assert.match(stderr, /stacks.* refers to a parent that must come before it/);
  }
});

/** Bytes that look like a request here and there; the same for each seed. */
function nonsense(seed: number): Buffer {
  let state = seed + 1;
  const random = (below: number) => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) % below;
  const bytes = Buffer.from("GET /data/0/samples.parquet HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nAuthorization: Bearer 0\r\n\r\n");
  for (let change = 0; change < seed; change++) bytes[random(bytes.length)] = random(256);
  return bytes;
}

/** Sends bytes to a server and waits until it closes the connection. */
function sends(origin: string, bytes: Buffer): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect(Number(new URL(origin).port), "127.0.0.1", () => socket.end(bytes));
    socket.on("error", () => resolve()).on("close", () => resolve()).resume();
  });
}

folded("without scripts the page shows its first tables", async (tab) => {
  const address = page();
  const context = await tab.context().browser()!.newContext({ javaScriptEnabled: false });
  const plain = await context.newPage();
  await plain.goto(address);
  assert.ok((await plain.locator("table").count()) > 0);
  assert.match((await plain.locator("body").innerText()) ?? "", /needs scripts/);
  await context.close();
});

folded("the policy lets no other script run", async (tab) => {
  const address = page();
  const forged = text!.replace("</body>", '<p id="forged" onclick="document.title=1">x</p><script>document.title = "ran"</script></body>');
  assert.notEqual(forged, text);
  await tab.addInitScript(() => addEventListener("securitypolicyviolation", (event) => ((globalThis as { violated?: string }).violated = event.violatedDirective)));
  await open(tab, saved("forged.html", forged));
  assert.notEqual(await tab.title(), "ran");
  assert.match(await tab.evaluate(() => (globalThis as { violated?: string }).violated ?? ""), /^script-src/);
  assert.ok(address);
}, { expected: /Content Security Policy/ });
