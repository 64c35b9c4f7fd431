// Charts of monitored processes: of a real monitor, and of ten processes.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { drawnPage, open, overflows } from "./app_page.ts";
import { browserTest, saved, skipped } from "./browser.ts";
import { lackingProgram, PROGRAM } from "./served.ts";

const folder = mkdtempSync(join(tmpdir(), "stepscope-monitor-"));
after(() => rmSync(folder, { recursive: true, force: true }));

const lacking = lackingProgram();

function monitoredPage(): string {
  const capture = join(folder, "monitor.capture");
  const busy = spawn("sh", ["-c", "while :; do :; done"], { stdio: "ignore" });
  try {
    execFileSync(PROGRAM, ["monitor", "--pid", String(busy.pid), "--pid", String(process.pid), "-d", "3s", "--every", "200ms", "-o", capture], { stdio: "ignore" });
  } finally {
    busy.kill("SIGKILL");
  }
  const out = join(folder, "monitor.html");
  execFileSync(PROGRAM, ["report", capture, "-o", out], { stdio: "ignore" });
  return saved("monitor.html", readFileSync(out, "utf8"));
}

if (lacking) skipped("a monitor's figures are charts over time", lacking);
else
  browserTest("a monitor's figures are charts over time", async (page) => {
    const address = monitoredPage();
    await open(page, address, "#tables");
    const place = await page.evaluate(() => {
      const manifest = JSON.parse(document.getElementById("manifest")!.textContent!) as { document: { sections: { sections: { title: string; anchor: string }[] }[] } };
      return manifest.document.sections.flatMap(({ sections }) => sections).find(({ title }) => title === "Monitor")!.anchor;
    });
    await open(page, address, `#tables?place=${place}`);
    await page.waitForSelector("figure.chart");
    const titles = await page.locator("figure.chart h4").allTextContents();
    for (const title of ["CPU time (cores)", "Resident memory", "Open file descriptors", "Threads"]) assert.ok(titles.includes(title), `${title} in ${titles.join(", ")}`);
    const cores = page.locator("figure.chart", { has: page.locator("h4", { hasText: "CPU time (cores)" }) });
    await cores.scrollIntoViewIfNeeded();
    await cores.locator("canvas").waitFor();
    const labels = await cores.locator(".u-legend .u-label").allTextContents();
    assert.ok(labels.some((label) => label.startsWith("dash") || label.startsWith("sh")), labels.join(", "));
    assert.deepEqual(await overflows(page), []);
    if (process.env["STEPSCOPE_SHOTS"]) await page.screenshot({ path: join(process.env["STEPSCOPE_SHOTS"], "monitor.png"), fullPage: true });
  });

browserTest("lines of ten processes differ: the last ones are dashed", async (page) => {
  const column = (name: string, header: string, values: number[]) => ({ name, header, beside: "", unit: "bytes", doc: "Memory.", kind: "bytes", importance: "normal", values });
  const columns = [{ ...column("time", "time", [1, 2, 3, 4]), unit: "ns", kind: "duration" }];
  for (let top = 1; top <= 10; top++) columns.push(column(`top_${top}`, `node ${top}`, [1, 2, 3, 4].map((time) => (time + 20 - top) * 1e6)));
  const table = { name: "monitor_rss", title: "Resident memory", columns, notes: [] };
  const marks = columns.slice(1).map(({ name }) => ({ kind: "line", columns: [name] }));
  const block = { kind: "chart", table, across: "time", caption: "", floor: "zero", marks };
  const section = { anchor: "monitor", title: "Monitor", notes: [], blocks: [block], sections: [] };
  const report = { title: "t", subtitle: "", about: [], warnings: [], sections: [section] };
  await open(page, drawnPage("ten.html", { version: 1, title: "t", document: report, captures: [], live: false }), "#tables");
  const chart = page.locator("figure.chart");
  await chart.locator("canvas").waitFor();
  const legend = await chart.locator(".u-legend .u-series").evaluateAll((rows) => rows.slice(1).map((row) => [row.querySelector(".u-label")!.textContent, getComputedStyle(row.querySelector(".u-marker")!).borderTopStyle + getComputedStyle(row.querySelector(".u-marker")!).borderTopColor]));
  assert.equal(legend.length, 10);
  assert.equal(new Set(legend.map(([, look]) => look)).size, 10, JSON.stringify(legend));
});
