// The step strip and the comparison in a real browser.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { buildSync } from "esbuild";
import type { Page } from "playwright-core";
import { boxOf, browserTest, saved } from "./browser.ts";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

let address: string | undefined;

/** Opens the page of test/pages/steps.tsx at a hash. */
async function open(page: Page, hash: string, steps = 1000, waits = false, hasEnded = false, apart = false): Promise<void> {
  if (!address) {
    const options = { bundle: true, write: false, format: "iife", define: { WORKER_SCRIPT: '""' } } as const;
    const script = buildSync({ ...options, entryPoints: ["test/pages/steps.tsx"], jsx: "automatic", jsxImportSource: "preact" }).outputFiles[0].text;
    const style = buildSync({ ...options, entryPoints: ["src/app/app.css"] }).outputFiles[0].text;
    address = saved("steps-app.html", `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>steps</title><style>${style}</style><div id="app"></div><script>${script.replaceAll("</script", "<\\/script")}</script></html>`);
  }
  await page.goto(address + hash);
  type Show = (...given: [steps: number, waits: boolean, hasEnded: boolean, apart: boolean]) => void;
  await page.evaluate((given) => (globalThis as unknown as { show: Show }).show(...given), [steps, waits, hasEnded, apart] as [number, boolean, boolean, boolean]);
}

const hash = (page: Page) => page.evaluate(() => decodeURIComponent(location.hash));
const hashIs = (page: Page, pattern: RegExp) => page.waitForFunction((source) => new RegExp(source).test(location.hash), pattern.source);
const strip = (page: Page) => page.getByRole("slider", { name: /^Steps\./ });
const details = (page: Page) => page.locator(".step-details h3");

browserTest("a click selects the longest step of a bar, and a second click none", async (page) => {
  await open(page, "#explore");
  const box = await boxOf(strip(page));
  // 800 steps of the main loop: a stall at its position 40, under a known pixel.
  const x = box.x + 58 + ((40.5 / 800) * (box.width - 66));
  await page.mouse.click(x, box.y + 70);
  await hashIs(page, /steps=50-50$/);
  assert.equal(await details(page).textContent(), "1 step selected");
  assert.match((await page.locator(".step-details").textContent()) ?? "", /Step 50: .*stall, slow, upper level/);
  await page.mouse.click(x, box.y + 70);
  await hashIs(page, /^#explore$/);
});

browserTest("brushing selects a range of steps, and back undoes it", async (page) => {
  await open(page, "#explore");
  const box = await boxOf(strip(page));
  await page.mouse.move(box.x + 200, box.y + 60);
  await page.mouse.down();
  await page.mouse.move(box.x + 300, box.y + 60, { steps: 4 });
  await page.mouse.up();
  await hashIs(page, /steps=\d+-\d+$/);
  assert.match((await details(page).textContent()) ?? "", /^\d+ steps selected$/);
  await page.keyboard.press("Escape");
  await hashIs(page, /^#explore$/);
  await page.goBack();
  await hashIs(page, /steps=\d+-\d+$/);
});

browserTest("n and p visit slow steps in turn", async (page) => {
  await open(page, "#explore");
  await strip(page).waitFor();
  const visited: string[] = [];
  for (const key of ["n", "n", "n", "p", "p", "p"]) {
    const before = await hash(page);
    await page.keyboard.press(key);
    await page.waitForFunction((before) => decodeURIComponent(location.hash) !== before, before);
    visited.push(/steps=([\d-]+)/.exec(await hash(page))![1]);
  }
  assert.deepEqual(visited, ["50-50", "150-150", "250-250", "150-150", "50-50", "950-950"]);
});

browserTest("the step that n goes to is wide enough to see", async (page) => {
  await open(page, "#explore");
  await strip(page).waitFor();
  await page.keyboard.press("n");
  await hashIs(page, /view=\d+-\d+/);
  const [, from, to] = /view=(\d+)-(\d+)/.exec(await hash(page))!.map(Number);
  assert.ok((to - from) / 30e6 < 25, `a stall of 30 ms in ${to - from} ns`);
});

browserTest("the details of a step say what its thread did, and where it waited longest", async (page) => {
  await open(page, "#explore?steps=50-50", 1000, true);
  const rows = page.getByLabel("What the thread of the loop did");
  await rows.waitFor();
  const cells = await rows.evaluate((list) => Array.from(list.children, ({ textContent }) => textContent));
  assert.deepEqual(cells.slice(0, 6), ["Running", "2.00 ms (6.64 %)", "Runnable", "5.00 ms (16.60 %)", "Blocked: lock", "23.1 ms (76.76 %)"]);
  assert.match(cells[7]!, /^23\.1 ms, blocked: lock in .*update_3/);
  assert.equal(await page.locator(".step-details h4").textContent(), "Thread sim");
  await rows.getByRole("link", { name: /^23/ }).click();
  await hashIs(page, /at=0,\d+/);
});

browserTest("slow steps that wait longer are compared with their waits, of the loop's thread", async (page) => {
  await open(page, "#explore", 1000, true);
  await strip(page).waitFor();
  await page.keyboard.press("v");
  await hashIs(page, /^#compare\?.*weight=wall/);
  assert.equal(await page.getByRole("combobox", { name: "Weight" }).inputValue(), "wall");
  assert.match((await page.locator(".of-threads").textContent())!, /^Only thread sim\./);
  await page.getByRole("button", { name: "All threads" }).click();
  await page.locator(".of-threads").waitFor({ state: "detached" });
});

browserTest("classes and bins of the histogram select steps", async (page) => {
  await open(page, "#explore");
  const stalls = page.getByRole("button", { name: /^Stalls/ });
  await stalls.click();
  await hashIs(page, /class=stall$/);
  assert.equal(await stalls.getAttribute("aria-pressed"), "true");
  assert.equal(await details(page).textContent(), "10 steps selected");
  await page.getByRole("button", { name: /^Upper level 5/ }).click();
  await hashIs(page, /class=upper$/);
  assert.match((await details(page).textContent()) ?? "", /^410 steps selected$/);
  const histogram = await boxOf(page.locator(".step-histogram"));
  await page.mouse.click(histogram.x + histogram.width - 3, histogram.y + 40);
  await hashIs(page, /steptime=\d+-\d+$/);
  assert.ok((await page.locator(".chip", { hasText: "Step time" }).count()) === 1);
});

browserTest("arrow keys choose a step, with Shift a range, and plus zooms", async (page) => {
  await open(page, "#explore");
  await strip(page).focus();
  await page.keyboard.press("Home");
  await page.keyboard.press("ArrowRight");
  await hashIs(page, /steps=1-1$/);
  assert.match((await strip(page).getAttribute("aria-valuetext")) ?? "", /^Step 1: 5\.\d+ ms, upper level$/);
  await page.keyboard.press("Shift+ArrowRight");
  await hashIs(page, /steps=1-2$/);
  await page.keyboard.press("+");
  await hashIs(page, /view=\d+-\d+/);
  await page.keyboard.press("0");
  await page.waitForFunction(() => !location.hash.includes("view="));
});

browserTest("each loop has its steps", async (page) => {
  await open(page, "#explore");
  await page.getByRole("combobox", { name: "Loop" }).selectOption("1");
  await hashIs(page, /loop=1$/);
  assert.match((await page.locator(".step-figures").textContent()) ?? "", /^200 · /);
  assert.equal(await page.getByRole("button", { name: /^Lower level/ }).count(), 0);
});

browserTest("of a million steps no stall disappears", async (page) => {
  await open(page, "#explore", 1_000_000);
  await strip(page).waitFor();
  assert.match((await page.locator(".step-figures").textContent()) ?? "", /^800,000 · /);
  assert.match((await page.getByRole("button", { name: /^Stalls/ }).textContent()) ?? "", /10,000/);
  await page.keyboard.press("n");
  await hashIs(page, /steps=50-50&/);
});

browserTest("without steps there is the CPU use, and how to record steps", async (page) => {
  await open(page, "#explore?capture=2");
  const use = page.getByRole("slider", { name: /^CPU use/ });
  await use.waitFor();
  assert.match((await page.locator(".step-header").textContent()) ?? "", /stepscope record --step-function NAME/);
  await use.focus();
  await page.keyboard.press("ArrowRight");
  await hashIs(page, /t=\d+-\d+/);
});

browserTest("slow against typical steps is one key away, and says what it compares", async (page) => {
  await open(page, "#explore");
  await strip(page).waitFor();
  await page.keyboard.press("v");
  await hashIs(page, /^#compare\?base=0&class=slow&vs-class=typical$/);
  assert.equal(await page.locator(".compare h2").textContent(), "Slow steps against typical steps");
  assert.match((await page.locator(".sentence").textContent()) ?? "", /^Median step 3\.\d+ ms → 30\.\d+ ms: ×\d+/);
  await page.locator(".flame-picture canvas").waitFor();
  assert.ok((await page.getByRole("table", { name: /^Differential flame graph: slow steps against typical steps, per step/ }).locator("tbody tr").count()) > 1);
  await page.getByRole("combobox", { name: "Widths" }).selectOption("before");
  await hashIs(page, /widths=before/);
  await page.keyboard.press("x");
  await hashIs(page, /class=typical&vs-class=slow/);
});

browserTest("two captures are compared on one scale, with the same steps of both", async (page) => {
  await open(page, "#compare?capture=1&base=0");
  assert.equal(await page.locator(".compare .side").count(), 2);
  assert.equal(await page.locator(".compare h2").textContent(), "After against before");
  await page.getByRole("button", { name: "Stalls" }).click();
  await hashIs(page, /class=stall/);
  assert.equal(await page.locator(".side .step-header", { hasText: /\d+ of \d+ steps/ }).count(), 2);
  await page.getByRole("combobox", { name: "Capture before" }).selectOption("2");
  await page.getByText("No steps were recorded").waitFor();
  await page.getByRole("table", { name: /per second/ }).waitFor({ state: "attached" });
});

browserTest("unless a side is chosen, the capture that comes first is the one before", async (page) => {
  await open(page, "#compare");
  assert.equal(await page.locator(".compare h2").textContent(), "After against before");
  await page.getByRole("button", { name: "Swap" }).click();
  await hashIs(page, /base=1/);
  assert.equal(await page.locator(".compare h2").textContent(), "Before against after");
});

browserTest("any two captures of a run are compared, also of scenarios without variants", async (page) => {
  await open(page, "#explore", 1000, false, false, true);
  await page.getByRole("navigation", { name: "Screens" }).getByRole("link", { name: "Compare" }).click();
  assert.equal(await page.locator(".compare h2").textContent(), "shapes_2 against shapes_1");
  await page.getByRole("combobox", { name: "Capture before" }).selectOption("2");
  await page.getByText("No steps were recorded").waitFor();
  assert.equal(await page.locator(".compare h2").textContent(), "shapes_2 against bare");
});

browserTest("one step is a step, and names of sides appear once", async (page) => {
  await open(page, "#explore?steps=34-34");
  await page.locator(".chip b", { hasText: /^Step$/ }).waitFor();
  await open(page, "#compare?base=0&class=slow&vs-class=typical&capture=0");
  const header = page.getByRole("region", { name: "Before" }).locator(".step-header");
  await header.getByText(/median/).waitFor();
  assert.equal((await header.textContent())!.match(/typical steps/gi)!.length, 1);
});

browserTest("a drag over the histogram selects no text", async (page) => {
  await open(page, "#explore");
  const { x, y, width, height } = await boxOf(page.locator(".step-histogram"));
  await page.mouse.move(x + width - 4, y + height - 20);
  await page.mouse.down();
  await page.mouse.move(x + 4, y + height - 3, { steps: 5 });
  await page.mouse.up();
  await hashIs(page, /steptime=/);
  assert.equal(await page.evaluate(() => getSelection()!.toString()), "");
});

browserTest("a timeline whose lanes cannot be read says why", async (page) => {
  await open(page, "#explore", 1000, false, true);
  assert.equal(await page.locator(".timeline .failure").textContent(), "The timeline failed: the program has ended");
});

browserTest("the help lists the keys of every part, and of no screen that is not there", async (page) => {
  await open(page, "#explore");
  await strip(page).waitFor();
  await page.keyboard.press("?");
  const keysOf = async (title: string) => (await page.locator("dialog.help dl div").filter({ has: page.locator("dt", { hasText: title }) }).first().locator("kbd").allTextContents()).join(" ");
  assert.equal(await keysOf("Go to Compare"), "g c");
  assert.equal(await keysOf("Step before, after"), "← →");
  assert.equal(await keysOf("Zoom in, out, to all"), "+ - 0");
  assert.equal(await keysOf("Walk the tree"), "↑ ↓ ← →");
  assert.equal(await keysOf("search functions"), "/");
  assert.equal(await keysOf("Next capture"), "]");
});

browserTest("a slash goes to the search, and the palette lists owned functions first", async (page) => {
  await open(page, "#explore");
  await page.locator(".flame-picture").waitFor();
  await page.keyboard.press("/");
  assert.equal(await page.evaluate(() => document.activeElement?.getAttribute("type")), "search");
  await page.keyboard.press("Control+k");
  await page.keyboard.type("publish");
  // The list of before stays until the text is searched for.
  await page.waitForFunction(() => /^Functionsgz::/.test(document.querySelector("dialog.palette li")?.textContent ?? ""), undefined, { timeout: 10_000 });
  await page.keyboard.press("Escape");
});

for (const [name, hash] of [["strip", "#explore"], ["comparison", "#compare?capture=1&base=0"]]) {
  for (const width of [1280, 800, 390]) {
    browserTest(`the ${name} fits into ${width} pixels`, async (page) => {
      await open(page, hash);
      await page.locator(".step-bars canvas").first().waitFor();
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "the page scrolls sideways");
    }, { width });
  }
  for (const colorScheme of ["light", "dark"] as const) {
    browserTest(`axe finds nothing serious in the ${name}, ${colorScheme}`, async (page) => {
      await open(page, hash);
      await page.locator(".step-bars canvas").first().waitFor();
      await page.evaluate(AXE);
      const violations = await page.evaluate(async () => {
        const { axe } = globalThis as unknown as { axe: { run(within: string): Promise<{ violations: { impact: string; id: string; nodes: { html: string }[] }[] }> } };
        const { violations } = await axe.run("main");
        return violations.filter(({ impact }) => impact === "serious" || impact === "critical").map(({ id, nodes }) => `${id}: ${nodes[0].html.slice(0, 200)}`);
      });
      assert.deepEqual(violations, []);
    }, { colorScheme });
  }
}
