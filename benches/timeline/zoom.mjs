// How long a browser takes from the address of a served capture to the first whole picture of its timeline, and how many frames per second it
// draws while the wheel zooms and the pointer drags: frames that Chromium's compositor shows, from its trace.

import { existsSync } from "node:fs";
import { chromium } from "../../web/node_modules/playwright-core/index.mjs";

const executablePath = [process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/google-chrome"].find((path) => path && existsSync(path));
if (!executablePath) {
  console.log("skipped: the timeline's pictures: chromium is missing (Debian package: chromium)");
  process.exit(0);
}
const args = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const address = process.argv[2];
const SECONDS = 4;

const browser = await chromium.launch({ executablePath, args });
const page = await browser.newPage({ viewport: { width: 1300, height: 900 } });
page.setDefaultTimeout(120_000);
await page.goto(`${address}#explore`);
await page.waitForFunction(() => performance.getEntriesByName("stepscope-timeline").length > 0);
const first = await page.evaluate(() => performance.getEntriesByName("stepscope-timeline")[0].startTime);
console.log(`first whole timeline after ${(first / 1000).toFixed(2)} s`);

const { x, y, width, height } = await page.locator(".lanes-picture").boundingBox();
const client = await page.context().newCDPSession(page);

/** Events of the trace while something is done. */
async function traced(body) {
  const events = [];
  const collect = ({ value }) => events.push(...value);
  client.on("Tracing.dataCollected", collect);
  await client.send("Tracing.start", { traceConfig: { includedCategories: ["toplevel", "devtools.timeline.frame", "disabled-by-default-devtools.timeline.frame"] }, transferMode: "ReportEvents" });
  await body();
  const done = new Promise((resolve) => client.once("Tracing.tracingComplete", resolve));
  await client.send("Tracing.end");
  await done;
  client.off("Tracing.dataCollected", collect);
  return events;
}

/** Tasks of Chromium's threads, whose CPU time the trace has. */
const TASKS = new Set(["ThreadControllerImpl::RunTask", "ThreadPool_RunTask", "RunTask"]);

/** CPU time of the threads that make frames, in ms per frame: a busy machine delays frames, and this stays. */
function costPerFrame(events, frames) {
  const threads = new Map(events.filter(({ name }) => name === "thread_name").map(({ pid, tid, args }) => [`${pid} ${tid}`, args.name]));
  const sums = { script: 0, raster: 0, compositor: 0 };
  for (const { name, ph, pid, tid, tdur = 0 } of events) {
    if (ph !== "X" || !TASKS.has(name)) continue;
    const thread = threads.get(`${pid} ${tid}`) ?? "";
    const part = thread === "CrRendererMain" ? "script" : thread.startsWith("ThreadPool") || thread.startsWith("CompositorTile") ? "raster" : /Compositor|CrGpuMain/.test(thread) ? "compositor" : undefined;
    if (part) sums[part] += tdur / 1000;
  }
  return Object.entries(sums).map(([part, ms]) => `${part} ${(ms / Math.max(1, frames)).toFixed(1)} ms`).join(", ");
}

/** Frames per second while the pointer does something again and again. Input and drawing are as fast as the page allows. */
async function measured(name, gesture) {
  const count = () => {
    const found = { frames: 0, longest: 0, last: performance.now(), start: performance.now() };
    globalThis.found = found;
    const tick = () => {
      const now = performance.now();
      found.longest = Math.max(found.longest, now - found.last);
      found.last = now;
      found.frames++;
      if (globalThis.found === found) requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  };
  let asked = { frames: 0 };
  const events = await traced(async () => {
    await page.evaluate(count);
    await page.evaluate(gesture, { x, y, width, height, seconds: SECONDS });
    asked = await page.evaluate(() => ({ ...globalThis.found, end: performance.now(), found: (globalThis.found = undefined) }));
  });
  const shown = events.filter(({ name }) => name === "DrawFrame").length;
  const seconds = (asked.end - asked.start) / 1000;
  console.log(`${name}: ${(asked.frames / seconds).toFixed(0)} frames per second, ${(shown / seconds).toFixed(0)} shown by the compositor; the longest took ${asked.longest.toFixed(0)} ms`);
  console.log(`${name}: CPU time per frame: ${costPerFrame(events, asked.frames)}`);
}

/** A turn of the wheel for each frame: in for the first half, out for the second. */
const zoom = ({ x, y, width, height, seconds }) =>
  new Promise((resolve) => {
    const element = document.querySelector(".lanes-picture");
    const start = performance.now();
    const tick = () => {
      const share = (performance.now() - start) / (seconds * 1000);
      if (share > 1) return resolve();
      element.dispatchEvent(new WheelEvent("wheel", { deltaY: share < 0.5 ? -25 : 25, clientX: x + width * 0.6, clientY: y + height / 2, bubbles: true, cancelable: true }));
      requestAnimationFrame(tick);
    };
    tick();
  });

/** A drag to and fro. */
const pan = ({ x, y, width, height, seconds }) =>
  new Promise((resolve) => {
    const element = document.querySelector(".lanes-picture");
    element.setPointerCapture = () => {};
    const start = performance.now();
    const at = (type, share) => element.dispatchEvent(new PointerEvent(type, { pointerId: 1, clientX: x + width * (0.5 + 0.3 * Math.sin(share * 12)), clientY: y + height / 2, bubbles: true, pointerType: "mouse" }));
    at("pointerdown", 0);
    const tick = () => {
      const share = (performance.now() - start) / (seconds * 1000);
      if (share > 1) return resolve(at("pointerup", share));
      at("pointermove", share);
      requestAnimationFrame(tick);
    };
    tick();
  });

await measured("zoom", zoom);
await page.evaluate(({ x, y, width, height }) => {
  const element = document.querySelector(".lanes-picture");
  for (let turn = 0; turn < 60; turn++) element.dispatchEvent(new WheelEvent("wheel", { deltaY: -25, clientX: x + width * 0.6, clientY: y + height / 2, bubbles: true, cancelable: true }));
}, { x, y, width, height });
await page.waitForTimeout(1500);
await measured("pan", pan);
const memory = await page.evaluate(() => performance.memory?.usedJSHeapSize ?? 0);
console.log(`memory of the page's scripts: ${(memory / 2 ** 20).toFixed(0)} MiB`);
if (process.argv[3]) await page.screenshot({ path: process.argv[3] });
await browser.close();
