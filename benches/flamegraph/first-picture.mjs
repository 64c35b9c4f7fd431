// How long a browser takes from the address of a flame graph to its first picture on the screen, and to answering a
// click: from navigation to a screenshot of what is drawn.

import { existsSync } from "node:fs";
import { basename, resolve } from "node:path";
import { performance } from "node:perf_hooks";
import { pathToFileURL } from "node:url";
import { chromium } from "../../web/node_modules/playwright-core/index.mjs";

const executablePath = [process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/google-chrome"].find((path) => path && existsSync(path));
if (!executablePath) {
  console.log("skipped: time to the first picture: chromium is missing (Debian package: chromium)");
  process.exit(0);
}
const LIMIT = 240_000;
const args = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

for (const file of process.argv.slice(2)) {
  // A browser of its own for each: nothing is warm.
  const browser = await chromium.launch({ executablePath, args });
  const page = await browser.newPage({ viewport: { width: 1300, height: 900 } });
  page.setDefaultTimeout(LIMIT);
  page.setDefaultNavigationTimeout(LIMIT);
  await page.goto("about:blank");
  const seconds = (from) => ((performance.now() - from) / 1000).toFixed(1);
  const name = basename(file);
  try {
    const start = performance.now();
    await page.goto(pathToFileURL(resolve(file)).href);
    await page.screenshot({ timeout: LIMIT });
    console.log(`${name}: first picture after ${seconds(start)} s`);
    const press = performance.now();
    await page.mouse.click(650, 800);
    await page.screenshot({ timeout: LIMIT });
    console.log(`${name}: answer to a click after ${seconds(press)} s`);
  } catch (error) {
    console.log(`${name}: nothing after ${LIMIT / 1000} s (${String(error.message).split("\n")[0]})`);
  }
  await browser.close();
}
