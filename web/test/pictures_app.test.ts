// Screens of a recorded run look as they did.

import assert from "node:assert/strict";
import { test } from "node:test";
import { appTest, open, recordedPage } from "./app_page.ts";
import { difference, looksAs } from "./picture.ts";

const SCREENS: [name: string, hash: string, ready: string][] = [
  ["verdict", "#verdict", ".gains li"],
  ["explore", "#explore?capture=0", ".flame-picture canvas"],
  ["functions", "#explore?capture=0&pane=functions", ".functions .row[aria-selected], .functions .rows .row + .row"],
  ["compare", "#compare", ".compare canvas"],
  ["tables", "#tables?place=overview", "figure.table tbody tr"],
];

for (const [width, height] of [[1280, 900], [800, 900], [390, 844]]) {
  appTest(
    `screens look as they did at ${width} pixels`,
    async (page) => {
      const address = recordedPage();
      for (const [name, hash, ready] of SCREENS) {
        await open(page, address, hash);
        await page.locator(ready).first().waitFor();
        await page.waitForTimeout(400);
        await looksAs(page, `${name}-${width}`);
      }
    },
    { width, height },
  );
}

appTest(
  "screens look as they did in the dark",
  async (page) => {
    for (const [name, hash, ready] of SCREENS.slice(0, 2)) {
      await open(page, recordedPage(), hash);
      await page.locator(ready).first().waitFor();
      await page.waitForTimeout(400);
      await looksAs(page, `${name}-dark`);
    }
  },
  { width: 1280, height: 900, colorScheme: "dark" },
);

test("a picture differs where a part is missing, and not where a font is another", () => {
  const white = { columns: 10, colours: Array<number>(300).fill(255) };
  const text = { columns: 10, colours: white.colours.map((channel) => channel - 20) };
  assert.equal(difference(white, text), 0);
  const covered = { columns: 10, colours: white.colours.map((channel, at) => (at < 60 ? 90 : channel)) };
  assert.equal(difference(white, covered), 0.2);
  assert.equal(difference(white, { columns: 9, colours: white.colours.slice(30) }), 1);
});
