// Tests on a recording that is made here, and that all tests of a file share.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import type { Page } from "playwright-core";
import { browserTest, skipped } from "./browser.ts";
import { lackingProgram, PROGRAM, view, type ServedView } from "./served.ts";

/** The bundled simulator. */
export const SIMULATOR = join(PROGRAM, "../ground");

/** Why nothing can be recorded here, if so. */
export function lackingRecording(): string | undefined {
  if (!existsSync(SIMULATOR)) return "the bundled simulator is not built (cargo build --workspace)";
  return lackingProgram() ?? (spawnSync(PROGRAM, ["doctor"]).status === 0 ? undefined : "nothing can be recorded on this machine");
}

export interface Recorded {
  /** The address of the served recording. */
  address(): Promise<string>;
  test(name: string, body: (page: Page) => Promise<void>): void;
}

/** A capture of this name, by `record` with these arguments. It is made when it is first asked for. */
export function recorded(name: string, ...record: string[]): Recorded {
  const folder = mkdtempSync(join(tmpdir(), "stepscope-recorded-"));
  let served: Promise<ServedView> | undefined;
  after(async () => {
    await (await served)?.end();
    rmSync(folder, { recursive: true, force: true });
  });
  const lacking = lackingRecording();
  return {
    async address() {
      if (!served) {
        const capture = join(folder, name);
        const done = spawnSync(PROGRAM, ["record", "-o", capture, ...record], { encoding: "utf8" });
        assert.equal(done.status, 0, done.stderr);
        served = view(capture, "--owned", "ground::*");
      }
      return (await served).address;
    },
    test(title, body) {
      if (lacking) return skipped(title, lacking);
      browserTest(title, body, { served: true, width: 1280, height: 900 });
    },
  };
}
