// How long a browser takes from the address of a report to its flame graph, and to the answer to a key; how much memory
// the page and its worker take.

import { existsSync, readFileSync, statSync } from "node:fs";
import { basename, resolve } from "node:path";
import { performance } from "node:perf_hooks";
import { pathToFileURL } from "node:url";
import { chromium } from "../../web/node_modules/playwright-core/index.mjs";

const executablePath = [process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/google-chrome"].find((path) => path && existsSync(path));
if (!executablePath) {
  console.log("skipped: time to the first picture: chromium is missing (Debian package: chromium)");
  process.exit(0);
}
const args = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const RUNS = Number(process.env.RUNS ?? 3);
const middle = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];

for (const file of process.argv.slice(2)) {
  const [shown, answered, used, memory] = [[], [], [], []];
  for (let run = 0; run < RUNS; run++) {
    // A browser of its own for each: nothing is warm.
    const browser = await chromium.launch({ executablePath, args });
    const page = await browser.newPage({ viewport: { width: 1300, height: 900 } });
    const failures = [];
    page.on("pageerror", (error) => failures.push(error.message));
    page.on("console", (message) => message.type() === "error" && failures.push(message.text()));
    await page.goto("about:blank");
    const start = performance.now();
    await page.goto(`${pathToFileURL(resolve(file)).href}#explore?pane=flame`);
    await page.getByText(/[\d,]+ frames/).first().waitFor({ timeout: 60_000 });
    shown.push(performance.now() - start);
    const session = await browser.newBrowserCDPSession();
    const { processInfo } = await session.send("SystemInfo.getProcessInfo");
    const renderers = processInfo.filter(({ type }) => type === "renderer").map(({ id }) => id);
    used.push(Math.max(...renderers.map(cpuOf)));
    const asked = performance.now();
    await page.getByPlaceholder(/Search functions/).fill("Apply1");
    await page.getByText(/matche?[sd]?\b.*%|% .*match/i).first().waitFor({ timeout: 20_000 }).catch(() => failures.push("no answer to a search"));
    answered.push(performance.now() - asked);
    memory.push(Math.max(...renderers.map(rssOf)));
    await browser.close();
    if (failures.length > 0) console.log(`  ${failures.join("; ")}`);
  }
  const [first, search, cpu] = [shown, answered, used].map((times) => (middle(times) / 1000).toFixed(2));
  console.log(
    `${basename(file)}: ${(statSync(file).size / 1e6).toFixed(1)} MB, flame graph after ${first} s (${cpu} s of CPU in the page's process), search after ${search} s, ` +
      `${middle(memory).toFixed(0)} MB in the page's process (medians of ${RUNS})`,
  );
}

/** Resident memory of a process in MB. */
function rssOf(id) {
  const line = readFileSync(`/proc/${id}/status`, "utf8").match(/VmRSS:\s+(\d+)/);
  return line ? Number(line[1]) / 1024 : 0;
}

/** CPU time of a process in ms, of all its threads. */
function cpuOf(id) {
  const fields = readFileSync(`/proc/${id}/stat`, "utf8").replace(/^.*\) /, "").split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10;
}
