// Runs the tests: bundles each (Node.js 20 reads no TypeScript) and gives the bundles to Node's test runner.
//
//   npm test                 all of them
//   npm test -- flamegraph   those whose file names hold the word

import { spawnSync } from "node:child_process";
import { availableParallelism } from "node:os";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
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
  const concurrency = [`--test-concurrency=${availableParallelism()}`];
  const { status } = spawnSync(process.execPath, ["--enable-source-maps", "--test", "--test-reporter=spec", ...concurrency, ...files], { stdio: "inherit" });
  process.exitCode = status ?? 1;
} finally {
  rmSync(bundles, { recursive: true, force: true });
}
