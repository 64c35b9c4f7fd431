// `stepscope view` as a program beside the browser.

import { spawn, type ChildProcess } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";

const ROOT = join(process.cwd(), "..");
/** The program of the workspace's build. */
export const PROGRAM = join(process.env["CARGO_TARGET_DIR"] ?? join(ROOT, "target"), "debug", "stepscope");
/** Writes hostile captures: crates/app/examples/hostile.rs. */
export const HOSTILE = join(PROGRAM, "../examples/hostile");
/** Captures and runs that an earlier version wrote. */
export const PROJECT = join(ROOT, "crates/cli/tests/schema_1/project");

/** Why it cannot be served here, if it cannot. */
export function lackingProgram(): string | undefined {
  return existsSync(PROGRAM) ? undefined : "stepscope is not built (cargo build --workspace)";
}

/** The same, where hostile captures are needed, too. */
export function lackingHostile(): string | undefined {
  return lackingProgram() ?? (existsSync(HOSTILE) ? undefined : "the example `hostile` is not built (cargo build --workspace --all-targets)");
}

export interface ServedView {
  /** As the program prints it, with the token. */
  address: string;
  pid: number;
  end(): Promise<void>;
}

/** Serves these runs and captures. */
export async function view(...sources: string[]): Promise<ServedView> {
  const child: ChildProcess = spawn(PROGRAM, ["view", "--no-open", ...sources], { stdio: ["ignore", "pipe", "ignore"] });
  const ended = new Promise<void>((resolve) => child.on("exit", () => resolve()));
  const lines = createInterface({ input: child.stdout! });
  const address = await Promise.race([new Promise<string>((resolve) => lines.once("line", resolve)), ended]);
  if (!address) throw new Error("stepscope view ended without an address");
  return {
    address,
    pid: child.pid!,
    end() {
      child.kill("SIGINT");
      return ended;
    },
  };
}
