// Writes the invented capture as a `.cpuprofile`, the one format of speedscope with a table of stacks: other formats repeat all
// frames of each sample, which no text of JavaScript holds for five million of them.
//
//   node cpuprofile.mjs FOLDER FILE

import { createWriteStream, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { buildSync } from "../../web/node_modules/esbuild/lib/main.js";

const [folder, out] = process.argv.slice(2);
const entry = fileURLToPath(new URL("../../web/src/data/parquet.ts", import.meta.url));
const bundle = buildSync({ entryPoints: [entry], bundle: true, format: "esm", platform: "node", write: false }).outputFiles[0].text;
const { decode } = await import(`data:text/javascript;base64,${Buffer.from(bundle).toString("base64")}`);
const table = async (name) => {
  const bytes = readFileSync(`${folder}/0/${name}.parquet`);
  return (await decode(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength))).columns;
};
const [frames, stacks, samples] = [await table("frames"), await table("stacks"), await table("samples")];

const file = createWriteStream(out);
/** Writes a list in pieces, so that no text gets too long. */
async function list(count, item) {
  for (let at = 0; at < count; at += 20_000) {
    const part = Array.from({ length: Math.min(20_000, count - at) }, (_, index) => item(at + index));
    if (!file.write((at > 0 ? "," : "") + part.join(","))) await new Promise((done) => file.once("drain", done));
  }
}
// Node 1 is the root; children are given by their parents.
const children = new Map();
stacks.parent.forEach((parent, stack) => {
  const list = children.get(parent);
  if (list) list.push(stack + 2);
  else children.set(parent, [stack + 2]);
});
const call = (name, line) => `"callFrame":{"functionName":${JSON.stringify(name)},"scriptId":"1","url":"","lineNumber":${line},"columnNumber":0}`;
file.write(`{"nodes":[{"id":1,${call("(root)", 0)},"hitCount":0,"children":[${children.get(-1)}]},`);
await list(stacks.parent.length, (stack) => `{"id":${stack + 2},${call(frames.function[stacks.frame[stack]], stacks.frame[stack])},"hitCount":0,"children":[${children.get(stack) ?? ""}]}`);
file.write(`],"startTime":0,"endTime":${Math.round(samples.time.at(-1) / 1000) + 1},"samples":[`);
await list(samples.stack.length, (sample) => samples.stack[sample] + 2);
file.write(`],"timeDeltas":[`);
await list(samples.time.length, (sample) => Math.round((samples.time[sample] - (sample > 0 ? samples.time[sample - 1] : 0)) / 1000));
file.end("]}");
