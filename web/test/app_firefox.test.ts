// The app in Firefox, from a file.

import assert from "node:assert/strict";
import { recordedPage } from "./app_page.ts";
import { firefoxTest } from "./firefox.ts";

/** Each screen, and what of it must be there. */
const SCREENS: [hash: string, sign: string][] = [
  ["#verdict", "document.querySelectorAll('.speed').length > 0"],
  ["#explore?capture=0&pane=flame", "document.querySelectorAll('section.timeline canvas, section.pane canvas').length > 1"],
  ["#explore?capture=0&pane=functions", "document.querySelector('#pane [role=grid]') !== null"],
  ["#explore?capture=0&pane=tree", "document.querySelector('.tree-cell') !== null"],
  ["#explore?capture=0&pane=source", "document.querySelector('#pane')?.textContent.length > 20"],
  ["#explore?capture=0&order=time&startup=", "document.querySelectorAll('#pane canvas').length > 0"],
  ["#explore?capture=0&inverted=&weight=offcpu", "document.querySelectorAll('#pane canvas').length > 0"],
  ["#compare", "document.querySelector('.compare h2') !== null"],
  ["#tables?place=overview", "document.querySelectorAll('figure.table tbody tr').length > 5"],
];

firefoxTest("every screen is drawn in Firefox from a file, without errors", async (page) => {
  const address = recordedPage();
  for (const [hash, sign] of SCREENS) {
    await page.open(address + hash);
    await page.until("performance.getEntriesByName('stepscope-ready').length > 0");
    await page.until(sign);
    assert.equal(await page.text("document.querySelectorAll('.failure').length"), "0", hash);
    assert.equal(await page.text("document.documentElement.scrollWidth <= innerWidth"), "true", hash);
  }
});

firefoxTest("a link to a selection works in Firefox, and back returns to it", async (page) => {
  await page.open(`${recordedPage()}#explore?capture=0&steps=3-7`);
  await page.until("document.querySelectorAll('.chip').length === 1");
  await page.text("document.querySelector('.chip button').click()");
  await page.until("document.querySelectorAll('.chip').length === 0");
  assert.equal(await page.text("location.hash"), "#explore?capture=0");
  await page.text("history.back()");
  await page.until("document.querySelectorAll('.chip').length === 1");
});
