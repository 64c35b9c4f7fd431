// Both surfaces draw the same shapes, and find them.

import assert from "node:assert/strict";
import { buildSync } from "esbuild";
import { browserTest, saved } from "./browser.ts";

const SCRIPT = `
import { createSurface } from "./src/draw/surface.ts";
globalThis.draw = (kind, scene) => {
  const surface = createSurface(() => {}, kind);
  document.body.append(surface.canvas);
  surface.resize(200, 100);
  surface.begin(0xffffffff);
  scene(surface);
  surface.end();
  // Before the browser shows the frame and clears it.
  const copy = document.createElement("canvas").getContext("2d");
  copy.canvas.width = surface.canvas.width;
  copy.canvas.height = surface.canvas.height;
  copy.drawImage(surface.canvas, 0, 0);
  const pixel = (x, y) => [...copy.getImageData(x, y, 1, 1).data.slice(0, 3)].map((part) => part.toString(16).padStart(2, "0")).join("");
  const dark = (x, y, width, height) => copy.getImageData(x, y, width, height).data.filter((part, at) => at % 4 === 0 && part < 128).length;
  return { surface, pixel, dark };
};
`;

function page(): string {
  const stdin = { contents: SCRIPT, resolveDir: process.cwd(), loader: "ts" as const };
  const script = buildSync({ stdin, bundle: true, format: "iife", write: false }).outputFiles[0].text;
  return saved("surface.html", `<!doctype html><meta charset="utf-8"><title>surface</title><body style="margin:0"><script>${script}</script>`);
}

for (const kind of ["webgl", "canvas"] as const) {
  browserTest(`${kind}: shapes lie over earlier ones, and clips cut them`, async (tab) => {
    await tab.goto(page());
    const seen = await tab.evaluate((kind) => {
      const { surface, pixel, dark } = (globalThis as any).draw(kind, (surface: any) => {
        surface.rectangle(10, 10, 50, 20, 0xff0000ff, 1);
        surface.rectangle(30, 10, 50, 20, 0x0000ffff, 2);
        surface.rectangle(100.2, 10, 0.01, 20, 0x00ff00ff, 3);
        surface.rectangle(-1e12, 40, 2e12, 5, 0x112233ff, 4);
        surface.rectangle(10, 60, 20, 20, 0x0000007f);
        surface.clip(150, 50, 20, 20);
        surface.rectangle(140, 40, 60, 60, 0x00ffffff, 5);
        surface.unclip();
        surface.line(100, 60, 140, 60, 2, 0x445566ff, 6);
        surface.text("MMMM", 100, 90, 0x000000ff, "mono");
      });
      return {
        kind: surface.kind,
        pixels: [pixel(15, 15), pixel(40, 15), pixel(100, 15), pixel(190, 42), pixel(155, 55), pixel(145, 55), pixel(120, 60)],
        half: Number.parseInt(pixel(15, 65).slice(0, 2), 16),
        picks: [surface.pick(15, 15), surface.pick(40, 15), surface.pick(100.5, 15), surface.pick(5, 42), surface.pick(155, 55), surface.pick(145, 55), surface.pick(120, 62), surface.pick(15, 65)],
        ink: dark(100, 82, 30, 16),
        beside: dark(140, 82, 30, 16),
        columns: surface.measure("MMMM", "mono") / surface.measure("i", "mono"),
      };
    }, kind);
    assert.equal(seen.kind, kind);
    assert.deepEqual(seen.pixels, ["ff0000", "0000ff", "00ff00", "112233", "00ffff", "ffffff", "445566"]);
    assert.ok(Math.abs(seen.half - 0x80) <= 1, "half transparent");
    assert.deepEqual(seen.picks, [1, 2, 3, 4, 5, -1, 6, -1]);
    assert.ok(seen.ink > 30 && seen.beside === 0, "text is drawn where it belongs");
    assert.ok(Math.abs(seen.columns - 4) < 0.01, "columns of equal width");
  });
}

browserTest("without a GPU the surface is Canvas2D", async (tab) => {
  await tab.goto(page());
  assert.equal(await tab.evaluate(() => (globalThis as any).draw(undefined, () => {}).surface.kind), "canvas");
});
