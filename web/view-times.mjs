// How long a capture takes from the start of `stepscope view` until its tables have reached the page. For benches/view/run.
//
//   node view-times.mjs PROGRAM CAPTURE

import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";

/** Nothing on its way for this long: the page has what it wants. In milliseconds. */
const QUIET = 5000;
const LONGEST = 180_000;

const [program, ...sources] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"] });
const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
page.on("console", (message) => message.type() === "error" && console.log(`console\t${message.text()}`));
page.on("pageerror", (error) => console.log(`error\t${error.message}`));

const started = performance.now();
const since = () => Math.round(performance.now() - started);
const child = spawn(program, ["view", "--no-open", ...sources], { stdio: ["ignore", "pipe", "ignore"] });
const [address] = await once(createInterface({ input: child.stdout }), "line");
console.log(`address\t${since()} ms`);
let [last, waiting] = [performance.now(), 0];
page.on("request", () => waiting++);
page.on("requestfailed", () => waiting--);
page.on("requestfinished", async (request) => {
  const after = since();
  last = performance.now();
  waiting--;
  const { pathname } = new URL(request.url());
  if (!pathname.startsWith("/data/") || pathname.includes("/lanes/")) return;
  const { responseBodySize } = await request.sizes();
  const { requestStart, responseStart, responseEnd } = request.timing();
  const [made, sent] = [responseStart - requestStart, responseEnd - responseStart].map(Math.round);
  console.log(`${pathname}\t${after} ms\t${(responseBodySize / 1e6).toFixed(1)} MB\tmade in ${made} ms\tsent in ${sent} ms`);
});
await page.goto(`${address}#explore`);
while (since() < LONGEST && (waiting > 0 || performance.now() - last < QUIET)) await page.waitForTimeout(100);
console.log(`all tables\t${Math.round(last - started)} ms`);
const marks = await page.evaluate(() => performance.getEntriesByType("mark").map(({ name, startTime }) => `${name} ${Math.round(startTime)} ms`));
console.log(`marks after the page was opened\t${marks.join(", ")}`);
await page.screenshot({ path: process.env.PICTURE ?? "/dev/null", type: "png" });
await browser.close();
child.kill("SIGINT");
