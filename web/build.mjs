// Builds the scripts and styles of src/ into crates/view/assets/, from where the Rust crate embeds them.
//
//   node build.mjs           writes them
//   node build.mjs --check   fails if what is committed is not what the sources give

import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { buildSync } from "esbuild";

const SOURCES = fileURLToPath(new URL("src/", import.meta.url));
const ASSETS = fileURLToPath(new URL("../crates/view/assets/", import.meta.url));
const ENTRIES = [
  ["svg.ts", "flamegraph.js"],
  ["flamegraph.css", "flamegraph.css"],
  ["chart.css", "chart.css"],
  ["report.ts", "report.js"],
  ["report.css", "report.css"],
];

/**
 * FNV-1a (64 bits) over name, length and text of every source, in the order of their names. The Rust tests compute it
 * too, so that a machine without Node.js notices sources that were not built.
 */
function fingerprint() {
  let hash = 0xcbf29ce484222325n;
  const add = (bytes) => {
    for (const byte of bytes) hash = ((hash ^ BigInt(byte)) * 0x100000001b3n) & 0xffffffffffffffffn;
  };
  for (const name of readdirSync(SOURCES).sort()) {
    const text = readFileSync(SOURCES + name);
    add(Buffer.from(`${name} ${text.length}\n`));
    add(text);
  }
  return hash.toString(16).padStart(16, "0");
}

function built() {
  const banner = `/* Built from web/src by \`npm run build\`; sources ${fingerprint()} */`;
  return ENTRIES.flatMap(([source, asset]) => {
    const result = buildSync({
      entryPoints: [SOURCES + source],
      bundle: true,
      minify: true,
      charset: "utf8",
      format: "iife",
      target: ["chrome109", "firefox115", "safari16"],
      banner: { js: banner, css: banner },
      legalComments: "none",
      write: false,
    });
    const text = result.outputFiles[0].text;
    for (const end of ["</script", "</style", "<!--", "]]>"]) {
      if (text.toLowerCase().includes(end)) throw new Error(`${asset} holds ${end}, which would end what it is embedded in`);
    }
    if (asset !== "report.js") return { asset, text };
    // What the page's content security policy says of its one script.
    const hash = `sha256-${createHash("sha256").update(text).digest("base64")}\n`;
    return [{ asset, text }, { asset: `${asset}.hash`, text: hash }];
  });
}

const stale = [];
for (const { asset, text } of built()) {
  if (!process.argv.includes("--check")) writeFileSync(ASSETS + asset, text);
  else if (readFileSync(ASSETS + asset, "utf8") !== text) stale.push(asset);
}
if (stale.length > 0) {
  console.error(`crates/view/assets/{${stale.join(",")}} are not what web/src gives: run \`npm run build\` and commit`);
  process.exit(1);
}
