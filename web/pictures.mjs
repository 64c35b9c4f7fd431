// Takes the pictures of docs/pictures from pages that `./dev pictures` makes. Chromium as in the tests.
//
//   node pictures.mjs FOLDER      FOLDER has report.html, flame.svg and difference.svg

import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const ROOT = fileURLToPath(new URL("../", import.meta.url));
const PICTURES = join(ROOT, "docs/pictures/");
const CHROMIUM = [process.env["CHROMIUM"], "/usr/bin/chromium", "/usr/bin/google-chrome"].find((path) => path && existsSync(path));
if (!CHROMIUM) throw new Error("chromium is missing (Debian package: chromium)");

const folder = resolve(process.argv[2]);
const browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox", "--disable-gpu"] });

async function picture(file, name, width, height, prepare = async () => {}) {
  const page = await browser.newPage({ viewport: { width, height }, colorScheme: "light" });
  await page.goto(pathToFileURL(join(folder, file)).href);
  await page.waitForTimeout(1000);
  await prepare(page);
  await page.evaluate(withoutRoot, ROOT);
  await page.screenshot({ path: join(PICTURES, name) });
  await page.close();
}

/** Shows source files by their paths in the repository. */
function withoutRoot(root) {
  const texts = document.createTreeWalker(document, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) texts.currentNode.data = texts.currentNode.data.replaceAll(root, "");
}

/** Zooms to a frame of a flame graph, found by the search. */
async function zoom(page, name) {
  await page.locator("input[type=search]").first().fill(name);
  await page.keyboard.press("Enter");
  await page.locator(".fg-view").focus();
  await page.keyboard.press("Enter");
  await page.locator("input[type=search]").first().fill("");
  await page.waitForTimeout(500);
}

await picture("report.html", "report.png", 1280, 960);
await picture("flame.svg", "flamegraph.png", 1400, 640, (page) => zoom(page, "ground_step"));
await picture("difference.svg", "difference.png", 1200, 860);
await browser.close();
