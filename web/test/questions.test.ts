// The questions of docs/questions.md: each answer is there after as many clicks as the page says.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import type { Locator, Page } from "playwright-core";
import { test } from "node:test";
import { appTest, open, recordedPage } from "./app_page.ts";

const MOST_CLICKS = 3;

const asked = readFileSync("../docs/questions.md", "utf8")
  .split("\n")
  .map((line) => /^\| (\d+) \| (.+?) \| (\d) \|/.exec(line))
  .filter((row) => row !== null)
  .map(([, number, question, clicks]) => ({ number: Number(number), question, clicks: Number(clicks) }));

/** Counts what the reader does. */
class Reader {
  clicks = 0;
  readonly page: Page;

  constructor(page: Page) {
    this.page = page;
  }

  async click(target: Locator): Promise<void> {
    this.clicks++;
    await target.click();
  }

  async choose(target: Locator, label: string): Promise<void> {
    this.clicks++;
    await target.selectOption({ label });
  }

  async screen(name: string): Promise<void> {
    await this.click(this.page.getByRole("navigation", { name: "Screens" }).getByRole("link", { name, exact: true }));
  }

  async sees(target: Locator, text: RegExp): Promise<void> {
    const shown = target.filter({ hasText: text }).first();
    await shown.waitFor();
  }

  async isAt(hash: RegExp): Promise<void> {
    await this.page.waitForFunction((source) => new RegExp(source).test(location.hash), hash.source);
  }
}

/** How the answer to each question is found. */
const ANSWERS: ((reader: Reader) => Promise<void>)[] = [
  async (reader) => {
    await reader.sees(reader.page.locator(".speed"), /0\.5\d.*Slower than real time: a step simulates 1\.00 ms and takes \d/s);
  },
  async (reader) => {
    await reader.sees(reader.page.locator(".gains li").first(), /Physics::rebuild_pose_map.*−\d+ µs.*RTF 0\.5\d → /s);
  },
  async (reader) => {
    await reader.click(reader.page.locator(".gains .what").first());
    await reader.isAt(/^#explore\?.*f=ground::physics::Physics::rebuild_pose_map/);
    await reader.sees(reader.page.getByRole("region", { name: "Chosen function" }), /Physics::rebuild_pose_map.*total/s);
    await reader.page.getByRole("tabpanel").waitFor();
  },
  async (reader) => {
    await reader.screen("Explore");
    await reader.click(reader.page.getByRole("complementary", { name: "Details" }).getByRole("button", { name: /^Step \d+: / }).or(reader.page.getByRole("complementary", { name: "Details" }).getByRole("link", { name: /^Step \d+: / })));
    await reader.isAt(/^#explore\?.*steps=\d+-\d+/);
    await reader.sees(reader.page.locator(".chip"), /Steps?\s*\d+/);
  },
  async (reader) => {
    await reader.screen("Explore");
    await reader.click(reader.page.getByRole("button", { name: "Slow against typical" }));
    await reader.isAt(/^#compare/);
    await reader.page.getByRole("region", { name: "Differential flame graph" }).waitFor();
  },
  async (reader) => {
    await reader.screen("Explore");
    await reader.choose(reader.page.getByLabel("Sort by"), "time on the critical path");
    assert.equal(await reader.page.getByRole("button", { name: "Critical path" }).getAttribute("aria-pressed"), "true");
  },
  async (reader) => {
    await reader.screen("Explore");
    await reader.choose(reader.page.getByLabel("Weight"), "Off-CPU time");
    await reader.isAt(/weight=offcpu/);
  },
  async (reader) => {
    await reader.screen("Compare");
    await reader.sees(reader.page.locator(".compare header"), /after.*before/is);
    await reader.page.getByRole("region", { name: "Differential flame graph" }).waitFor();
  },
  async (reader) => {
    await reader.screen("Tables");
    await reader.click(reader.page.getByRole("navigation", { name: "Sections" }).getByRole("link", { name: "Rank: steady" }));
    await reader.sees(reader.page.locator("figure.table").filter({ hasText: "By cost" }).locator("tbody tr").first(), /ground::/);
  },
  async (reader) => {
    await reader.sees(reader.page.locator(".doubts li"), /\S/);
  },
];

test("every question has a test, and no answer takes more than three clicks", () => {
  assert.equal(asked.length, ANSWERS.length);
  for (const { question, clicks } of asked) assert.ok(clicks <= MOST_CLICKS, question);
});

for (const { number, question, clicks } of asked) {
  appTest(`question ${number}: ${question}`, async (page) => {
    await open(page, recordedPage());
    const reader = new Reader(page);
    await ANSWERS[number - 1](reader);
    assert.equal(reader.clicks, clicks);
  }, { width: 1280 });
}
