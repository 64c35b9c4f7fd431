// Runs the tests: bundles each (Node.js 20 reads no TypeScript) and gives the bundles to Node's test runner.
//
//   npm test                 all of them
//   npm test -- flamegraph   those whose file names hold the word
//
// Tests that fail run a second time, without the others: on a busy machine, a browser may be late.

import { spawnSync } from "node:child_process";
import { availableParallelism } from "node:os";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { buildSync } from "esbuild";

const tests = fileURLToPath(new URL("test/", import.meta.url));
const words = process.argv.slice(2);
const entryPoints = readdirSync(tests)
  .filter((name) => name.endsWith(".test.ts") && words.every((word) => name.includes(word)))
  .map((name) => tests + name);
// Inside the package, so that bundles find its dependencies.
const bundles = mkdtempSync(fileURLToPath(new URL("node_modules/.tests-", import.meta.url)));
try {
  buildSync({ entryPoints, outdir: bundles, bundle: true, platform: "node", format: "esm", packages: "external", outExtension: { ".js": ".mjs" }, sourcemap: "inline" });
  const files = readdirSync(bundles).map((name) => `${bundles}/${name}`);
  // By default, one CPU is left idle.
  let status = run(files, [`--test-concurrency=${availableParallelism()}`]);
  const failed = namesOfFailed();
  if (status !== 0 && failed.length > 0) {
    for (const name of failed) console.log(`again: ${name}`);
    status = run(files, ["--test-concurrency=1", ...failed.map((name) => `--test-name-pattern=^${escaped(name)}$`)]);
    // A name that no test has passes nothing.
    if (!(passed() >= failed.length)) status ||= 1;
  }
  process.exitCode = status;
} finally {
  rmSync(bundles, { recursive: true, force: true });
}

/** Gives bundles to Node's test runner. Returns its exit code. */
function run(files, options) {
  const reports = ["--test-reporter=spec", "--test-reporter-destination=stdout", "--test-reporter=tap", `--test-reporter-destination=${bundles}/results.tap`];
  return spawnSync(process.execPath, ["--enable-source-maps", "--test", ...reports, ...options, ...files], { stdio: "inherit" }).status ?? 1;
}

/** The tests that failed in the last run, without the files that they are in. */
function namesOfFailed() {
  const lines = readFileSync(`${bundles}/results.tap`, "utf8").matchAll(/^ *not ok \d+ - (.*?)(?: # .*)?$/gm);
  return [...new Set([...lines].map(([, name]) => name.replaceAll("\\#", "#").replaceAll("\\\\", "\\")))].filter((name) => !name.startsWith(bundles));
}

/** How many tests passed in the last run. */
function passed() {
  return Number(/^# pass (\d+)$/m.exec(readFileSync(`${bundles}/results.tap`, "utf8"))?.[1]);
}

function escaped(name) {
  return name.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");
}
