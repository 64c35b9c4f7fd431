// Reports, as a reader uses them.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Page } from "playwright-core";
import { browserTest, invented, saved, written } from "./browser.ts";

/** Twenty functions, f01 with the least and f20 with the most self weight; two are owned. */
const STACKS = Array.from({ length: 20 }, (_, index) => {
  const number = String(index + 1).padStart(2, "0");
  return `main;main;${index % 10 === 9 ? "gz::" : ""}f${number} ${(index + 1) * 1_000_000_000}`;
}).join("\n");

let address: string | undefined;
const report = () => (address ??= written("folded_to_report", "report.html", `${STACKS}\n`));

const HOTSPOTS = 'div.table:has(table[aria-label="On-CPU time by function"])';

/** Texts of a column of the hot spots. */
async function column(page: Page, number: number): Promise<string[]> {
  const texts = await page.locator(`${HOTSPOTS} tbody td:nth-child(${number})`).allTextContents();
  return texts.map((text) => text.trim());
}

const functions = (page: Page) => column(page, 1);

browserTest("a long table shows its first rows, and all when asked to", async (page) => {
  await page.goto(report());
  assert.equal((await functions(page)).length, 15);
  await page.click(`${HOTSPOTS} .more`);
  assert.equal((await functions(page)).length, 21, "twenty functions and their caller");
  await page.click(`${HOTSPOTS} .more:not([hidden])`);
  assert.equal((await functions(page)).length, 15);
});

browserTest("a column header sorts by its column, in reverse, and not at all", async (page) => {
  await page.goto(report());
  const first = async () => (await functions(page))[0];
  const heads = page.locator(`${HOTSPOTS} th button`);
  assert.equal(await first(), "gz::f20");
  const self = heads.filter({ hasText: /^self$/ });
  await self.click();
  assert.equal(await first(), "gz::f20", "largest first");
  await self.click();
  assert.equal(await first(), "main", "which has no self weight");
  assert.equal(await page.locator(`${HOTSPOTS} th[aria-sort]`).getAttribute("aria-sort"), "ascending");
  await self.click();
  assert.equal(await first(), "gz::f20");
  assert.equal(await page.locator(`${HOTSPOTS} th[aria-sort]`).count(), 0);
  await heads.filter({ hasText: /^function$/ }).click();
  assert.equal(await first(), "f01");
});

browserTest("rows drawn by the script are the same as those that the page comes with", async (page) => {
  await page.goto(report());
  const body = () => page.locator(`${HOTSPOTS} tbody`).evaluate((body) => body.innerHTML.replace(/\s*\n\s*/g, ""));
  const before = await body();
  const head = page.locator(`${HOTSPOTS} th button`).first();
  for (let press = 0; press < 3; press++) await head.click();
  assert.equal(await body(), before);
});

browserTest("a filter keeps matching rows and counts them", async (page) => {
  await page.goto(report());
  await page.fill(`${HOTSPOTS} input`, "f0[1-3]$");
  assert.deepEqual(await functions(page), ["f03", "f02", "f01"]);
  assert.equal(await page.textContent(`${HOTSPOTS} output`), "3 of 21 rows");
  await page.keyboard.press("Escape");
  await page.click(`${HOTSPOTS} button[aria-pressed]`);
  assert.deepEqual(await functions(page), ["gz::f20", "gz::f10"]);
  await page.fill(`${HOTSPOTS} input`, "nothing");
  assert.equal(await page.textContent(`${HOTSPOTS} tbody`), "No row matches.");
});

browserTest("numbers are written as in the terminal, with bars as long as shares", async (page) => {
  await page.goto(report());
  // The example divides cycles by 5 for a time in ns: 20 G / 5 = 4 s. All are 210 G.
  assert.equal((await column(page, 4))[0], "4.00 s");
  assert.equal((await column(page, 5))[0], "20.0 G");
  assert.equal((await column(page, 6))[0], "9.52");
  const bars = await page.locator(`${HOTSPOTS} tbody td:nth-child(6)`).evaluateAll((cells) => cells.map((cell) => cell.className));
  assert.deepEqual(bars.slice(0, 3), ["num share h100", "num share h95", "num share h90"]);
  assert.equal(await page.locator(`${HOTSPOTS} tr.mine`).count(), 2, "gz::f20 and gz::f10");
});

browserTest("the meaning of a column is in its header and below the table", async (page) => {
  await page.goto(report());
  const title = await page.locator(`${HOTSPOTS} th button`).first().getAttribute("title");
  assert.equal(title, "The function's qualified name.");
  await page.click(`${HOTSPOTS} .meanings summary`);
  assert.ok(await page.getByText("Whether your team can change it.").first().isVisible());
});

browserTest("flame graphs are drawn when they come near, and not before", async (page) => {
  await page.setViewportSize({ width: 1200, height: 300 });
  await page.goto(report());
  assert.equal(await page.locator(".fg-canvas").count(), 0);
  await page.locator(".flame").last().scrollIntoViewIfNeeded();
  await page.locator(".fg-canvas rect.owned").first().waitFor();
});

browserTest("a function leads to its calls in the flame graph, and the address holds the search", async (page) => {
  await page.goto(report());
  await page.locator(`${HOTSPOTS} tbody tr`).first().hover();
  await page.locator(`${HOTSPOTS} tbody tr`).first().locator(".find").click();
  assert.equal(await page.inputValue(".fg-search"), "^gz::f20$");
  assert.equal(await page.locator(".fg-matched").first().textContent(), "matched 9.52 % in 1 function");
  assert.match(page.url(), /#flame=report\.html%2Fflame-graph%2Fflame&s=%5Egz%3A%3Af20%24$/);
  const link = page.url();
  await page.goto("about:blank");
  await page.goto(link);
  assert.equal(await page.locator(".fg-matched").first().textContent(), "matched 9.52 % in 1 function");
});

browserTest("links within the page do not undo a zoom, going back does", async (page) => {
  await page.goto(report());
  const crumbs = () => page.locator(".fg-path").first().locator("button[title]:not(.fg-reset)").count();
  await page.locator(".flame").first().scrollIntoViewIfNeeded();
  await page.locator(".fg-view").first().focus();
  for (const key of ["ArrowUp", "ArrowUp", "Enter"]) await page.keyboard.press(key);
  assert.equal(await crumbs(), 2);
  await page.click(".contents a >> nth=1");
  assert.equal(await crumbs(), 2);
  await page.goBack();
  await page.goBack();
  assert.equal(await crumbs(), 1);
});

browserTest("on a phone the page does not scroll sideways and the contents are folded", async (page) => {
  await page.goto(report());
  await page.locator(".flame").last().scrollIntoViewIfNeeded();
  await page.locator(".fg-canvas").last().waitFor();
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 390);
  assert.equal(await page.locator(".contents details[open]").count(), 0);
}, { width: 390, height: 844 });

browserTest("paper shows flame graphs whole and light", async (page) => {
  await page.goto(report());
  await page.emulateMedia({ media: "print", colorScheme: "dark" });
  await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
  assert.equal(await page.locator(".fg-canvas[viewBox]").count(), 2);
  assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), "rgb(255, 255, 255)");
  assert.equal(await page.locator(".tools >> visible=true").count(), 0);
  await page.evaluate(() => dispatchEvent(new Event("afterprint")));
  assert.equal(await page.locator(".fg-canvas[viewBox]").count(), 0);
}, { colorScheme: "dark" });

browserTest("hostile names are only text", async (page) => {
  const names = ["</script><script>alert(1)</script>", "<img src=x onerror=alert(2)>", "\"'><b>", "<!--<script>", "\u202egnp.exe", `${"x".repeat(100_000)}`];
  await page.goto(written("folded_to_report", "hostile.html", names.map((name, index) => `main;${name} ${60 - index}\n`).join("")));
  assert.deepEqual((await functions(page)).slice(0, 5), [...names.slice(0, 4), "\\u{202e}gnp.exe"]);
  assert.equal(await page.locator(`${HOTSPOTS} details[open]`).count(), 0);
  const long = page.locator(`${HOTSPOTS} tbody summary`).first();
  assert.ok((await long.textContent())!.length < 120);
  await page.locator(`${HOTSPOTS} th button`).first().click();
  await page.locator(".flame").first().scrollIntoViewIfNeeded();
  await page.locator(".fg-canvas").first().waitFor();
  assert.equal(await page.locator("img, b >> text=img").count(), 0);
});

browserTest("the policy lets no other script run", async (page) => {
  const text = readFileSync(fileURLToPath(report()), "utf8");
  const forged = text.replace("</main>", '<p id="forged" onclick="document.title=1">x</p><script>document.title = "forged"</script></main>');
  assert.notEqual(forged, text);
  await page.addInitScript(() => {
    addEventListener("securitypolicyviolation", (event) => ((globalThis as { violated?: string }).violated = event.violatedDirective));
    // The violation that this test is about is logged as an error.
  });
  const address = saved("forged.html", forged);
  page.removeAllListeners("console");
  await page.goto(address);
  assert.equal(await page.title(), "Nightly run");
  assert.match(await page.evaluate(() => (globalThis as { violated?: string }).violated ?? ""), /^script-src/);
});

browserTest("every control has a name and headings go down level by level", async (page) => {
  await page.goto(report());
  await page.locator(".flame").last().scrollIntoViewIfNeeded();
  await page.locator(".fg-canvas").last().waitFor();
  const nameless = await page.evaluate(
    () => [...document.querySelectorAll("button, input, summary, a")].filter((element) => !(element.textContent!.trim() || element.getAttribute("aria-label"))).length,
  );
  assert.equal(nameless, 0);
  const levels = await page.evaluate(() => [...document.querySelectorAll("h1, h2, h3, h4, h5, h6")].map((head) => Number(head.tagName[1])));
  levels.forEach((level, index) => assert.ok(level <= (levels[index - 1] ?? 0) + 1, levels.join(" ")));
  assert.equal(levels.filter((level) => level === 1).length, 1);
});

let comparison: string | undefined;
const compared = () => (comparison ??= invented("comparison_page", "comparison.html"));

const RUNS = 'div.table:has(table[aria-label="Whole run"])';

browserTest("an interval stands beside its estimate, also in rows that the script draws", async (page) => {
  await page.goto(compared());
  const body = () => page.locator(`${RUNS} tbody`).evaluate((body) => body.innerHTML.replace(/\s*\n\s*/g, ""));
  const before = await body();
  const ratio = page.locator(`${RUNS} th[data-name="ratio"]`);
  assert.equal(await ratio.evaluate((head) => (head as HTMLTableCellElement).colSpan), 2);
  await ratio.locator("button").click();
  const first = page.locator(`${RUNS} tbody tr`).first();
  assert.deepEqual((await first.locator("td").allTextContents()).slice(0, 7), ["rtf", "", "0.90 ", "1.80 ", "2.00", "[1.90, 2.10]", "changed"]);
  for (let press = 0; press < 2; press++) await ratio.locator("button").click();
  assert.equal(await body(), before, "in the table's own order the rows are those that the page came with");
});

browserTest("verdicts differ in more than colour, and the filter finds their words", async (page) => {
  await page.goto(compared());
  const look = (word: string) =>
    page.locator(`${RUNS} td`, { hasText: new RegExp(`^${word}$`) }).first().evaluate((cell) => {
      const { fontWeight, fontStyle } = getComputedStyle(cell);
      return `${fontWeight} ${fontStyle}`;
    });
  const looks = [await look("changed"), await look("equivalent"), await look("inconclusive")];
  assert.equal(new Set(looks).size, 3, looks.join());
  await page.fill(`${RUNS} input`, "^equivalent$");
  assert.equal(await page.locator(`${RUNS} tbody tr`).count(), 1);
  assert.match((await page.locator(`${RUNS} tbody`).textContent())!, /^rss\.peak/);
});

browserTest("a picture of ratios describes each row in words", async (page) => {
  await page.goto(compared());
  const rows = await page.locator("svg.forest g > title").allTextContents();
  assert.deepEqual(rows.slice(0, 3), [
    "step.p99: 0.50 [0.48, 0.52], changed",
    "rtf: 2.00 [1.90, 2.10], changed",
    "rss.peak: 1.00 [1.00, 1.01], equivalent",
  ]);
});

browserTest(
  "a comparison does not make the page scroll sideways on a phone",
  async (page) => {
    await page.goto(compared());
    const wider = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(wider <= 0, String(wider));
  },
  { width: 390, height: 800 },
);
