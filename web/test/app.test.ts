// The app in a real browser, as the single file that `stepscope report` writes.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { appTest, drawnPage, open, overflows, recordedPage } from "./app_page.ts";
import { boxOf, browserTest } from "./browser.ts";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const SCREENS = ["#verdict", "#explore", "#explore?pane=functions", "#explore?pane=tree", "#compare", "#tables", "#tables?place=overview"];

appTest("the first screen is the verdict, and each line leads to its evidence", async (page) => {
  await open(page, recordedPage());
  assert.match(await page.title(), /\S/);
  assert.equal(await page.locator("nav a[aria-current=page]").textContent(), "Verdict");
  assert.ok((await page.locator(".speed").count()) > 0);
  assert.ok((await page.locator(".gains li").count()) > 0);
  await page.locator(".gains .what").first().click();
  await page.waitForFunction(() => /^#(explore|tables)/.test(location.hash));
  await page.goBack();
  await page.locator(".speed").first().waitFor();
});

appTest("a deep link shows what it says, and back undoes a selection", async (page) => {
  await open(page, recordedPage(), "#explore?capture=1&pane=functions&focus=a::b&s=x");
  assert.equal(await page.locator("[role=tab][aria-selected=true]").textContent(), "Functions");
  assert.equal(await page.locator(".chip").count(), 2);
  await page.getByRole("button", { name: /^Remove: Focus/ }).click();
  assert.equal(await page.locator(".chip").count(), 1);
  assert.equal(await page.evaluate(() => location.hash), "#explore?capture=1&pane=functions&s=x");
  await page.goBack();
  await page.locator(".chip").nth(1).waitFor();
  assert.equal(await page.locator(".chip").count(), 2);
});

appTest("the palette goes to screens, functions and tables by keyboard", async (page) => {
  await open(page, recordedPage());
  const run = async (typed: string, wanted: RegExp) => {
    await page.keyboard.press("Control+k");
    await page.locator("dialog.palette input").fill(typed);
    await page.getByRole("option", { name: wanted }).first().waitFor();
    await page.keyboard.press("Enter");
    await page.locator("dialog").waitFor({ state: "detached" });
    return page.evaluate(() => location.hash);
  };
  assert.match(await run("go explore", /Go to Explore/), /^#explore/);
  assert.match(await run("entitygraph vertices", /EntityGraph::vertices/), /^#explore\?.*f=[^&]*EntityGraph::vertices/);
  assert.match(await run("focus entitygraph vertices", /EntityGraph::vertices/), /[?&]focus=[^&]*EntityGraph::vertices/);
  assert.match(await run("table what was recorded", /What was recorded/), /^#tables\?.*place=overview\/dimensions/);
});

appTest("keys go to each screen, the help lists them, and Escape closes it", async (page) => {
  await open(page, recordedPage());
  await page.keyboard.press("g");
  await page.keyboard.press("t");
  await page.locator("nav.contents").waitFor();
  await page.keyboard.press("?");
  const help = page.locator("dialog.help");
  await help.waitFor();
  assert.match((await help.textContent()) ?? "", /Command palette/);
  await page.keyboard.press("Escape");
  await help.waitFor({ state: "detached" });
  await page.keyboard.press("n");
  await page.waitForFunction(() => location.hash.includes("place="));
});

appTest("a table is sorted, filtered, and shows the columns that are chosen", async (page) => {
  await open(page, recordedPage(), "#tables?place=overview");
  const table = page.locator("figure.table").filter({ has: page.getByRole("heading", { name: "What was recorded" }) });
  const rows = () => table.locator("tbody tr").count();
  const before = await rows();
  await table.getByRole("searchbox").fill("^offcpu$");
  await page.waitForFunction(() => location.hash.includes("filter="));
  assert.ok((await rows()) < before);
  await table.getByRole("searchbox").fill("[");
  assert.equal(await table.locator(".none").textContent(), "No row matches.");
  await table.getByRole("searchbox").fill("");
  await table.locator("th button").first().click();
  assert.equal(await table.locator("th").first().getAttribute("aria-sort"), "ascending");
  const columns = await table.locator("th").count();
  await table.locator("summary").click();
  await table.locator(".popup input").first().uncheck();
  assert.equal(await table.locator("th").count(), columns - 1);
});

appTest("the definition of a column appears on focus", async (page) => {
  await open(page, recordedPage(), "#tables?place=overview");
  const column = page.locator("th button").first();
  await column.focus();
  const definition = page.locator("[role=tooltip]");
  assert.ok(((await definition.textContent()) ?? "").length > 10);
  await page.evaluate(() => scrollBy(0, 20));
  await page.waitForFunction(() => {
    const [button, tip] = [document.activeElement!, document.querySelector("[role=tooltip]")].map((element) => element?.getBoundingClientRect());
    return tip && (Math.abs(tip.top - button!.bottom - 6) < 1 || Math.abs(tip.bottom - button!.top + 6) < 1);
  });
  await page.evaluate(() => scrollBy(0, 4000));
  await definition.waitFor({ state: "detached" });
});

for (const width of [1280, 800, 390]) {
  appTest(
    `no screen and no table reaches beyond ${width} pixels`,
    async (page) => {
      const address = recordedPage();
      await open(page, address);
      const places = await page.evaluate(() => {
        const manifest = JSON.parse(document.getElementById("manifest")!.textContent!) as { document: { sections: { anchor: string }[] } };
        return manifest.document.sections.map(({ anchor }) => `#tables?place=${anchor}`);
      });
      for (const hash of [...SCREENS, ...places]) {
        await open(page, address, hash);
        await page.waitForTimeout(50);
        assert.deepEqual(await overflows(page), [], hash);
      }
    },
    { width },
  );
}

for (const colorScheme of ["light", "dark"] as const) {
  appTest(
    `axe finds nothing serious on any screen, ${colorScheme}`,
    async (page) => {
      const address = recordedPage();
      for (const hash of SCREENS) {
        await open(page, address, hash);
        await page.waitForTimeout(150);
        await page.evaluate(AXE);
        const found = await page.evaluate(async () => {
          const { violations } = await (globalThis as unknown as { axe: { run(): Promise<{ violations: { id: string; impact: string; nodes: { target: string[]; failureSummary: string }[] }[] }> } }).axe.run();
          return violations
            .filter(({ impact }) => impact === "serious" || impact === "critical")
            .map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map(({ target, failureSummary }) => `${target.join(" ")} (${failureSummary.slice(0, 160)})`).join("; ")}`);
        });
        assert.deepEqual(found, [], hash);
      }
    },
    { colorScheme },
  );
}

appTest(
  "on paper all charts are drawn, in the colours of paper",
  async (page) => {
    await open(page, recordedPage(), "#tables?place=overview");
    const places = await page.evaluate(() => {
      const manifest = JSON.parse(document.getElementById("manifest")!.textContent!) as { document: { sections: { anchor: string; capture?: number }[] } };
      return manifest.document.sections.filter(({ capture }) => capture !== undefined).map(({ anchor }) => `#tables?place=${anchor}`);
    });
    await page.setViewportSize({ width: 1280, height: 200 });
    await open(page, recordedPage(), places[0]);
    // The section may still be on its way to the screen.
    await page.waitForFunction(() => {
      dispatchEvent(new Event("beforeprint"));
      const charts = [...document.querySelectorAll("figure.chart")];
      return charts.length > 1 && charts.every((chart) => chart.querySelector("canvas"));
    });
    assert.equal(await page.evaluate(() => document.documentElement.dataset["theme"]), "light");
    await page.evaluate(() => dispatchEvent(new Event("afterprint")));
    assert.equal(await page.evaluate(() => document.documentElement.dataset["theme"]), "dark");
  },
  { colorScheme: "dark" },
);

appTest("the theme that the reader chose is kept", async (page) => {
  const address = recordedPage();
  await open(page, address);
  await page.keyboard.press("T");
  assert.equal(await page.evaluate(() => document.documentElement.dataset["theme"]), "light");
  await page.keyboard.press("T");
  assert.equal(await page.evaluate(() => document.documentElement.dataset["theme"]), "dark");
  await open(page, address);
  assert.equal(await page.evaluate(() => document.documentElement.dataset["theme"]), "dark");
});

appTest("hashes without meaning open the first screen", async (page) => {
  const address = recordedPage();
  for (const hash of ["#<script>alert(1)</script>", "#explore?capture=999&steps=5-9&threads=77&place=%00", "#tables?place=__proto__", `#explore?f=${"x".repeat(5000)}`]) {
    await open(page, address, hash);
    assert.equal(await page.locator("main").count(), 1, hash);
    assert.equal(await page.locator(".failure").count(), 0, hash);
  }
});

/** A report of one table with these names. */
function report(names: string[]): unknown {
  const column = { header: "function", beside: "", unit: "", doc: "The <b>function</b>.", importance: "essential" };
  const count = names.length;
  const table = {
    name: "hotspots",
    title: "<img src=x onerror=alert(1)>",
    notes: [{ kind: "loss", text: "<script>alert(2)</script> `</script>`" }],
    columns: [
      { ...column, name: "function", kind: "text", values: names },
      { ...column, name: "self", header: "self", kind: "duration", unit: "ns", values: names.map((_, row) => count - row) },
      { ...column, name: "share", header: "share", kind: "percent", unit: "percent", beside: "%", values: names.map((_, row) => (row * 100) / count) },
    ],
  };
  const section = { title: "<i>Hot</i>", anchor: "hot", notes: [], blocks: [{ kind: "table", table }], sections: [] };
  return { version: 1, title: "</title><script>alert(3)</script>", document: { title: "t", subtitle: "", about: [], warnings: [], sections: [section] }, captures: [], live: false };
}

browserTest("hostile names stay text", async (page) => {
  const names = ["<script>alert(1)</script>", "\u202Eevil", "a".repeat(100_000), "javascript:alert(1)", "__proto__", "`", ""];
  await open(page, drawnPage("hostile.html", report(names)), "#tables");
  assert.equal(await page.locator("tbody tr").count(), names.length);
  assert.equal(await page.locator("main img, main script").count(), 0);
  assert.match((await page.locator("h2").textContent()) ?? "", /^<i>Hot<\/i>/);
  assert.deepEqual(await overflows(page), []);
});

browserTest("on a phone the screens stand below the title, and no line breaks within an option", async (page) => {
  const drawn = report(["a"]) as { document: { sections: { notes: { kind: string; text: string }[] }[] } };
  const command = "stepscope show RUN --view heap --sort temporary -> x";
  drawn.document.sections[0].notes.push({ kind: "hint", text: `See \`${command}\`.` });
  await open(page, drawnPage("phone.html", { ...(drawn as object), title: "gz" }), "#tables");
  const [title, screens] = [await boxOf(page.locator(".top h1")), await boxOf(page.locator(".top nav"))];
  assert.ok(screens.y >= title.y + title.height, "also below a short title");
  assert.equal(await page.locator("code", { hasText: "--view" }).textContent(), command);
  assert.deepEqual(await page.locator("code .option").allTextContents(), ["--view", "--sort"]);
}, { width: 390, height: 844 });

browserTest("a table of 100,000 rows draws only those in view", async (page) => {
  const names = Array.from({ length: 100_000 }, (_, row) => `ns::function_${row}`);
  await open(page, drawnPage("long.html", report(names)), "#tables");
  assert.equal(await page.locator("tbody tr").count(), 15);
  await page.getByRole("button", { name: "Show all 100,000 rows" }).click();
  const scroll = page.locator(".scroll.long");
  await scroll.evaluate((element) => (element.scrollTop = element.scrollHeight));
  await page.getByText("ns::function_99999", { exact: true }).waitFor();
  assert.ok((await page.locator("tbody tr").count()) < 120);
  await page.getByRole("searchbox").fill("function_4242$");
  assert.equal(await page.locator("tbody tr").count(), 1);
});
