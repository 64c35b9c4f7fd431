// A recording in a real browser while it goes on.

import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { boxOf, browserTest, skipped } from "./browser.ts";
import { firefoxTest } from "./firefox.ts";
import { SIMULATOR, lackingRecording } from "./recorded.ts";
import { view, type ServedView } from "./served.ts";

/** The process of this name below a process. */
function childOf(parent: number, name: string): number {
  const processes = readdirSync("/proc").filter((entry) => /^\d+$/.test(entry)).flatMap((entry) => {
    try {
      const stat = readFileSync(`/proc/${entry}/stat`, "utf8");
      const [, ppid] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      return [{ pid: Number(entry), parent: Number(ppid), name: stat.slice(stat.indexOf("(") + 1, stat.lastIndexOf(")")) }];
    } catch {
      return []; // It ended.
    }
  });
  const below = (of: number): typeof processes => processes.filter(({ parent }) => parent === of).flatMap((one) => [one, ...below(one.pid)]);
  const found = below(parent).find((one) => one.name === name);
  assert.ok(found, `${name} runs`);
  return found.pid;
}

/** How many steps a page knows. */
async function steps(page: Page): Promise<number> {
  const figures = page.locator(".step-figures").filter({ hasText: /^[\d,]+/ });
  return Number(/^[\d,]+/.exec((await figures.first().textContent()) ?? "")?.[0].replaceAll(",", ""));
}

/** A viewer that opens the WebSocket and takes no bytes. */
function neverReads(address: string): Promise<Socket> {
  const { port, host, origin, searchParams } = new URL(address);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), "127.0.0.1", () => {
      const lines = [`GET /live HTTP/1.1`, `Host: ${host}`, `Origin: ${origin}`, "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13"];
      lines.push(`Sec-WebSocket-Key: ${Buffer.from("0123456789abcdef").toString("base64")}`, `Sec-WebSocket-Protocol: stepscope, token.${searchParams.get("token")}`);
      socket.write(`${lines.join("\r\n")}\r\n\r\n`);
    });
    socket.on("error", reject).once("data", (answer) => {
      socket.pause();
      if (/^HTTP\/1\.1 101/.test(answer.toString("latin1"))) resolve(socket.off("error", reject).on("error", () => {}));
      else reject(new Error(answer.toString("latin1")));
    });
  });
}

const reason = lackingRecording();

/** Serves the simulator while it is recorded: `run` are its arguments. */
async function recordedLive(run: string[], body: (served: ServedView) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "stepscope-live-"));
  writeFileSync(join(folder, "paced.sdf"), PACED);
  const served = await view("--live", "-o", join(folder, "capture"), "--", SIMULATOR, "run", ...run.map((argument) => argument.replace("FOLDER", folder)));
  try {
    await body(served);
  } finally {
    await served.end();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A test of a program while it is recorded: `run` are the arguments of the simulator. */
function liveTest(name: string, run: string[], body: (page: Page, served: ServedView) => Promise<void>): void {
  if (reason) return skipped(name, reason);
  browserTest(
    name,
    (page) => recordedLive(run, (served) => body(page, served)),
    { served: true, expected: /ERR_(CONNECTION_REFUSED|CONNECTION_RESET|EMPTY_RESPONSE)/ },
  );
}

/** A world that needs a hundredth of a CPU: pages have the rest, also on a busy machine. */
const PACED = `<?xml version="1.0"?><sdf version="1.9"><world name="paced">
<physics name="p" type="dart"><max_step_size>0.01</max_step_size><real_time_factor>1</real_time_factor></physics></world></sdf>`;

const bar = (page: Page) => page.getByRole("group", { name: "Live recording" });

liveTest("a program is shown while it runs, and its capture when it has ended", ["--sdf", "FOLDER/paced.sdf", "--seconds", "300"], async (page, served) => {
  await page.goto(`${served.address}#explore`);
  await bar(page).waitFor();
  await page.locator(".strip canvas").first().waitFor();
  await page.locator(".lanes-picture canvas").first().waitFor();
  await bar(page).getByRole("button", { name: "Pause" }).click();
  await bar(page).getByRole("button", { name: "Go on" }).click();
  await page.keyboard.press("Alt+m");
  await bar(page).getByText("1 mark").waitFor();
  await page.keyboard.press("m");
  await page.getByRole("button", { name: "Measure", pressed: true }).waitFor();
  assert.equal(await bar(page).getByText("2 marks").count(), 0, "m measures");
  await bar(page).getByLabel("Part that is shown").selectOption("1");
  await page.waitForFunction(() => location.hash.includes("last="));
  // The page was opened before the first row, and knows the program, units and states all the same.
  await page.waitForFunction(() => /[\d.]+ (µs|ms|s), [\d,]+ frames/.test(document.querySelector("#pane")?.textContent ?? ""));
  assert.equal(await page.getByRole("heading", { level: 1 }).textContent(), "Live: ground");
  process.kill(childOf(served.pid, "ground"), "SIGINT");
  const finished = bar(page).getByRole("button", { name: "Show the capture" });
  await finished.waitFor();
  assert.match((await bar(page).getByRole("status").first().textContent()) ?? "", /^Ended/);
  await finished.click();
  await bar(page).waitFor({ state: "detached" });
  await page.locator(".strip canvas").first().waitFor();
});

liveTest("several viewers see one recording; one that leaves and one that reads nothing disturb nobody", ["--sdf", "FOLDER/paced.sdf", "--seconds", "300"], async (page, served) => {
  const [other, gone] = [await page.context().newPage(), await page.context().newPage()];
  const silent = await neverReads(served.address);
  await page.goto(`${served.address}#explore`);
  await gone.goto(`${served.address}#explore`);
  await gone.locator(".strip canvas").first().waitFor();
  await gone.close();
  await other.goto(`${served.address}#explore`);
  for (const shown of [page, other]) {
    const seen = await steps(shown);
    await shown.waitForFunction((seen) => Number(/^[\d,]+/.exec(document.querySelector(".step-figures")?.textContent ?? "")?.[0].replaceAll(",", "")) > seen, seen);
  }
  await page.bringToFront();
  await page.keyboard.press("Alt+m");
  for (const shown of [page, other]) await bar(shown).getByText("1 mark").waitFor();
  process.kill(childOf(served.pid, "ground"), "SIGINT");
  for (const shown of [page, other]) {
    // The view has a low priority: beside other tests it takes its time.
    await bar(shown).getByRole("button", { name: "Show the capture" }).waitFor();
    assert.match((await bar(shown).getByRole("status").first().textContent()) ?? "", /^Ended/);
  }
  silent.destroy();
});

liveTest("on a phone the live bar fits, and what is being saved when the recording ends is saved", ["--sdf", "FOLDER/paced.sdf", "--seconds", "300"], async (page, served) => {
  await page.setViewportSize({ width: 390, height: 844 });
  await page.goto(`${served.address}#explore`);
  await bar(page).waitFor();
  await page.locator(".strip canvas").first().waitFor();
  const controls = [bar(page).getByRole("button", { name: "Pause" }), bar(page).getByLabel("Part that is shown"), bar(page).getByRole("button", { name: "Mark" }), page.getByLabel("Save as a capture")];
  for (const control of controls) {
    const { x, width } = await boxOf(control);
    assert.ok(x >= 0 && x + width <= 390, `${control} at ${x}, ${width} wide`);
  }
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
  await page.getByLabel("Save as a capture").selectOption("0");
  process.kill(childOf(served.pid, "ground"), "SIGINT");
  const said = bar(page).locator(".said").filter({ hasText: / s are in / });
  await said.waitFor();
  assert.ok(existsSync(join(/ in (.*)\.$/.exec((await said.textContent())!)![1], "capture.json")));
});

if (reason) skipped("a program is shown in Firefox while it runs", reason);
else {
  firefoxTest("a program is shown in Firefox while it runs", (page) =>
    recordedLive(["--sdf", "FOLDER/paced.sdf", "--seconds", "300"], async (served) => {
      await page.open(`${served.address}#explore`);
      await page.until("document.querySelectorAll('.strip canvas, .lanes-picture canvas').length > 1");
      const steps = "Number(/^[\\d,]+/.exec(document.querySelector('.step-figures')?.textContent ?? '')?.[0].replaceAll(',', ''))";
      const seen = Number(await page.text(steps));
      await page.until(`${steps} > ${seen || 0}`);
      process.kill(childOf(served.pid, "ground"), "SIGINT");
      const finished = "[...document.querySelectorAll('button')].find((one) => one.textContent === 'Show the capture')";
      await page.until(`${finished} !== undefined`);
      await page.text(`${finished}.click()`);
      await page.until("document.querySelector('[aria-label=\"Live recording\"]') === null && document.querySelector('.strip canvas') !== null");
      assert.equal(await page.text("document.querySelectorAll('.failure').length"), "0");
    }),
  );
}
