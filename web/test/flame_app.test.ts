// The flame graph of the app, driven as a reader would.

import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import { boxOf, browserTest } from "./browser.ts";
import { flamePage } from "./flame_page.ts";

const SMALL = { stacks: 300, samples: 2000, functions: 60, waits: 300 };

async function opened(tab: Page, hash = "#explore"): Promise<void> {
  await tab.goto(flamePage() + hash);
  await tab.evaluate((size) => (globalThis as any).show(size), SMALL);
  await tab.waitForSelector(".flame-picture");
}

/** The part of the hash after the question mark. */
async function parameters(tab: Page): Promise<URLSearchParams> {
  return new URLSearchParams(new URL(tab.url()).hash.split("?")[1] ?? "");
}

browserTest("keys walk the tree, zoom and come back", async (tab) => {
  await opened(tab);
  await tab.focus(".flame-picture");
  await tab.keyboard.press("ArrowDown");
  await tab.keyboard.press("ArrowDown");
  const said = () => tab.locator(".flame-picture > p").textContent();
  assert.match((await said())!, /^main: .* level 2$/);
  await tab.keyboard.press("Enter");
  await tab.waitForSelector(".trail");
  assert.ok((await parameters(tab)).get("zoom"));
  assert.equal(await tab.locator(".trail li").count(), 2);
  await tab.keyboard.press("Escape");
  await tab.waitForSelector(".trail", { state: "detached" });
  assert.equal((await parameters(tab)).get("zoom"), null);
});

browserTest("a search says how much it matches, and stays in the link", async (tab) => {
  await opened(tab);
  await tab.focus(".flame-picture");
  await tab.keyboard.press("/");
  await tab.keyboard.type("publish");
  await tab.waitForSelector(".search output:has-text('matched')");
  assert.match((await tab.locator(".search output").textContent())!, /^\d+\.\d\d % matched, /);
  await tab.waitForFunction(() => location.hash.includes("s=publish"));
});

browserTest("a transform from the menu is in the link and can be undone", async (tab) => {
  await opened(tab);
  await tab.focus(".flame-picture");
  for (const key of ["ArrowDown", "ArrowDown", "Shift+F10"]) await tab.keyboard.press(key);
  await tab.click("role=menuitem[name='Leave out stacks with this function']");
  await tab.waitForSelector(".chip:has-text('Drop')");
  assert.equal((await parameters(tab)).get("drop"), "main");
  await tab.click(".chip:has-text('Drop') button");
  await tab.waitForSelector(".chip", { state: "detached" });
});

browserTest("the pointer finds frames; a double click zooms", async (tab) => {
  await opened(tab);
  const box = await boxOf(tab.locator(".flame-picture"));
  await tab.mouse.move(box.x + 40, box.y + 18 + 9);
  await tab.waitForSelector(".hover-box");
  const name = await tab.locator(".hover-box b").textContent();
  await tab.mouse.dblclick(box.x + 40, box.y + 18 + 9);
  await tab.waitForSelector(".trail li button[aria-current]");
  assert.equal(await tab.locator(".trail li button[aria-current]").textContent(), name);
});

browserTest("screen readers have a table", async (tab) => {
  await opened(tab);
  assert.ok((await tab.locator(".flame-picture table tbody tr").count()) > 5);
});
