// How the app draws a flame graph of a million stacks and five million samples, beside speedscope on the same data: time to the first picture, frames
// per second while zooming and panning, memory of the page.
//
//   node page.mjs FOLDER              FOLDER as crates/app/examples/generated.rs writes it
//   node page.mjs FOLDER speedscope   the same data in speedscope, whose package must be in SPEEDSCOPE (npm pack speedscope)

import { createReadStream, existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, resolve } from "node:path";
import { performance } from "node:perf_hooks";
import { chromium } from "../../web/node_modules/playwright-core/index.mjs";

const executablePath = [process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/google-chrome"].find((path) => path && existsSync(path));
if (!executablePath) {
  console.log("skipped: flame graphs in the browser: chromium is missing (Debian package: chromium)");
  process.exit(0);
}
const LIMIT = 300_000;
const ARGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".json": "application/json" };
const [folder, who = "stepscope"] = process.argv.slice(2);
const root = resolve(import.meta.dirname, "../..");

const PAGE = `<!doctype html><html lang="en"><meta charset="utf-8"><title>bench</title><link rel="stylesheet" href="/app.css"><div id="app"></div><script src="/app.js"></script></html>`;

/** Serves the app on the folder, and speedscope on its copy of the data. */
const server = createServer((request, response) => {
  const path = decodeURIComponent(new URL(request.url, "http://localhost").pathname);
  if (path === "/") return response.setHeader("content-type", "text/html").end(PAGE);
  const file = path.startsWith("/app.")
    ? join(root, "crates/app/assets", path)
    : path.startsWith("/data/") ? join(folder, path.slice(6)) : join(process.env.SPEEDSCOPE ?? folder, path.slice(1));
  // As the server answers for a table without rows.
  if (!existsSync(file) || !statSync(file).isFile()) return response.writeHead(204).end();
  response.setHeader("content-type", TYPES[extname(file)] ?? "application/octet-stream");
  response.setHeader("content-length", statSync(file).size);
  createReadStream(file).pipe(response);
});
await new Promise((done) => server.listen(0, "127.0.0.1", done));
const origin = `http://127.0.0.1:${server.address().port}`;

/** Peak resident memory of the browser's processes for pages, in MiB. */
function rendererMemory(pid) {
  const kib = (file, key) => Number(new RegExp(`${key}:\\s+(\\d+)`).exec(readFileSync(file, "utf8"))?.[1] ?? 0);
  const found = [];
  for (const entry of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      const command = readFileSync(`/proc/${entry}/cmdline`, "utf8");
      if (command.includes("--type=renderer") && isBelow(entry, pid)) found.push({ now: kib(`/proc/${entry}/status`, "VmRSS"), peak: kib(`/proc/${entry}/status`, "VmHWM") });
    } catch {
      // The process has ended.
    }
  }
  const most = found.sort((a, b) => b.peak - a.peak)[0] ?? { now: 0, peak: 0 };
  return { now: Math.round(most.now / 1024), peak: Math.round(most.peak / 1024) };
}

function isBelow(pid, ancestor) {
  for (let at = Number(pid); at > 1; ) {
    if (at === ancestor) return true;
    at = Number(/PPid:\s+(\d+)/.exec(readFileSync(`/proc/${at}/status`, "utf8"))[1]);
  }
  return false;
}

const launched = await chromium.launchServer({ executablePath, args: ARGS });
const browser = await chromium.connect(launched.wsEndpoint());
const page = await browser.newPage({ viewport: { width: 1300, height: 900 } });
page.setDefaultTimeout(LIMIT);
page.on("console", (message) => process.env.VERBOSE && console.log(`  console: ${message.text().slice(0, 160)}`));
page.on("pageerror", (error) => console.log(`error in the page: ${error.message.slice(0, 300)}`));
const seconds = (from) => ((performance.now() - from) / 1000).toFixed(2);

/** Frames per second while something moves each frame: the mean, and that of the slowest twentieth. */
async function frames(name, move) {
  const deltas = await page.evaluate(
    ([move, count]) =>
      new Promise((done) => {
        const times = [];
        const act = new Function("at", move);
        const step = (now) => {
          times.push(now);
          if (times.length > count) return done(times.slice(1).map((time, at) => time - times[at]));
          act(times.length);
          requestAnimationFrame(step);
        };
        requestAnimationFrame(step);
      }),
    [move, 150],
  );
  const sorted = deltas.toSorted((a, b) => a - b);
  const mean = deltas.reduce((sum, delta) => sum + delta, 0) / deltas.length;
  const slow = sorted[Math.floor(sorted.length * 0.95)];
  console.log(`  ${name}: ${(1000 / mean).toFixed(0)} frames per second; 95 % of frames in ${slow.toFixed(1)} ms, the longest in ${sorted.at(-1).toFixed(1)} ms`);
}

const WHEEL = (selector, event) => `document.querySelector(${JSON.stringify(selector)}).dispatchEvent(new WheelEvent("wheel", { bubbles: true, cancelable: true, clientX: 500, clientY: 600, ...(${event}) }))`;

/** Waits for something on the page; says so if it does not come. */
async function isThere(waiting) {
  try {
    await waiting;
    return true;
  } catch (error) {
    console.log(`  nothing after ${seconds(start)} s (${String(error.message).split("\n")[0]})`);
    return false;
  }
}

console.log(`${who}:`);
const start = performance.now();
if (who === "stepscope") {
  await page.goto(`${origin}/?token=bench#explore`, { waitUntil: "commit" });
  await page.waitForSelector(".flame-picture canvas", { timeout: LIMIT });
  await page.screenshot({ path: process.env.SHOT, timeout: LIMIT });
  console.log(`  first flame graph after ${seconds(start)} s (${await page.locator(".status .soft").textContent()})`);
  await page.waitForTimeout(1500);
  // Into the picture and out again, each frame a step.
  await frames("zoom", WHEEL(".flame-picture", "{ ctrlKey: true, deltaY: at % 100 < 50 ? -40 : 40 }"));
  await frames("pan", `for (let i = 0; i < 1; i++) ${WHEEL(".flame-picture", "{ deltaX: at % 60 < 30 ? 25 : -25, deltaY: at % 40 < 20 ? 12 : -12 }")}`);
  const figures = await page.locator(".status .soft").textContent();
  const again = performance.now();
  await page.click("button:has-text('Inverted')");
  await page.waitForFunction((figures) => document.querySelector(".status .soft")?.textContent !== figures, figures);
  console.log(`  inverted after ${seconds(again)} s`);
} else {
  await page.goto(`${origin}/index.html#profileURL=${encodeURIComponent(`${origin}/profile.cpuprofile`)}`, { waitUntil: "commit" });
  if (await isThere(page.waitForFunction(() => /Left Heavy/.test(document.body.textContent ?? "")))) {
    await page.screenshot({ path: process.env.SHOT, timeout: LIMIT });
    console.log(`  first flame graph, in time order, after ${seconds(start)} s`);
    const left = performance.now();
    await page.keyboard.press("2");
    await page.screenshot({ path: process.env.SHOT, timeout: LIMIT });
    console.log(`  left heavy after ${seconds(left)} s more`);
    await frames("zoom", WHEEL("canvas", "{ ctrlKey: true, deltaY: at % 100 < 50 ? -40 : 40 }"));
    await frames("pan", WHEEL("canvas", "{ deltaX: at % 60 < 30 ? 25 : -25, deltaY: at % 40 < 20 ? 12 : -12 }"));
  }
}
const memory = rendererMemory(launched.process().pid);
console.log(`  memory of the page: ${memory.now} MiB now, ${memory.peak} MiB at most`);
await browser.close();
await launched.close();
server.close();
