// The timeline in a real browser, on a recorded capture, in one file without a network.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import axe from "axe-core";
import type { Page } from "playwright-core";
import { boxOf, browserTest, saved, skipped } from "./browser.ts";
import { lackingProgram, PROGRAM, PROJECT } from "./served.ts";

const HEAD = 46;
const ROW = 20;

const folder = mkdtempSync(join(tmpdir(), "stepscope-timeline-"));
after(() => rmSync(folder, { recursive: true, force: true }));

let address: string | undefined;

/** The page of a recorded capture with switches, scopes, steps and counters. */
function recorded(): string {
  if (address === undefined) {
    const out = join(folder, "steps.html");
    execFileSync(PROGRAM, ["report", join(PROJECT, "steps.capture"), "-o", out], { stdio: ["ignore", "ignore", "inherit"] });
    address = saved("timeline.html", readFileSync(out, "utf8"));
  }
  return address;
}

function timelineTest(name: string, body: (page: Page) => Promise<void>, window: Parameters<typeof browserTest>[2] = {}): void {
  const reason = lackingProgram();
  if (reason) return skipped(name, reason);
  browserTest(name, body, window);
}

/** Opens the page at a hash, and waits until all that is in view is drawn. */
async function open(page: Page, hash = "#explore"): Promise<void> {
  await page.goto(`${recorded()}${hash}`);
  await page.waitForFunction(() => performance.getEntriesByName("stepscope-timeline").length > 0);
}

/** Where the picture is in the page. */
async function picture(page: Page): Promise<{ x: number; y: number; width: number; height: number }> {
  return await boxOf(page.locator(".lanes-picture"));
}

/** The middle of the bar of the first thread, which is under the heading of its process. */
async function firstThread(page: Page): Promise<{ y: number; name: string }> {
  const names = await page.locator(".lanes tbody th").allTextContents();
  const cpus = names.filter((name) => /^CPU \d+$/.test(name)).length;
  const { y } = await picture(page);
  return { y: y + HEAD + ROW * (cpus > 0 ? cpus + 1 : 0) + ROW + ROW / 2, name: names[cpus] };
}

async function shownSpan(page: Page): Promise<[number, number] | undefined> {
  // The address follows when the picture is still.
  await page.waitForTimeout(600);
  const found = /view=(\d+)-(\d+)/.exec(page.url());
  return found ? [Number(found[1]), Number(found[2])] : undefined;
}

/** How many colours the lanes have. */
function colours(page: Page): Promise<number> {
  return page.locator(".lanes-picture canvas").evaluate((canvas: HTMLCanvasElement) => {
    const copy = document.createElement("canvas");
    [copy.width, copy.height] = [canvas.width, canvas.height];
    const context = copy.getContext("2d")!;
    context.drawImage(canvas, 0, 0);
    const words = new Uint32Array(context.getImageData(200, 60, canvas.width - 200, canvas.height - 60).data.buffer);
    return new Set(words).size;
  });
}

timelineTest("lanes are drawn, and a table says the same", async (page) => {
  await open(page);
  assert.ok((await colours(page)) > 6);
  const rows = await page.locator(".lanes tbody tr").allTextContents();
  assert.ok(rows.length > 1 && rows.some((row) => /%/.test(row)), rows.join("\n"));
});

timelineTest("the wheel zooms at the pointer, a drag moves, and the link leads back", async (page) => {
  await open(page);
  const { x, y, width, height } = await picture(page);
  assert.equal(await shownSpan(page), undefined, "all is shown at first");
  await page.mouse.move(x + width * 0.6, y + height * 0.6);
  for (let turn = 0; turn < 8; turn++) await page.mouse.wheel(0, -120);
  const near = (await shownSpan(page))!;
  assert.ok(near && near[0] > 0);
  await page.mouse.down();
  await page.mouse.move(x + width * 0.4, y + height * 0.6, { steps: 4 });
  await page.mouse.up();
  const later = (await shownSpan(page))!;
  assert.ok(later[0] > near[0] && Math.abs(later[1] - later[0] - (near[1] - near[0])) <= 2, `${near} ${later}`);
  const link = page.url();
  await page.goto("about:blank");
  await page.goto(link);
  await page.waitForFunction(() => performance.getEntriesByName("stepscope-timeline").length > 0);
  assert.deepEqual(await shownSpan(page), later);
});

timelineTest("a drag with Shift selects time, and Escape takes that back", async (page) => {
  await open(page);
  const { x, y, width, height } = await picture(page);
  await page.keyboard.down("Shift");
  await page.mouse.move(x + width * 0.4, y + height * 0.5);
  await page.mouse.down();
  await page.mouse.move(x + width * 0.7, y + height * 0.5, { steps: 5 });
  await page.mouse.up();
  await page.keyboard.up("Shift");
  await page.locator(".chip", { hasText: "Time" }).waitFor();
  assert.match(page.url(), /[?&]t=\d+-\d+/);
  await page.keyboard.press("Escape");
  await page.locator(".chip", { hasText: "Time" }).waitFor({ state: "detached" });
});

timelineTest("a click on an interval says what, how long and where; full stop goes on to the next", async (page) => {
  await open(page);
  const { x, width } = await picture(page);
  const { y, name } = await firstThread(page);
  await page.mouse.move(x + width * 0.6, y);
  for (let turn = 0; turn < 14; turn++) await page.mouse.wheel(0, -120);
  await page.waitForTimeout(400);
  await page.mouse.click(x + width * 0.6, y);
  const details = page.locator("section.interval");
  await details.locator("dl").waitFor();
  assert.equal((await details.locator("h3").textContent())!.trim(), name);
  const first = await details.locator("dd").allTextContents();
  assert.match(first[1], /\d+(\.\d+)? [µmn]?s/);
  assert.match(page.url(), /[?&]at=-?\d+,\d+/);
  await page.locator(".lanes-picture").press(".");
  // The next interval starts where this one ends.
  await page.waitForFunction((end) => document.querySelectorAll("section.interval dd")[2]?.textContent === end, first[3]);
  await details.getByRole("button", { name: "Close the interval" }).click();
  await details.waitFor({ state: "detached" });
});

timelineTest("what the pointer shows is of the picture as it is, and Escape hides it", async (page) => {
  await open(page);
  const { x, width } = await picture(page);
  const { y } = await firstThread(page);
  await page.mouse.move(x + width * 0.6, y);
  const tip = page.locator(".lanes-tip");
  await tip.waitFor();
  const before = await tip.textContent();
  await page.locator(".lanes-picture").press("w");
  await page.locator(".lanes-picture").press("w");
  await page.waitForFunction((before) => document.querySelector(".lanes-tip")!.textContent !== before, before);
  await page.keyboard.press("Escape");
  await tip.waitFor({ state: "detached" });
});

timelineTest("a double click zooms to the interval", async (page) => {
  await open(page);
  const { x, width } = await picture(page);
  const { y } = await firstThread(page);
  await page.mouse.dblclick(x + width * 0.6, y);
  const span = (await shownSpan(page))!;
  assert.ok(span);
  const [from, to] = await page.locator("section.interval dd").evaluateAll((cells) => [2, 3].map((at) => Number(cells[at].textContent!.replace(/[^\d.]/g, "")) * 1e6));
  assert.ok(span[0] <= from + 1000 && span[1] >= to - 1000, `${span} ${from} ${to}`);
});

timelineTest("a drag over the time scale selects time, as the hint says, and the help has the keys of the timeline", async (page) => {
  await open(page);
  assert.match((await page.locator(".hint").textContent())!, /Drag over the steps or the time scale/);
  const { x, y, width } = await picture(page);
  await page.mouse.move(x + width * 0.4, y + HEAD - 8);
  await page.mouse.down();
  await page.mouse.move(x + width * 0.7, y + HEAD - 8, { steps: 5 });
  await page.mouse.up();
  await page.locator(".chip", { hasText: "Time" }).waitFor();
  await page.keyboard.press("?");
  const row = page.locator("dialog.help section").filter({ hasText: "Timeline (has the focus)" }).locator("dl div").filter({ hasText: "Zoom in, out" });
  assert.deepEqual(await row.locator("kbd").allTextContents(), ["w", "s", "+", "-"]);
  const interval = page.locator("dialog.help dl div").filter({ hasText: "Interval before, after" });
  assert.deepEqual(await interval.locator("kbd").allTextContents(), [",", "."]);
});

timelineTest("z zooms to selected steps", async (page) => {
  await open(page, "#explore?steps=3-4");
  await page.locator(".chip", { hasText: "Steps" }).waitFor();
  assert.equal(await shownSpan(page), undefined);
  await page.keyboard.press("z");
  const [from, to] = (await shownSpan(page))!;
  const [, ms] = /Time\s*([\d.]+) ms/.exec((await page.locator(".step-details").innerText()).replaceAll("\n", " "))!;
  assert.ok(Math.abs((to - from) / 1e6 / 1.1 - Number(ms)) < 0.2, `${to - from} ns for ${ms} ms`);
});

timelineTest("keys zoom, move and measure", async (page) => {
  await open(page);
  const lanes = page.locator(".lanes-picture");
  await lanes.focus();
  await page.keyboard.press("w");
  await page.keyboard.press("w");
  const near = (await shownSpan(page))!;
  await page.keyboard.press("d");
  const later = (await shownSpan(page))!;
  assert.ok(later[0] > near[0]);
  await page.keyboard.press("Home");
  assert.equal(await shownSpan(page), undefined);
  await page.keyboard.press("m");
  const { x, y, width, height } = await picture(page);
  await page.mouse.move(x + width * 0.4, y + height * 0.5);
  await page.mouse.down();
  await page.mouse.move(x + width * 0.5, y + height * 0.5, { steps: 3 });
  await page.mouse.up();
  assert.match((await page.locator(".lanes-bar output").textContent())!, /\d+(\.\d+)? m?s, [\d,]+ steps? ends? in it/);
  await page.keyboard.press("m");
  await page.locator(".lanes-bar output").waitFor({ state: "detached" });
});

timelineTest("two fingers zoom", async (page) => {
  await open(page);
  const { x, y, width, height } = await picture(page);
  await page.locator(".lanes-picture").evaluate(
    (element, [left, middle, right]) => {
      const touch = (type: string, pointerId: number, clientX: number) =>
        element.dispatchEvent(new PointerEvent(type, { pointerId, clientX, clientY: middle, pointerType: "touch", bubbles: true }));
      element.setPointerCapture = () => {};
      touch("pointerdown", 11, left);
      touch("pointerdown", 12, right);
      touch("pointermove", 11, left - 100);
      touch("pointermove", 12, right + 100);
      touch("pointerup", 11, left - 100);
      touch("pointerup", 12, right + 100);
    },
    [x + width * 0.5, y + height * 0.5, x + width * 0.6] as const,
  );
  const span = (await shownSpan(page))!;
  assert.ok(span && span[0] > 0);
});

timelineTest("lanes sort and fold, and evidence is switched off", async (page) => {
  await open(page);
  const lanes = () => page.locator(".lanes tbody th").allTextContents();
  await page.getByLabel("Sort by").selectOption("name");
  const { x, y } = await picture(page);
  const before = await lanes();
  await page.mouse.click(x + 40, y + HEAD + ROW / 2);
  await page.waitForFunction((count) => document.querySelectorAll(".lanes tbody th").length !== count, before.length);
  assert.ok(!(await lanes()).some((name) => /^CPU \d+$/.test(name)), "the first heading folds the CPUs");
  const samples = page.getByRole("button", { name: "Samples" });
  await samples.click();
  assert.equal(await samples.getAttribute("aria-pressed"), "false");
});

timelineTest("a click on a name selects the thread", async (page) => {
  await open(page);
  const { x } = await picture(page);
  const { y, name } = await firstThread(page);
  const label = () => page.screenshot({ clip: { x, y: y - 8, width: 12, height: 16 } });
  const before = await label();
  await page.mouse.click(x + 60, y);
  await page.locator(".chip", { hasText: "Thread" }).waitFor();
  assert.ok((await page.locator(".chip").textContent())!.includes(name));
  await page.getByRole("rowheader", { name: `${name}, selected` }).waitFor({ state: "attached" });
  await page.mouse.move(x + 300, y + 100);
  await page.waitForTimeout(200);
  assert.notDeepEqual(await label(), before, "its label is marked");
});

for (const colorScheme of ["light", "dark"] as const) {
  timelineTest(`axe finds nothing serious in the ${colorScheme} timeline`, async (page) => {
    await open(page);
    await page.evaluate(axe.source);
    const found = await page.evaluate(async () => {
      const { violations } = await (globalThis as unknown as { axe: typeof axe }).axe.run(".lanes");
      return violations.filter(({ impact }) => impact === "serious" || impact === "critical").map(({ id, nodes }) => `${id}: ${nodes[0].html}`);
    });
    assert.deepEqual(found, []);
  }, { colorScheme });
}

timelineTest("a phone shows lanes, and nothing reaches beyond its edge", async (page) => {
  await open(page);
  assert.ok((await colours(page)) > 3);
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
}, { width: 400, height: 780 });
