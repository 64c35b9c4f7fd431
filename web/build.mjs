// Builds the scripts and styles of src/ into the assets/ of the Rust crates that embed them.
//
//   node build.mjs           writes them
//   node build.mjs --check   fails if what is committed is not what the sources give

import { createHash } from "node:crypto";
import { readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { buildSync } from "esbuild";

const SOURCES = fileURLToPath(new URL("src/", import.meta.url));
const CRATES = fileURLToPath(new URL("../crates/", import.meta.url));
const ENTRIES = [
  ["svg.ts", "view/assets/flamegraph.js"],
  ["flamegraph.css", "view/assets/flamegraph.css"],
  ["chart.css", "view/assets/chart.css"],
  ["app/main.tsx", "app/assets/app.js"],
  ["app/app.css", "app/assets/app.css"],
];
/** Scripts of pages whose content security policy names their hash. */
const HASHED = ["app/assets/app.js"];

/** The path of each source file in `src/`, with slashes, in the order of their bytes. */
function sources() {
  const entries = readdirSync(SOURCES, { recursive: true, withFileTypes: true });
  const paths = entries.filter((entry) => entry.isFile()).map((entry) => `${entry.parentPath ?? entry.path}/${entry.name}`);
  return paths.map((path) => path.replace(/\/\/+/g, "/").slice(SOURCES.length)).sort();
}

/**
 * FNV-1a (64 bits) over path, length and text of every source, in the order of their paths. The Rust tests compute it
 * too, so that a machine without Node.js notices sources that were not built.
 */
function fingerprint() {
  let hash = 0xcbf29ce484222325n;
  const add = (bytes) => {
    for (const byte of bytes) hash = ((hash ^ BigInt(byte)) * 0x100000001b3n) & 0xffffffffffffffffn;
  };
  for (const name of sources()) {
    const text = readFileSync(SOURCES + name);
    add(Buffer.from(`${name} ${text.length}\n`));
    add(text);
  }
  return hash.toString(16).padStart(16, "0");
}

/** One source and all that it imports, as one text. */
function bundle(source, banner, define = {}) {
  const result = buildSync({
    entryPoints: [SOURCES + source],
    bundle: true,
    minify: true,
    charset: "utf8",
    format: "iife",
    target: ["chrome109", "firefox115", "safari16"],
    banner: { js: banner, css: banner },
    define,
    legalComments: "none",
    write: false,
  });
  return result.outputFiles[0].text;
}

function built() {
  const banner = `/* Built from web/src by \`npm run build\`; sources ${fingerprint()} */`;
  // The app starts its worker from this text, so that one script is all it needs.
  const define = { WORKER_SCRIPT: JSON.stringify(bundle("worker/worker.ts", "")) };
  return ENTRIES.flatMap(([source, asset]) => {
    const text = bundle(source, banner, define);
    for (const end of ["</script", "</style", "<!--", "]]>"]) {
      if (text.toLowerCase().includes(end)) throw new Error(`${asset} holds ${end}, which would end what it is embedded in`);
    }
    if (!HASHED.includes(asset)) return { asset, text };
    // What the page's content security policy says of its one script.
    const hash = `sha256-${createHash("sha256").update(text).digest("base64")}\n`;
    return [{ asset, text }, { asset: `${asset}.hash`, text: hash }];
  });
}

const stale = [];
const assets = built();
// Assets whose sources are gone.
for (const folder of ["view/assets/", "app/assets/"]) {
  const others = readdirSync(CRATES + folder).filter((name) => !assets.some(({ asset }) => asset === folder + name));
  if (process.argv.includes("--check")) stale.push(...others.map((name) => folder + name));
  else others.forEach((name) => rmSync(CRATES + folder + name));
}
for (const { asset, text } of assets) {
  if (!process.argv.includes("--check")) writeFileSync(CRATES + asset, text);
  else if (readFileSync(CRATES + asset, "utf8") !== text) stale.push(asset);
}
if (stale.length > 0) {
  console.error(`crates/{${stale.join(",")}} are not what web/src gives: run \`npm run build\` and commit`);
  process.exit(1);
}
