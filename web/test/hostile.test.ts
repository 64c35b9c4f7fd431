// The single file of a capture from a stranger: its names do nothing, it loads nothing, and without scripts it shows tables.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { open } from "./app_page.ts";
import { browserTest, saved } from "./browser.ts";

const FOLDED = [
  "main;</script><script>document.title='ran'</script>;<img src=x onerror=document.title='ran'> 5",
  `main;${"n::".repeat(200_000)};inner 3`,
  `"><svg onload=document.title='ran'>;{{constructor}};javascript:alert(1) 2`,
];

const folder = mkdtempSync(join(tmpdir(), "stepscope-hostile-"));
after(() => rmSync(folder, { recursive: true, force: true }));

let text: string | undefined;

function page(): string {
  if (text === undefined) {
    const [stacks, out] = [join(folder, "a.folded"), join(folder, "a.html")];
    writeFileSync(stacks, FOLDED.join("\n"));
    execFileSync("cargo", ["run", "--quiet", "--package", "stepscope", "--", "report", stacks, "-o", out], { stdio: "ignore" });
    text = readFileSync(out, "utf8");
  }
  return saved("hostile.html", text);
}

browserTest("names of a capture neither run nor load anything", async (tab) => {
  const requests: string[] = [];
  const address = page();
  tab.on("request", (request) => requests.push(request.url()));
  for (const hash of ["#verdict", "#explore", "#explore?pane=functions", "#tables"]) {
    await open(tab, address, hash);
    assert.notEqual(await tab.title(), "ran");
  }
  await open(tab, address, "#explore?pane=flame");
  await tab.getByText(/\b[\d,]+ frames/).first().waitFor();
  assert.equal(await tab.locator("img, svg[onload], script:not([id]):not([type])").count(), 1, "the app's own script");
  assert.deepEqual(requests.filter((url) => !url.startsWith("file:") && !url.startsWith("blob:")), []);
});

browserTest("without scripts the page shows its first tables", async (tab) => {
  const address = page();
  const context = await tab.context().browser()!.newContext({ javaScriptEnabled: false });
  const plain = await context.newPage();
  await plain.goto(address);
  assert.ok((await plain.locator("table").count()) > 0);
  assert.match((await plain.locator("body").innerText()) ?? "", /needs scripts/);
  await context.close();
});

browserTest("the policy lets no other script run", async (tab) => {
  const address = page();
  const forged = text!.replace("</body>", '<p id="forged" onclick="document.title=1">x</p><script>document.title = "ran"</script></body>');
  assert.notEqual(forged, text);
  await tab.addInitScript(() => addEventListener("securitypolicyviolation", (event) => ((globalThis as { violated?: string }).violated = event.violatedDirective)));
  await open(tab, saved("forged.html", forged));
  assert.notEqual(await tab.title(), "ran");
  assert.match(await tab.evaluate(() => (globalThis as { violated?: string }).violated ?? ""), /^script-src/);
  assert.ok(address);
}, { expected: /Content Security Policy/ });
