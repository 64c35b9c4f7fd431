// A recording that is made here: what widths can stand for, source lines with instructions, and the questions of docs/questions.md, on a program that
// nobody has recorded before. What a recording of one capture cannot answer, a recorded run does: see questions.test.ts.

import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import { recorded, SIMULATOR } from "./recorded.ts";

const { address, test: freshTest } = recorded("fresh.capture", "--with", "heap,syscalls", "--", SIMULATOR, "run", "--n", "300", "--static", "--slow", "full-scan", "--seconds", "2");

async function open(page: Page, hash: string): Promise<void> {
  await page.goto(`${await address()}${hash}`);
  await page.getByRole("navigation", { name: "Screens" }).waitFor();
}

/** What the line below the flame graph says. */
const figures = (page: Page) => page.locator(".status .soft");

freshTest("allocations and system calls are weights of the flame graph, the functions and the cost tree", async (page) => {
  await open(page, "#explore");
  const menu = page.getByLabel("Weight");
  await menu.waitFor();
  const titles = await menu.locator("option").allTextContents();
  for (const wanted of ["CPU time", "Off-CPU time", "Allocations", "Allocated bytes", "Heap at its peak", "Time in system calls", "System calls"]) {
    assert.ok(titles.includes(wanted), `${wanted} is in ${titles}`);
  }
  for (const [title, unit] of [["Allocations", /[\d,]+ allocations, [\d,]+ frames/], ["Allocated bytes", /iB, /], ["Heap at its peak", /iB, /], ["System calls", /[\d,]+ calls, /]] as const) {
    await menu.selectOption({ label: title });
    await figures(page).filter({ hasText: unit }).waitFor();
  }
  await menu.selectOption({ label: "Allocations" });
  await page.waitForFunction(() => /weight=event-\d/.test(location.hash));
  await page.getByRole("tab", { name: "Functions" }).click();
  const rows = page.locator(".rows .row:not(.head)");
  await rows.filter({ hasText: /ground::|alloc/ }).first().waitFor();
  assert.equal(await menu.locator("option:checked").textContent(), "Allocations");
  await page.getByRole("tab", { name: "Cost tree" }).click();
  await page.locator(".tree-cell").filter({ hasText: "ground::" }).first().waitFor();
});

freshTest("the source has the cost of each line, and beside it the instructions of the chosen one", async (page) => {
  await open(page, "#explore?pane=source");
  await page.locator("table.lines tbody tr").first().waitFor();
  await page.getByRole("button", { name: "Instructions" }).click();
  await page.waitForFunction(() => location.hash.includes("instructions"));
  const beside = page.locator(".beside-source");
  await beside.locator("td.code").or(beside.locator(".empty").filter({ hasNotText: "Reading instructions" })).first().waitFor();
  const why = await beside.locator(".empty").allTextContents();
  if (why.some((text) => /objdump|build-id/.test(text))) return console.log(`skipped: instructions: ${why}`);
  // An instruction of the heaviest line has a cost.
  const costs = await beside.locator("tr[data-instruction] td:first-child").allTextContents();
  assert.ok(costs.some((cost) => /\d (ns|µs|ms|s)$/.test(cost)), `of ${costs.length} instructions of ${why}`);
  assert.ok((await beside.locator("tr.of-line").count()) > 0, "those of the line are marked");
});

/** Counts clicks. */
async function clicked(...targets: ReturnType<Page["locator"]>[]): Promise<number> {
  for (const target of targets) await target.click();
  return targets.length;
}

const screen = (page: Page, name: string) => page.getByRole("navigation", { name: "Screens" }).getByRole("link", { name, exact: true });

freshTest("questions 1, 2, 3 and 10 are answered on the first screen", async (page) => {
  await open(page, "");
  await page.locator(".speed").filter({ hasText: /(Slower|Faster) than real time: a step simulates 1\.00 ms and takes \d/ }).waitFor();
  await page.locator(".gains li").filter({ hasText: /ground::.*(−|costs)/s }).first().waitFor();
  await page.locator(".doubts li").filter({ hasText: /\S/ }).first().waitFor();
  assert.equal(await clicked(page.locator(".gains .what").filter({ hasText: "ground::" }).first()), 1);
  await page.getByRole("region", { name: "Chosen function" }).filter({ hasText: /ground::.*total/s }).waitFor();
});

freshTest("questions 4 to 7 are two clicks away", async (page) => {
  await open(page, "");
  const details = page.getByRole("complementary", { name: "Details" });
  await screen(page, "Explore").click();
  // A recording of two seconds may have no step that stands out.
  const slow = details.getByRole("link", { name: /^Step \d+: / });
  const stands_out = await slow.waitFor({ timeout: 5_000 }).then(() => true, () => false);
  if (stands_out) {
    await slow.click();
    await page.locator(".chip").filter({ hasText: /Steps?\s*\d+/ }).waitFor();
  }
  await open(page, "");
  assert.equal(await clicked(screen(page, "Explore"), page.getByRole("button", { name: "Slow against typical" })), 2);
  await page.getByRole("region", { name: "Differential flame graph" }).waitFor();
  await open(page, "");
  await screen(page, "Explore").click();
  await page.getByLabel("Sort by").selectOption({ label: "time on the critical path" });
  assert.equal(await page.getByRole("button", { name: "Critical path" }).getAttribute("aria-pressed"), "true");
  const lanes = page.locator("table", { has: page.locator("caption", { hasText: "Lanes in view" }) }).locator("tbody th");
  await lanes.filter({ hasText: "ground" }).first().waitFor({ state: "attached" });
  await page.getByLabel("Weight").selectOption({ label: "Off-CPU time" });
  await figures(page).filter({ hasText: /\d/ }).waitFor();
});
