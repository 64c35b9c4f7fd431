// What is selected by name, and who had the CPU, on a recording that is made here: two programs that share one CPU.

import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import { boxOf } from "./browser.ts";
import { recorded, SIMULATOR } from "./recorded.ts";

const one = `${SIMULATOR} run --n 300 --static --seconds 1`;
const { address, test: selectionTest } = recorded("two.capture", "--", "taskset", "-c", "0", "sh", "-c", `${one} & ${one} & wait`);

async function open(page: Page, hash: string): Promise<void> {
  await page.goto(`${await address()}${hash}`);
  await page.getByLabel("Select by name").waitFor();
}

/** The weight below the flame graph, in ns. */
async function total(page: Page): Promise<number> {
  const text = (await page.locator(".status .soft").textContent()) ?? "";
  const [, number, unit] = /^([\d.,]+) (ns|µs|ms|s)\b/.exec(text) ?? assert.fail(text);
  return Number(number.replaceAll(",", "")) * { ns: 1, "µs": 1e3, ms: 1e6, s: 1e9 }[unit]!;
}

const settled = (page: Page) => page.locator(".flame[data-loading=false]").waitFor();

selectionTest("only a process, a thread, a scope or a state: the label says it, the flame graph shows it, and its button takes it back", async (page) => {
  await open(page, "#explore");
  const names = page.getByLabel("Select by name");
  await page.locator(".status .soft").filter({ hasText: /frames/ }).waitFor();
  const whole = await total(page);
  for (const [kind, group, hash] of [["Process", "Process", /processes=/], ["Thread", "Thread", /threads=/], ["Scope", "Scope", /scope=/], ["State", "State of waits", /states=.*|weight=offcpu/]] as const) {
    const options = names.locator(`optgroup[label="${group}"] option`);
    await options.first().waitFor({ state: "attached" });
    // The last one is not what nearly all of the weight is of.
    const one = options.filter({ hasNotText: kind === "State" ? /^(?!.*condition)/ : /^$/ }).last();
    const name = (await one.textContent())!.trim();
    await names.selectOption((await one.getAttribute("value"))!);
    const chip = page.locator(".chip").filter({ has: page.locator("b", { hasText: new RegExp(`^${kind}$`) }) });
    assert.ok((await chip.textContent())!.includes(name), `${kind} ${name}`);
    await page.waitForFunction((source) => new RegExp(source).test(location.hash), hash.source);
    await settled(page);
    if (kind === "State") {
      assert.equal(await page.getByLabel("Weight").inputValue(), "offcpu");
    } else if (await page.locator(".status .soft").filter({ hasText: /frames/ }).count()) {
      const part = await total(page);
      assert.ok(part > 0 && part < whole, `${kind} ${name}: ${part} of ${whole}`);
    }
    await page.getByRole("button", { name: `Remove: ${kind}` }).click();
    await chip.waitFor({ state: "detached" });
  }
});

selectionTest("a second name of a kind is added, and all is cleared at once", async (page) => {
  await open(page, "#explore");
  const names = page.getByLabel("Select by name");
  const threads = names.locator('optgroup[label="Thread"] option');
  await threads.first().waitFor({ state: "attached" });
  for (const index of [0, 1]) await names.selectOption((await threads.nth(index).getAttribute("value"))!);
  await page.waitForFunction(() => /threads=\d+,\d+/.test(decodeURIComponent(location.hash)));
  assert.equal(await page.locator(".chip").count(), 1);
  await page.getByRole("button", { name: "Clear all" }).click();
  await page.locator(".chip").waitFor({ state: "detached" });
});

selectionTest("an interval in which a thread waits for a CPU says who preempted it, and who had the CPU", async (page) => {
  await open(page, "#explore");
  await page.waitForFunction(() => performance.getEntriesByName("stepscope-timeline").length > 0);
  const lanes = page.locator(".lanes-picture");
  const { x, y, width } = await boxOf(lanes);
  const names = await page.locator(".lanes tbody th").allTextContents();
  const cpus = names.filter((name) => /^CPU \d+$/.test(name)).length;
  // The first thread, below the headings of the CPUs and of its process, in the middle of the recording.
  const lane = y + 46 + 20 * (cpus > 0 ? cpus + 1 : 0) + 20 + 10;
  await page.mouse.move(x + width * 0.6, lane);
  for (let turn = 0; turn < 14; turn++) await page.mouse.wheel(0, -120);
  await page.waitForTimeout(400);
  await page.mouse.click(x + width * 0.6, lane);
  const details = page.locator("section.interval");
  await details.locator("dl").waitFor();
  const preempted = details.locator("dt", { hasText: "Preempted by" });
  for (let turn = 0; turn < 400 && (await preempted.count()) === 0; turn++) {
    const from = await details.locator("dd").nth(2).textContent();
    await lanes.press(".");
    await page.waitForFunction((from) => document.querySelectorAll("section.interval dd")[2]?.textContent !== from, from, { timeout: 5000 });
    if (/preempted/.test((await details.locator("dd").first().textContent()) ?? "")) await preempted.waitFor({ timeout: 3000 }).catch(() => {});
  }
  const own = await page.locator("section.interval h3").textContent();
  const rows = Object.fromEntries(await details.locator("dt").evaluateAll((terms) => terms.map((term) => [term.textContent, term.nextElementSibling?.textContent])));
  assert.match(rows["Preempted by"] ?? "", /^\S+ \d+$|not recorded/);
  assert.notEqual(rows["Preempted by"], own?.trim());
  const ran = Object.entries(rows).find(([term]) => /^CPU \d+ ran$/.test(term))!;
  assert.match(ran[1] ?? "", /\d (ns|µs|ms|s)/);
  const link = details.locator("dd a", { hasText: /^\S+ \d+$/ }).first();
  if ((await link.count()) > 0) {
    const before = page.url();
    await link.click();
    await page.waitForFunction((before) => location.href !== before, before);
    assert.match(page.url(), /at=-\d+,\d+/, "the lane of the CPU");
  }
});

selectionTest("start-up code is folded in time order, too", async (page) => {
  await open(page, "#explore?order=time");
  const table = page.getByRole("table", { name: /^Flame graph/ });
  const starts = table.locator("tr", { hasText: "libc_start" });
  const unfold = page.getByRole("button", { name: /^Show \d+ shared callers/ });
  await unfold.waitFor();
  // A short thread may have its start-up code only, which leads nowhere.
  const folded = await starts.count();
  await unfold.click();
  await starts.nth(folded).waitFor({ state: "attached" });
  await page.getByRole("button", { name: "Shared callers", pressed: true }).click();
  await starts.nth(folded).waitFor({ state: "detached" });
  assert.ok((await table.locator("tr", { hasText: /ground \(\d+\)/ }).count()) > 0, "each thread is a root");
});

selectionTest("on paper Explore says what is shown: the selection, the pane, its weight, the states' colours and the columns", async (page) => {
  await open(page, "#explore?pane=functions&threads=0");
  await page.locator(".rows .row:not(.head)").first().waitFor();
  await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
  await page.emulateMedia({ media: "print" });
  await page.setViewportSize({ width: 730, height: 1000 });
  for (const shown of [page.locator(".chip", { hasText: "Thread" }), page.locator(".lanes-legend"), page.getByRole("tab", { name: "Functions" }), page.getByLabel("Weight"), page.locator(".row.head", { hasText: "self" })]) {
    assert.ok(await shown.first().isVisible(), `${shown} is on paper`);
  }
  for (const absent of [page.getByRole("tab", { name: "Source" }), page.getByLabel("Select by name"), page.getByRole("button", { name: /^Remove/ }), page.locator(".lanes-hint")]) {
    assert.ok(!(await absent.first().isVisible()), `${absent} is not on paper`);
  }
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "nothing is cut at the right");
});

selectionTest("on paper the machine and the conditions are unfolded, and folded again afterwards", async (page) => {
  await page.goto(await address());
  const machine = page.locator(".verdict footer details").last();
  await machine.waitFor();
  const isOpen = () => machine.evaluate((element: HTMLDetailsElement) => element.open);
  assert.equal(await isOpen(), false);
  await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
  assert.equal(await isOpen(), true);
  await page.evaluate(() => dispatchEvent(new Event("afterprint")));
  assert.equal(await isOpen(), false);
});
