// Standalone flame graphs, as a reader uses them.

import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import type { Page } from "playwright-core";
import { boxOf, browserTest, saved, written } from "./browser.ts";

const STACKS = `
main;main;gz::Run;gz::Step;solve 50
main;main;gz::Run;gz::Step;malloc 25
main;main;gz::Load 15
worker;poll 10
`;

let graph: string | undefined;
const stacks = () => (graph ??= written("graph.svg", STACKS.trim() + "\n"));

/** Presses a frame at its label. */
async function click(page: Page, label: string, modifiers: "Shift"[] = []): Promise<void> {
  const box = await boxOf(page.locator(".fg-canvas text", { hasText: new RegExp(`^${label}$`) }).first());
  for (const key of modifiers) await page.keyboard.down(key);
  await page.mouse.click(box.x + 4, box.y + box.height / 2);
  for (const key of modifiers) await page.keyboard.up(key);
}

async function labels(page: Page): Promise<string[]> {
  return page.locator(".fg-canvas text.t").allTextContents();
}

async function widthOf(page: Page, label: string): Promise<number> {
  return page.evaluate((label) => {
    const text = [...document.querySelectorAll(".fg-canvas text.t")].find((text) => text.textContent === label)!;
    return (text.previousElementSibling as SVGRectElement).width.baseVal.value;
  }, label);
}

async function canvasWidth(page: Page): Promise<number> {
  return page.evaluate(() => document.querySelector<SVGSVGElement>(".fg-canvas")!.width.baseVal.value);
}

/** What the search holds. (To Playwright an input in an SVG document is none.) */
async function pattern(page: Page): Promise<string> {
  return page.evaluate(() => document.querySelector<HTMLInputElement>(".fg-search")!.value);
}

function near(actual: number, expected: number): void {
  assert.ok(Math.abs(actual - expected) <= 1.5, `${actual} is not ${expected}`);
}

browserTest("frames are as wide as their weight and callers are below", async (page) => {
  await page.goto(stacks());
  const whole = await canvasWidth(page);
  near(await widthOf(page, "gz::Step"), whole * 0.75);
  near(await widthOf(page, "worker"), whole * 0.1);
  const top = async (label: string) => (await boxOf(page.locator(".fg-canvas text", { hasText: new RegExp(`^${label}$`) }).first())).y;
  assert.ok((await top("solve")) < (await top("gz::Step")));
});

browserTest("a click zooms, going back zooms out, and the address leads there again", async (page) => {
  await page.goto(stacks());
  await click(page, "gz::Step");
  near(await widthOf(page, "gz::Step"), await canvasWidth(page));
  assert.ok(!(await labels(page)).includes("gz::Load"));
  const address = page.url();
  assert.match(address, /\?x=15&y=4$/);
  await page.goBack();
  assert.ok((await labels(page)).includes("gz::Load"));
  await page.goto(address);
  near(await widthOf(page, "gz::Step"), await canvasWidth(page));
  await page.click(".fg-reset");
  assert.ok((await labels(page)).includes("gz::Load"));
});

browserTest("a search shows the share that it matches, each sample once, and is in the address", async (page) => {
  await page.goto(stacks());
  await page.fill(".fg-search", "gz::");
  assert.equal(await page.textContent(".fg-matched"), "matched 90.00 % in 3 functions");
  assert.equal(await page.locator(".fg-canvas rect.hit").count(), 3);
  assert.equal(new URL(page.url()).searchParams.get("s"), "gz::");
  await click(page, "gz::Run");
  await page.fill(".fg-search", "malloc");
  assert.equal(await page.textContent(".fg-matched"), "matched 33.33 % of this, 25.00 % of all");
  await page.fill(".fg-search", "nothing");
  assert.equal(await page.textContent(".fg-matched"), "no match");
});

browserTest("?s= in the address highlights from the start", async (page) => {
  await page.goto(`${stacks()}?s=${encodeURIComponent("^(solve|poll)$")}`);
  assert.equal(await pattern(page), "^(solve|poll)$");
  assert.equal(await page.textContent(".fg-matched"), "matched 60.00 % in 2 functions");
});

browserTest("Shift and a click searches for all calls of a function", async (page) => {
  await page.goto(stacks());
  await click(page, "gz::Run", ["Shift"]);
  assert.equal(await pattern(page), "^gz::Run$");
  await page.keyboard.press("Escape");
  assert.equal(await pattern(page), "");
});

browserTest("details of the frame under the pointer are shown", async (page) => {
  await page.goto(stacks());
  const box = await boxOf(page.locator(".fg-canvas text", { hasText: /^gz::Step$/ }));
  await page.mouse.move(box.x + 4, box.y + 4);
  assert.equal(await page.textContent(".fg-name"), "ownedgz::Step");
  const figures = await page.locator(".fg-figures tbody td").allTextContents();
  assert.deepEqual(figures, ["75 cycles", "75.00 %", "0 cycles", "0.00 %"]);
});

browserTest("the keyboard reaches and zooms frames", async (page) => {
  await page.goto(stacks());
  // The root, then the widest callee of each: main the thread, main, gz::Run.
  for (let press = 0; press < 4; press++) await page.keyboard.press("ArrowUp");
  assert.equal(await page.textContent(".fg-name"), "ownedgz::Run");
  await page.keyboard.press("Enter");
  near(await widthOf(page, "gz::Run"), await canvasWidth(page));
  await page.keyboard.press("Backspace");
  assert.ok((await labels(page)).includes("gz::Load"));
  await page.keyboard.press("/");
  await page.keyboard.type("solve");
  await page.keyboard.press("Enter");
  assert.equal(await page.textContent(".fg-name"), "solve");
});

browserTest("owned code stands out and the rest steps back", async (page) => {
  await page.goto(stacks());
  assert.equal(await page.locator(".fg-canvas rect.owned:not(.q)").count(), 3);
  assert.equal(await page.locator(".fg-canvas rect.native.q").count(), 3, "main, solve and poll");
  assert.equal(await page.locator(".fg-canvas rect.allocator.q").count(), 1);
  const legend = (await page.locator(".fg-legend li").allTextContents()).map((text) => text.replace(/(\d)/, " $1"));
  assert.deepEqual(legend, ["owned 15.00 %", "native 60.00 %", "allocator 25.00 %"]);
  const fill = (selector: string) => page.evaluate((selector) => getComputedStyle(document.querySelector(selector)!).fill, selector);
  assert.notEqual(await fill(".fg-canvas rect.owned"), await fill(".fg-canvas rect.native"));
});

browserTest("colours show kinds or modules, chosen at first and by a key", async (page) => {
  await page.goto(written("modules.svg", STACKS.trim() + "\n", "--module"));
  assert.equal(await page.textContent(".fg-tools button"), "Colours: module");
  await page.keyboard.press("c");
  assert.equal(await page.textContent(".fg-tools button"), "Colours: kind");
});

browserTest("an inverted graph has leaves at the root, above", async (page) => {
  await page.goto(written("inverted.svg", STACKS.trim() + "\n", "--inverted"));
  near(await widthOf(page, "solve"), (await canvasWidth(page)) * 0.5);
  const top = async (label: string) => (await boxOf(page.locator(".fg-canvas text", { hasText: new RegExp(`^${label}$`) }).first())).y;
  assert.ok((await top("solve")) < (await top("gz::Step")), "callers are below what they call");
  // The legend tells whose leaves they are, as in the graph that is not inverted.
  const legend = (await page.locator(".fg-legend li").allTextContents()).map((text) => text.replace(/(\d)/, " $1"));
  assert.deepEqual(legend, ["owned 15.00 %", "native 60.00 %", "allocator 25.00 %"]);
  await page.keyboard.press("f");
  assert.ok((await top("solve")) > (await top("gz::Step")));
});

browserTest("hostile names are only text", async (page) => {
  const names = [
    "</script><script>alert(1)</script>",
    "]]></style><svg onload=alert(2)>",
    "\"'><img src=x onerror=alert(3)>",
    "<!--",
    "\u202egnp.exe",
    "<foreignObject><body onload=alert(4)>",
    "x".repeat(100_000),
  ];
  await page.goto(written("hostile.svg", names.map((name) => `main;${name} 10\n`).join("")));
  await page.fill(".fg-search", "alert");
  assert.equal(await page.textContent(".fg-matched"), "matched 57.14 % in 4 functions");
  assert.equal(await page.locator("img, script:not(.flame-data)").count(), 1, "our own script and no other");
  await page.fill(".fg-search", "gnp");
  await page.keyboard.press("Enter");
  assert.equal(await page.textContent(".fg-name"), "\\u{202e}gnp.exe");
});

browserTest("only frames in view are drawn", async (page) => {
  const folded = Array.from({ length: 50_000 }, (_, index) => `t;f${index % 97};g${index % 1009};h${index} ${1 + (index % 13)}\n`);
  await page.goto(written("many.svg", folded.join("")));
  const elements = await page.evaluate(() => document.querySelectorAll(".fg-canvas *").length);
  assert.ok(elements > 5 && elements < 20_000, String(elements));
  await page.fill(".fg-search", "^h49999$");
  await page.keyboard.press("Enter");
  assert.equal(await page.textContent(".fg-name"), "h49999");
});

const TYPICAL = `
main;main;gz::Run;gz::Step;solve 50
main;main;gz::Load 15
main;main;gz::Idle 20
worker;poll 11
`;

let difference: string | undefined;
const compared = () => {
  const base = fileURLToPath(saved("typical.folded", TYPICAL.trim() + "\n"));
  return (difference ??= written("difference.svg", STACKS.trim() + "\n", "--base", base));
};

/** The classes of a frame with this label. */
async function classOf(page: Page, label: string): Promise<string | null> {
  const rectangle = (label: string) =>
    [...document.querySelectorAll(".fg-canvas text.t")].find((text) => text.textContent === label)?.previousElementSibling?.getAttribute("class") ?? null;
  return page.evaluate(rectangle, label);
}

browserTest("in a difference, heavier frames are orange, equal ones grey, and none is quiet", async (page) => {
  await page.goto(compared());
  assert.equal(await classOf(page, "malloc"), "more3 fresh", "outlined: the other tree has none");
  assert.equal(await classOf(page, "gz::Step"), "more3");
  assert.equal(await classOf(page, "solve"), "same");
  assert.equal(await classOf(page, "worker"), "less2");
  assert.equal(await classOf(page, "gz::Idle"), "less3 gone", "what was removed is as wide as it was");
});

browserTest("the widths of the base show vanished frames", async (page) => {
  await page.goto(compared());
  assert.match((await page.textContent(".fg-hint"))!, /^Widths show the larger of both\./);
  // 50 solve, 25 malloc, 25 and 15 Load, 20 Idle, 0 and 11 poll are in one picture.
  assert.equal(await classOf(page, "malloc"), "more3 fresh");
  await page.locator("button", { hasText: "Widths: larger of both" }).click();
  near(await widthOf(page, "solve"), (await canvasWidth(page)) * 0.5);
  assert.equal(await classOf(page, "gz::Idle"), null);
  assert.match((await page.textContent(".fg-hint"))!, /^Widths show slow\. Press w to see frames that only typical has\./);
  await page.locator("button", { hasText: "Widths: slow" }).click();
  assert.match((await page.textContent(".fg-hint"))!, /^Widths show typical\./);
  near(await widthOf(page, "solve"), (await canvasWidth(page)) * (50 / 96));
  assert.equal(await classOf(page, "gz::Idle"), "less3 gone");
  assert.equal(await classOf(page, "malloc"), null);
  await page.locator("button", { hasText: "Widths: typical" }).click();
  assert.equal(await classOf(page, "gz::Idle"), "less3 gone", "with the larger of both widths");
});

browserTest("the address holds whose widths are shown, so that a link leads to a vanished frame", async (page) => {
  await page.goto(`${compared()}?w=1&s=Idle`);
  assert.equal(await classOf(page, "gz::Idle"), "less3 gone hit");
  await page.keyboard.press("w");
  assert.equal(new URL(page.url()).search, "?s=Idle");
  await page.keyboard.press("w");
  assert.equal(new URL(page.url()).search, "?s=Idle&w=0");
});

browserTest("with verdicts only significant changes have a colour, and the legend counts the frames", async (page) => {
  const base = fileURLToPath(saved("typical.folded", TYPICAL.trim() + "\n"));
  await page.goto(written("judged.svg", STACKS.trim() + "\n", "--base", base, "--judged"));
  assert.equal(await classOf(page, "malloc"), "more3 fresh");
  assert.equal(await classOf(page, "solve"), "even");
  assert.equal(await classOf(page, "worker"), "unsure", "too little weight to tell");
  const legend = await page.locator(".fg-legend li").allTextContents();
  assert.deepEqual(legend.slice(6), ["equivalent2", "inconclusive3", "only in slow1", "only in typical1"]);
  assert.equal(legend.slice(0, 6).every((entry) => /\d$/.test(entry)), true, legend.join());
  await click(page, "solve");
  assert.match((await page.textContent(".fg-place"))!, /^equivalent/);
});

browserTest("details of a difference show both weights, their difference and ratio", async (page) => {
  await page.goto(compared());
  await click(page, "gz::Step");
  const rows = await page.locator(".fg-figures tbody tr").allTextContents();
  assert.deepEqual(rows, ["total75 cycles50 cycles+25 cycles×1.50", "self0 cycles0 cycles0 cycles"]);
});
