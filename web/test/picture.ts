// Screenshots, compared so that other fonts and other versions of the browser do not matter: a picture is divided into cells, and each has its mean
// colour. Text that moves by a pixel or has another face changes a cell little; a part that is missing, moved or covered changes many.

import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";

/** Pixels of a cell's side. */
const CELL = 40;
/** How much a channel of a cell may differ, of 255: as much as a few lines of text. */
const TOLERANCE = 34;
/** Part of the cells that may differ by more: fonts of other widths break lines elsewhere. */
const MOST_OTHER = 0.06;

interface Cells {
  columns: number;
  /** Red, green and blue of each cell, in lines. */
  colours: number[];
}

/** The cells of a screenshot. A page without a policy decodes it. */
async function cellsOf(page: Page, png: Buffer): Promise<Cells> {
  const decoder = await page.context().browser()!.newPage();
  try {
    return await decoder.evaluate(
      async ([base64, cell]) => {
        const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
        const image = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
        const [columns, lines] = [Math.ceil(image.width / cell), Math.ceil(image.height / cell)];
        const context = new OffscreenCanvas(image.width, image.height).getContext("2d")!;
        context.drawImage(image, 0, 0);
        const { data } = context.getImageData(0, 0, image.width, image.height);
        const sums = new Float64Array(columns * lines * 3);
        const counts = new Float64Array(columns * lines);
        for (let y = 0; y < image.height; y++) {
          for (let x = 0; x < image.width; x++) {
            const at = Math.floor(y / cell) * columns + Math.floor(x / cell);
            counts[at]++;
            for (let channel = 0; channel < 3; channel++) sums[at * 3 + channel] += data[(y * image.width + x) * 4 + channel];
          }
        }
        return { columns, colours: Array.from(sums, (sum, index) => Math.round(sum / counts[Math.floor(index / 3)])) };
      },
      [png.toString("base64"), CELL] as const,
    );
  } finally {
    await decoder.close();
  }
}

/** The part of the cells that differ, 1 if the sizes do. */
export function difference(a: Cells, b: Cells): number {
  if (a.columns !== b.columns || a.colours.length !== b.colours.length) return 1;
  const cells = a.colours.length / 3;
  let other = 0;
  for (let at = 0; at < cells; at++) if ([0, 1, 2].some((channel) => Math.abs(a.colours[at * 3 + channel] - b.colours[at * 3 + channel]) > TOLERANCE)) other++;
  return other / cells;
}

/** Fails if the page does not look as it did: `BLESS=1 npm test` keeps how it looks now. */
export async function looksAs(page: Page, name: string): Promise<void> {
  const png = await page.screenshot({ animations: "disabled", caret: "hide" });
  const cells = await cellsOf(page, png);
  const file = `test/pictures/${name}.json`;
  if (process.env["BLESS"]) return writeFileSync(file, `${JSON.stringify(cells)}\n`);
  assert.ok(existsSync(file), `there is no picture ${name}: BLESS=1 npm test`);
  const share = difference(JSON.parse(readFileSync(file, "utf8")) as Cells, cells);
  if (share <= MOST_OTHER) return;
  const shown = join(mkdtempSync(join(tmpdir(), "stepscope-picture-")), `${name}.png`);
  writeFileSync(shown, png);
  assert.fail(`${name}: ${(share * 100).toFixed(0)} % of the picture differ; it is now ${shown}`);
}
