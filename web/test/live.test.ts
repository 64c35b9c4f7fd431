// A recording in a real browser while it goes on.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { browserTest } from "./browser.ts";
import { PROGRAM, lackingProgram, view } from "./served.ts";

const SIMULATOR = join(PROGRAM, "../ground");

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

function lacking(): string | undefined {
  if (!existsSync(SIMULATOR)) return "the bundled simulator is not built (cargo build --workspace)";
  return lackingProgram() ?? (spawnSync(PROGRAM, ["doctor"]).status === 0 ? undefined : "nothing can be recorded on this machine");
}

const name = "a program is shown while it runs, and its capture when it has ended";
const reason = lacking();
if (reason) {
  test(name, { skip: reason }, () => {});
  console.log(`skipped: ${name}: ${reason}`);
} else {
  browserTest(
    name,
    async (page) => {
      const folder = mkdtempSync(join(tmpdir(), "stepscope-live-"));
      const served = await view("--live", "-o", join(folder, "capture"), "--", SIMULATOR, "run", "--n", "300", "--static", "--seconds", "120");
      try {
        await page.goto(`${served.address}#explore`);
        const bar = page.getByRole("group", { name: "Live recording" });
        await bar.waitFor();
        await page.locator(".strip canvas").first().waitFor({ timeout: 60_000 });
        await page.locator(".lanes-picture canvas").first().waitFor({ timeout: 60_000 });
        await bar.getByRole("button", { name: "Pause" }).click();
        await bar.getByRole("button", { name: "Go on" }).click();
        await page.keyboard.press("Alt+m");
        await bar.getByText("1 mark").waitFor();
        await page.keyboard.press("m");
        await page.getByRole("button", { name: "Measure", pressed: true }).waitFor();
        assert.equal(await bar.getByText("2 marks").count(), 0, "m measures");
        await bar.getByLabel("Part that is shown").selectOption("1");
        await page.waitForFunction(() => location.hash.includes("last="));
        // The page was opened before the first row, and knows the program, units and states all the same.
        await page.waitForFunction(() => /[\d.]+ (µs|ms|s), [\d,]+ frames/.test(document.querySelector("#pane")?.textContent ?? ""), undefined, { timeout: 60_000 });
        assert.equal(await page.getByRole("heading", { level: 1 }).textContent(), "Live: ground");
        process.kill(childOf(served.pid, "ground"), "SIGINT");
        const finished = bar.getByRole("button", { name: "Show the capture" });
        await finished.waitFor({ timeout: 60_000 });
        assert.match((await bar.getByRole("status").first().textContent()) ?? "", /^Ended/);
        await finished.click();
        await bar.waitFor({ state: "detached" });
        await page.locator(".strip canvas").first().waitFor({ timeout: 30_000 });
      } finally {
        await served.end();
        rmSync(folder, { recursive: true, force: true });
      }
    },
    { served: true, expected: /ERR_(CONNECTION_REFUSED|CONNECTION_RESET|EMPTY_RESPONSE)/ },
  );
}
