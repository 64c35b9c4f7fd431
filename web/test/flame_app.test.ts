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

browserTest("Escape hides what the pointer shows", async (tab) => {
  await opened(tab);
  const box = await boxOf(tab.locator(".flame-picture"));
  await tab.mouse.move(box.x + 40, box.y + 18 + 9);
  await tab.waitForSelector(".hover-box");
  await tab.keyboard.press("Escape");
  await tab.waitForSelector(".hover-box", { state: "detached" });
});

browserTest("screen readers have a table", async (tab) => {
  await opened(tab);
  assert.ok((await tab.locator(".flame-picture table tbody tr").count()) > 5);
});

/** How many pixels of the picture have the colour of what a search matches. */
async function marked(tab: Page): Promise<number> {
  const png = await tab.locator(".flame-picture").screenshot();
  return tab.evaluate(async (base64) => {
    const image = await createImageBitmap(await (await fetch(`data:image/png;base64,${base64}`)).blob());
    const context = new OffscreenCanvas(image.width, image.height).getContext("2d")!;
    context.drawImage(image, 0, 0);
    const { data } = context.getImageData(0, 0, image.width, image.height);
    let count = 0;
    for (let at = 0; at < data.length; at += 4) if (data[at] === 0xd6 && data[at + 1] === 0 && data[at + 2] === 0x6c) count++;
    return count;
  }, png.toString("base64"));
}

browserTest("a function that a link names comes into view, however deep it is", async (tab) => {
  await opened(tab);
  // The one whose highest frame is the lowest.
  const rows = await tab.locator(".flame-picture table tbody tr").evaluateAll((rows) => rows.map((row) => [row.children[1].textContent!, Number(row.children[0].textContent)] as const));
  const highest = new Map<string, number>();
  for (const [name, level] of rows) highest.set(name, Math.min(level, highest.get(name) ?? Infinity));
  const [name] = [...highest].reduce((deep, one) => (one[1] > deep[1] ? one : deep));
  const pattern = encodeURIComponent(`^${name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}$`);
  await opened(tab, `#explore?s=${pattern}`);
  await tab.waitForSelector(".search output:has-text('matched')");
  assert.equal(await marked(tab), 0, `${name} is below the edge`);
  await tab.goto("about:blank");
  await opened(tab, `#explore?f=${encodeURIComponent(name)}&s=${pattern}`);
  await tab.waitForSelector(".search output:has-text('matched')");
  await tab.waitForTimeout(300);
  assert.ok((await marked(tab)) > 30, `${name} is in view`);
}, { height: 260 });

browserTest("a button lists the callers that are not drawn, and shows them", async (tab) => {
  await tab.goto(`${flamePage()}#explore`);
  await tab.evaluate((size) => (globalThis as any).show(size), { ...SMALL, first: 1 });
  const second = tab.locator(".flame-picture table tbody tr:nth-child(2) td:nth-child(2)");
  const button = tab.getByRole("button", { name: "Show 1 shared caller", exact: true });
  await button.waitFor();
  assert.equal(await second.textContent(), "main");
  assert.match((await button.getAttribute("title"))!, /^Not drawn: _start\. The other \d\.\d\d % is drawn with them\.$/);
  await button.click();
  await tab.getByRole("button", { name: "Shared callers", pressed: true }).waitFor();
  await tab.waitForFunction(() => document.querySelector(".flame-picture table tbody tr:nth-child(2) td:nth-child(2)")!.textContent === "_start");
});
