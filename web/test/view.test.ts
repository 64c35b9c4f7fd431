// `stepscope view` in a real browser: the token, the reload, and what the page says when the program is gone.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Served, takeToken, type Loading } from "../src/data/source.ts";
import { browserTest, skipped } from "./browser.ts";
import { PROJECT, lackingProgram, view, type ServedView } from "./served.ts";

const CAPTURE = `${PROJECT}/steps.capture`;

/** A browser test with a program that serves a capture. */
function servedTest(name: string, body: (...given: [...Parameters<Parameters<typeof browserTest>[1]>, ServedView]) => Promise<void>, expected?: RegExp): void {
  const reason = lackingProgram();
  if (reason) return skipped(name, reason);
  browserTest(
    name,
    async (page) => {
      const served = await view(CAPTURE);
      try {
        await body(page, served);
      } finally {
        // The page may still ask for tables.
        await page.close();
        await served.end();
      }
    },
    expected ? { served: true, expected } : { served: true },
  );
}

servedTest("the page opens, hides its token, and survives a reload", async (page, { address }) => {
  await page.goto(`${address}#explore`);
  await page.getByRole("navigation", { name: "Screens" }).waitFor();
  const shown = new URL(page.url());
  assert.equal(shown.search, "", "the token is not in the address bar");
  assert.match(shown.hash, /^#explore/, "the deep link stays");
  await page.reload();
  await page.getByRole("navigation", { name: "Screens" }).waitFor();
  assert.match(new URL(page.url()).hash, /^#explore/);
});

servedTest("the report comes after the page, without a reload", async (page, { address }) => {
  let release = () => {};
  const released = new Promise<void>((resolve) => (release = resolve));
  await page.route("**/data/verdict.json", async (route) => {
    await released;
    await route.continue();
  });
  await page.goto(address);
  await page.getByText("Analysing the captures.").waitFor();
  await page.getByRole("link", { name: "Explore the recording" }).waitFor();
  release();
  await page.getByText("Analysing the captures.").waitFor({ state: "detached" });
  await page.getByRole("link", { name: "Tables" }).click();
  await page.getByRole("navigation", { name: "Sections" }).waitFor();
});

servedTest("the verdict comes before the rest of the report", async (page, { address }) => {
  let release = () => {};
  const released = new Promise<void>((resolve) => (release = resolve));
  await page.route("**/data/document.json", async (route) => {
    await released;
    await route.continue();
  });
  await page.goto(`${address}#tables?place=rank`);
  await page.getByText("Analysing the captures.").waitFor();
  await page.getByRole("link", { name: "Verdict" }).click();
  await page.getByRole("heading", { name: "What is doubtful" }).waitFor();
  release();
  await page.getByRole("link", { name: "Tables" }).click();
  await page.getByRole("link", { name: /^Rank/ }).first().waitFor();
});

servedTest("steps on their way are not said to be missing", async (page, { address }) => {
  let release = () => {};
  const released = new Promise<void>((resolve) => (release = resolve));
  await page.route("**/data/0/steps.parquet", async (route) => {
    await released;
    await route.continue();
  });
  await page.goto(`${address}#explore`);
  await page.getByText("Reading the steps...").waitFor();
  assert.equal(await page.getByText("No steps were recorded").count(), 0);
  release();
  await page.locator(".step-pictures").waitFor();
});

servedTest("an address without a token, or with an old one, says what to do", async (page, { address }) => {
  const { origin } = new URL(address);
  await page.goto(origin);
  await page.getByText("The address has no token.").waitFor();
  await page.goto(`${origin}/?token=00000000000000000000000000000000`);
  await page.getByText("The token is missing, or it is not that of this server.").waitFor();
}, /Failed to load resource.*401/);

interface Kept {
  address: string;
  kept: Map<string, string>;
}

async function taken(search: string, kept = new Map<string, string>(), redeem = async (ticket: string) => `for ${ticket}`): Promise<Kept & { token: string }> {
  let address = "";
  const history = { state: 7, replaceState: (_state: unknown, _title: string, url?: string | URL | null) => void (address = String(url)) };
  const storage = { getItem: (key: string) => kept.get(key) ?? null, setItem: (key: string, value: string) => void kept.set(key, value) };
  const token = await takeToken({ pathname: "/", search, hash: "#explore?t=1-2" }, history, storage, redeem);
  return { token, address, kept };
}

test("the token moves from the address to the tab", async () => {
  const first = await taken("?token=abc");
  assert.deepEqual([first.token, first.address], ["abc", "/#explore?t=1-2"]);
  const reloaded = await taken("", first.kept);
  assert.deepEqual([reloaded.token, reloaded.address], ["abc", ""], "nothing to remove");
  assert.equal((await taken("?token=new", first.kept)).token, "new", "a newer address counts");
  assert.equal((await taken("")).token, "");
});

test("a ticket gives the token", async () => {
  const { token, address } = await taken("?ticket=t");
  assert.deepEqual([token, address], ["for t", "/#explore?t=1-2"]);
  await assert.rejects(taken("?ticket=t", new Map(), () => Promise.reject(new Error("opened before"))), /opened before/);
});

/** A server in this test: answers in their order; an error is a connection that is refused. */
async function answered<T>(answers: (Response | Error)[], ask: (served: Served) => Promise<T>): Promise<{ result: T | string; news: Loading[][] }> {
  const [fetchBefore, timeoutBefore] = [globalThis.fetch, globalThis.setTimeout];
  const news: Loading[][] = [];
  globalThis.fetch = async () => {
    const answer = answers.shift() ?? new TypeError("refused");
    if (answer instanceof Error) throw answer;
    return answer;
  };
  globalThis.setTimeout = ((act: () => void) => timeoutBefore(act, 0)) as typeof setTimeout;
  try {
    const served = new Served("token", (loading) => news.push(loading));
    return { result: await ask(served).catch((error: Error) => error.message), news };
  } finally {
    [globalThis.fetch, globalThis.setTimeout] = [fetchBefore, timeoutBefore];
  }
}

const bytes = (length: number, claimed = length) => new Response(new Uint8Array(length), { headers: { "content-length": String(claimed) } });
const samples = (served: Served) => served.table("0/samples").then((table) => table?.byteLength);

test("a connection that is cut is tried again", async () => {
  assert.equal((await answered([new TypeError("refused"), bytes(5)], samples)).result, 5);
  assert.equal((await answered([bytes(3, 5), bytes(5)], samples)).result, 5, "half a table is none");
});

test("without its program the page says what to do", async () => {
  assert.match(String((await answered([], samples)).result), /does not answer.*Start `stepscope view` again/);
  assert.match(String((await answered([], (served) => served.manifest())).result), /does not answer/);
});

test("failures are shown in the words of the server", async () => {
  const failed = new Response("samples.parquet: damaged.\n", { status: 500 });
  assert.equal((await answered([failed], samples)).result, "samples.parquet: damaged.");
  assert.equal((await answered([new Response(null, { status: 204 })], samples)).result, undefined, "there is no such table");
});

test("tables on their way are reported until they are there", async () => {
  const { news } = await answered([bytes(5)], samples);
  assert.deepEqual(news[0], [{ name: "0/samples", received: 0, total: undefined }]);
  assert.deepEqual(news.at(-2), [{ name: "0/samples", received: 5, total: 5 }]);
  assert.deepEqual(news.at(-1), []);
});
