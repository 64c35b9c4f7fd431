// Tables, figures and forests of a report, as a reader uses them, on reports that the tests draw.

import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import { drawnPage, open, overflows } from "./app_page.ts";
import { browserTest } from "./browser.ts";

interface Drawn {
  name: string;
  kind: string;
  values: unknown[];
  unit?: string;
  beside?: string;
  doc?: string;
  importance?: string;
  bounds?: [number, number];
  verdict?: true;
}

const column = (drawn: Drawn) => ({ header: drawn.name.replaceAll("_", " "), beside: "", unit: "", doc: "", importance: "essential", ...drawn });

function paper(sections: unknown[]): unknown {
  const report = { title: "Nightly run", subtitle: "", about: [{ name: "machine", value: "2 cores" }], warnings: [], sections };
  return { version: 1, title: "Nightly run", document: report, captures: [], live: false };
}

/** Twenty functions, f01 with the least and f20 with the most self time; two are owned. */
function hotspots(): unknown {
  const numbers = Array.from({ length: 20 }, (_, row) => 20 - row);
  const name = (number: number) => `${number % 10 === 0 ? "gz::" : ""}f${String(number).padStart(2, "0")}`;
  const columns = [
    column({ name: "function", kind: "text", values: numbers.map(name), doc: "The function's qualified name." }),
    column({ name: "owned", kind: "flag", values: numbers.map((number) => number % 10 === 0), doc: "Whether your team can change it.", importance: "detail" }),
    column({ name: "self", kind: "duration", unit: "ns", values: numbers.map((number) => number * 2e8), doc: "Time in the function itself." }),
    column({ name: "self_share", kind: "percent", unit: "percent", beside: "%", values: numbers.map((number) => (number * 100) / 210) }),
  ];
  const table = { name: "hotspots", title: "On-CPU time by function", columns, notes: [{ kind: "loss", text: "12 records were lost." }] };
  return paper([{ title: "Hot spots", anchor: "hot-spots", notes: [], blocks: [{ kind: "table", table }], sections: [] }]);
}

let hot: string | undefined;
const hotPage = () => (hot ??= drawnPage("hotspots.html", hotspots()));

const functions = (page: Page) => page.locator("figure.table tbody td.name").allTextContents();

browserTest("a long table shows its first rows, and all when asked to", async (page) => {
  await open(page, hotPage(), "#tables");
  assert.equal((await functions(page)).length, 15);
  await page.click(".more");
  assert.equal((await functions(page)).length, 20);
  await page.click(".more");
  assert.equal((await functions(page)).length, 15);
});

browserTest("a column header sorts by its column, in reverse, and not at all", async (page) => {
  await open(page, hotPage(), "#tables");
  const first = async () => (await functions(page))[0];
  const header = (name: string) => page.locator(`th[data-name="${name}"] button`);
  assert.equal(await first(), "gz::f20");
  await header("self").click();
  assert.equal(await first(), "gz::f20", "largest first");
  await header("self").click();
  assert.equal(await first(), "f01");
  assert.equal(await page.locator("th[aria-sort]").getAttribute("aria-sort"), "ascending");
  await header("self").click();
  assert.equal(await first(), "gz::f20");
  assert.equal(await page.locator("th[aria-sort]").count(), 0);
  await header("function").click();
  assert.equal(await first(), "f01");
});

browserTest("a filter keeps matching rows and counts them, and owned rows can be kept alone", async (page) => {
  await open(page, hotPage(), "#tables");
  await page.getByRole("searchbox").fill("f0[1-3]$");
  await page.getByText("3 of 20 rows").waitFor();
  assert.deepEqual(await functions(page), ["f03", "f02", "f01"]);
  await page.getByRole("searchbox").fill("");
  await page.getByRole("button", { name: "Owned only" }).click();
  assert.deepEqual(await functions(page), ["gz::f20", "gz::f10"]);
  assert.equal(await page.locator("tr.mine").count(), 2);
});

browserTest("a verdict in a narrow table stays on one line", async (page) => {
  const values = (of: unknown) => Array.from({ length: 12 }, () => of);
  const numbers = Array.from({ length: 6 }, (_, at) => column({ name: `number_${at}`, kind: "duration", unit: "ns", values: values(123456 * (at + 1)) }));
  const columns = [column({ name: "function", kind: "text", values: values(`ground::${"component::".repeat(8)}update`) }), column({ name: "verdict", kind: "text", verdict: true, values: values("inconclusive") }), ...numbers];
  const table = { name: "slow", title: "Slow steps", columns, notes: [] };
  await open(page, drawnPage("verdicts.html", paper([{ title: "Slow", anchor: "slow", notes: [], blocks: [{ kind: "table", table }], sections: [] }])), "#tables");
  const lines = await page.locator("td.faint").evaluateAll((cells) => cells.map((cell) => {
    const text = document.createRange();
    text.selectNodeContents(cell);
    return text.getClientRects().length;
  }));
  assert.deepEqual([...new Set(lines)], [1]);
  assert.deepEqual(await overflows(page), []);
}, { width: 1040 });

browserTest("rows of owned and of other functions lie below each other, with their cells under the headers", async (page) => {
  await open(page, hotPage(), "#tables");
  await page.click(".more");
  const boxes = (selector: string) => page.locator(selector).evaluateAll((cells) => cells.map((cell) => cell.getBoundingClientRect().toJSON() as DOMRect));
  const rows = page.locator("figure.table tbody tr");
  const headers = await boxes("figure.table thead th");
  let above = headers[0].bottom;
  for (let row = 0; row < (await rows.count()); row++) {
    const cells = await boxes(`figure.table tbody tr:nth-child(${row + 1}) td`);
    assert.equal(cells.length, headers.length);
    cells.forEach(({ left, right, top, height }, at) => {
      assert.ok(height >= 20, `row ${row} is ${height} pixels high`);
      assert.ok(top >= above - 0.5, `row ${row} starts at ${top}, above the end of what is before it, ${above}`);
      assert.ok(Math.abs(left - headers[at].left) < 1 && Math.abs(right - headers[at].right) < 1, `cell ${at} of row ${row} is not under its header`);
    });
    above = cells[0].bottom;
  }
});

browserTest("the column menu has its boxes beside their names", async (page) => {
  await open(page, hotPage(), "#tables");
  await page.locator(".column-menu summary").click();
  const boxes = await page.locator(".column-menu label").evaluateAll((labels) => labels.map((label) => [label.getBoundingClientRect().left, label.querySelector("input")!.getBoundingClientRect().right, label.querySelector("b")!.getBoundingClientRect().left]));
  for (const [left, right, name] of boxes) assert.ok(right - left < 30 && name - right < 12, `${left} ${right} ${name}`);
});

browserTest("the help has no key of a screen that is not there", async (page) => {
  await open(page, hotPage(), "#tables");
  await page.keyboard.press("?");
  const help = page.locator("dialog.help");
  await help.getByText("Go to Verdict").waitFor();
  assert.doesNotMatch((await help.textContent())!, /Go to Compare|Go to Explore|Next capture/);
});

browserTest("numbers are written as in the terminal, with bars as long as shares", async (page) => {
  await open(page, hotPage(), "#tables");
  const row = page.locator("figure.table tbody tr").first();
  assert.deepEqual((await row.locator("td.num").allTextContents()).map((text) => text.trim()), ["4.00 s", "9.52"]);
  const widths = await page.locator("figure.table tbody .bar").evaluateAll((bars) => bars.slice(0, 3).map((bar) => (bar as HTMLElement).style.width));
  assert.deepEqual(widths, ["100%", "95%", "90%"]);
});

browserTest("the meaning of a column is at its header and in the column menu", async (page) => {
  await open(page, hotPage(), "#tables");
  await page.locator('th[data-name="function"] button').hover();
  assert.equal(await page.locator("[role=tooltip]").textContent(), "The function's qualified name.");
  await page.locator(".column-menu summary").click();
  assert.ok(await page.getByText("Whether your team can change it.").isVisible());
});

/** Metrics in units of their own, with verdicts. */
function comparison(): unknown {
  const rows: [string, string, number, number, (number | null)[], string, number | null][] = [
    ["step.median", "ns", 4.2e6, 2.1e6, [0.5, 0.48, 0.52], "changed", 0.0001],
    ["rtf", "", 0.9, 1.8, [2, 1.9, 2.1], "changed", 0.004],
    ["rss.peak", "bytes", 31e6, 31.1e6, [1.003, 0.998, 1.008], "equivalent", 0.2],
    ["wall", "ns", 3e9, 3.1e9, [1.03, 0.8, 1.3], "inconclusive", 0.4],
    ["metric.latency.median", "ns", 9e3, 8e3, [0.9, 0.8, 1.1], "inconclusive", 0.5],
    ["metric.latency.mean", "ns", 9e3, 8e3, [0.9, 0.8, 1.1], "inconclusive", 0.5],
  ];
  const values = (of: number) => rows.map((row) => row[of]);
  const columns = [
    column({ name: "metric", kind: "text", values: values(0) }),
    column({ name: "unit", kind: "text", values: values(1) }),
    column({ name: "before", kind: "inrowunit", values: values(2) }),
    column({ name: "after", kind: "inrowunit", values: values(3) }),
    column({ name: "ratio", kind: "number", values: rows.map((row) => row[4][0]), bounds: [5, 6] }),
    column({ name: "ratio_low", kind: "number", values: rows.map((row) => row[4][1]) }),
    column({ name: "ratio_high", kind: "number", values: rows.map((row) => row[4][2]) }),
    column({ name: "verdict", kind: "text", values: values(5), verdict: true }),
    column({ name: "q", kind: "number", values: values(6), doc: "Adjusted p-value." }),
  ];
  const table = { name: "compare_runs", title: "", columns, notes: [] };
  const forest = { kind: "forest", table: { ...table, title: "Ratios" }, label: "metric", ratio: "ratio", presence: "presence", verdict: "verdict", tolerance: 0.05, most: 25 };
  const drawn = paper([{ title: "Whole run", anchor: "compare-runs", notes: [], blocks: [forest, { kind: "table", table }], sections: [] }]) as { document: { subtitle: string } };
  drawn.document.subtitle = "Changed: step.median 4.20 ms → 2.10 ms: ×0.50 [0.48, 0.52].";
  return drawn;
}

/** Two figures of one scenario in three variants. */
function variants(): unknown {
  const rows: [string, string, string, number | null, number | null][] = [
    ["metric.latency.p99", "ns", "waitset", 145_000, 100],
    ["metric.latency.p99", "ns", "static", 116_000, 80],
    ["metric.latency.p99", "ns", "events", 29_000, 20],
    ["flows.lost", "percent", "waitset", 0, null],
    ["flows.lost", "percent", "events", 1, null],
  ];
  const values = (of: number) => rows.map((row) => row[of]);
  const columns = [
    column({ name: "scenario", kind: "text", values: rows.map(() => "ridge") }),
    column({ name: "metric", kind: "text", values: values(0) }),
    column({ name: "unit", kind: "text", values: values(1) }),
    column({ name: "variant", kind: "text", values: values(2) }),
    column({ name: "value", kind: "inrowunit", values: values(3) }),
    column({ name: "of_first", kind: "percent", unit: "percent", beside: "%", values: values(4) }),
  ];
  const table = { name: "variants", title: "Variants side by side", columns, notes: [] };
  const section = (anchor: string, blocks: unknown[]) => ({ title: anchor, anchor, notes: [], blocks, sections: [] });
  return paper([section("verdict", []), section("variants", [{ kind: "table", table }])]);
}

browserTest("variants stand side by side, with bars in the scale of their figure", async (page) => {
  await open(page, drawnPage("variants.html", variants()));
  const side = page.locator(".side");
  const texts = async (row: number) => (await side.locator("tr").nth(row).locator("th, td").allTextContents()).map((text) => text.trim());
  assert.deepEqual(await texts(0), ["ridge", "waitset", "static", "events"]);
  assert.deepEqual(await texts(1), ["latency.p99", "145 µs", "116 µs", "29.0 µs"]);
  assert.deepEqual(await texts(2), ["flows.lost", "0.00 %", "–", "1.00 %"]);
  const widths = await side.locator("tr").nth(1).locator(".bar").evaluateAll((bars) => bars.map((bar) => bar.getBoundingClientRect().width / bar.parentElement!.clientWidth));
  assert.ok(Math.abs(widths[2] / widths[0] - 0.2) < 0.02, `${widths}`);
});

let compared: string | undefined;
const comparedPage = () => (compared ??= drawnPage("compared.html", comparison()));

browserTest("the first screen of a comparison is its sentence and the figures with verdict and q", async (page) => {
  await open(page, comparedPage());
  assert.equal(await page.locator(".sentence").textContent(), "Changed: step.median 4.20 ms → 2.10 ms: ×0.50 [0.48, 0.52].");
  assert.equal(await page.locator(".subtitle").count(), 0, "the sentence is not said twice");
  const texts = async (row: number) => (await page.locator(".changes tbody tr").nth(row).locator("th, td").allTextContents()).map((text) => text.trim());
  assert.deepEqual(await texts(0), ["latency.median", "9.00 µs", "8.00 µs", "×0.90 [0.80, 1.10]", "inconclusive", "0.50"]);
  assert.deepEqual(await texts(1), ["rtf", "0.90", "1.80", "×2.00 [1.90, 2.10]", "changed", "0.004"]);
  assert.deepEqual(await texts(2), ["step.median", "4.20 ms", "2.10 ms", "×0.50 [0.48, 0.52]", "changed", "< 0.001"]);
});

browserTest("an interval stands beside its estimate, and verdicts differ in more than colour", async (page) => {
  await open(page, comparedPage(), "#tables");
  const first = page.locator("figure.table tbody tr").first();
  assert.match((await first.textContent()) ?? "", /step\.median.*4\.20 ms.*2\.10 ms.*0\.50 \[0\.48, 0\.52\]changed/);
  const look = (word: string) =>
    page.locator("figure.table td", { hasText: new RegExp(`^${word}$`) }).first().evaluate((cell) => {
      const { fontWeight, fontStyle } = getComputedStyle(cell);
      return `${fontWeight} ${fontStyle}`;
    });
  const looks = [await look("changed"), await look("equivalent"), await look("inconclusive")];
  assert.equal(new Set(looks).size, 3, looks.join());
});

browserTest("a picture of ratios describes each row in words", async (page) => {
  await open(page, comparedPage(), "#tables");
  const rows = await page.locator("figure.forest tbody tr:not(.axis)").evaluateAll((rows) => rows.map((row) => [...row.children].map((cell) => cell.textContent!.trim()).filter(Boolean).join(" | ")));
  assert.deepEqual(rows.slice(0, 3), ["step.median | 0.50 [0.48, 0.52] | changed | q < 0.001", "rtf | 2.00 [1.90, 2.10] | changed | q 0.004", "rss.peak | 1.00 [1.00, 1.01] | equivalent | q 0.20"]);
});

browserTest("a report without verdict and captures starts with its first section", async (page) => {
  await open(page, hotPage());
  assert.equal(await page.locator("main h2").last().textContent().then((text) => text?.trim()), "Hot spots");
  assert.deepEqual(await page.locator("nav[aria-label=Screens] a").allTextContents(), ["Verdict", "Tables"]);
});

browserTest(
  "on paper tables are light, whole and without controls",
  async (page) => {
    await open(page, hotPage(), "#tables");
    await page.emulateMedia({ media: "print", colorScheme: "dark" });
    assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), "rgb(255, 255, 255)");
    assert.equal(await page.locator(".tools >> visible=true").count(), 0);
    assert.equal(await page.locator("nav >> visible=true").count(), 0);
    assert.ok(await page.getByText("The first 15 of 20 rows.").isVisible());
  },
  { colorScheme: "dark" },
);

for (const width of [1280, 390]) {
  browserTest(
    `a comparison does not make the page scroll sideways at ${width} pixels`,
    async (page) => {
      for (const hash of ["#verdict", "#tables"]) {
        await open(page, comparedPage(), hash);
        assert.deepEqual(await overflows(page), [], hash);
      }
    },
    { width },
  );
}

// Captions of tables and pictures are of one level wherever they stand.
browserTest("headings of sections go down level by level", async (page) => {
  for (const address of [hotPage(), comparedPage()]) {
    for (const hash of ["#verdict", "#tables"]) {
      await open(page, address, hash);
      const levels = await page.evaluate(() => [...document.querySelectorAll("h1, h2, h3, h4, h5, h6")].filter((head) => !head.closest("figure")).map((head) => Number(head.tagName[1])));
      levels.forEach((level, index) => assert.ok(level <= (levels[index - 1] ?? 0) + 1, `${hash}: ${levels.join(" ")}`));
      assert.equal(levels.filter((level) => level === 1).length, 1);
    }
  }
});
