// Firefox, driven by WebDriver BiDi: Debian's has no other protocol that playwright-core speaks.

import { spawn, type ChildProcess } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { lackingPage } from "./app_page.ts";
import { skipped } from "./browser.ts";

const FIREFOX = [process.env["FIREFOX"], "/usr/bin/firefox-esr", "/usr/bin/firefox"].find((path) => path && existsSync(path));
/** Nothing beyond the pages under test. */
const PREFERENCES: Record<string, string | number | boolean> = {
  "app.update.enabled": false,
  "browser.shell.checkDefaultBrowser": false,
  "browser.startup.page": 0,
  "datareporting.policy.dataSubmissionEnabled": false,
  "network.captive-portal-service.enabled": false,
  "network.connectivity-service.enabled": false,
  "network.proxy.type": 1,
  "network.proxy.http": "127.0.0.1",
  "network.proxy.http_port": 9,
  "network.proxy.ssl": "127.0.0.1",
  "network.proxy.ssl_port": 9,
  "security.sandbox.content.level": 0,
  "toolkit.telemetry.enabled": false,
};

interface Socket {
  on(event: "open" | "message" | "error", listener: (data: { toString(): string }) => void): void;
  send(text: string): void;
  close(): void;
}
const { ws } = createRequire(import.meta.url)("playwright-core/lib/utilsBundle") as { ws: new (url: string) => Socket };

/** A page of Firefox. */
export class FirefoxPage {
  private readonly socket: Socket;
  private readonly waiting = new Map<number, { resolve(result: never): void; reject(error: Error): void }>();
  private next = 1;
  private context = "";
  /** Errors of the console. */
  readonly faults: string[] = [];

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.on("message", (data) => this.receive(JSON.parse(data.toString())));
  }

  static async connect(url: string): Promise<FirefoxPage> {
    const socket = new ws(`${url}/session`);
    await new Promise<void>((resolve, reject) => {
      socket.on("open", () => resolve());
      socket.on("error", (error) => reject(new Error(String(error))));
    });
    const page = new FirefoxPage(socket);
    await page.ask("session.new", { capabilities: {} });
    await page.ask("session.subscribe", { events: ["log.entryAdded"] });
    const tree = await page.ask<{ contexts: { context: string }[] }>("browsingContext.getTree", {});
    page.context = tree.contexts[0].context;
    return page;
  }

  private receive(message: { id?: number; type: string; result?: never; message?: string; method?: string; params?: { level: string; text: string } }): void {
    if (message.method === "log.entryAdded" && message.params?.level === "error") this.faults.push(message.params.text);
    const asked = this.waiting.get(message.id ?? -1);
    this.waiting.delete(message.id ?? -1);
    if (message.type === "error") asked?.reject(new Error(message.message));
    else asked?.resolve(message.result!);
  }

  private ask<T>(method: string, params: object): Promise<T> {
    const id = this.next++;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      this.socket.send(JSON.stringify({ id, method, params }));
    });
  }

  /** Loads an address, also if only its hash differs from the current one. */
  async open(address: string): Promise<void> {
    await this.ask("browsingContext.navigate", { context: this.context, url: "about:blank", wait: "complete" });
    await this.ask("browsingContext.navigate", { context: this.context, url: address, wait: "complete" });
  }

  /** The value of an expression, as text. */
  async text(expression: string): Promise<string> {
    const answer = await this.ask<{ type: string; result?: { value?: unknown }; exceptionDetails?: { text: string } }>("script.evaluate", {
      expression: `String(${expression})`,
      target: { context: this.context },
      awaitPromise: true,
    });
    if (answer.type === "exception") throw new Error(answer.exceptionDetails?.text);
    return String(answer.result?.value);
  }

  /** Waits until an expression is true. */
  async until(expression: string): Promise<void> {
    for (let turn = 0; turn < 600; turn++) {
      if ((await this.text(expression)) === "true") return;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error(`never true in Firefox: ${expression}`);
  }

  close(): void {
    this.socket.close();
  }
}

/** Starts Firefox and gives the address of its protocol. */
function started(profile: string): { process: ChildProcess; url: Promise<string> } {
  const preferences = Object.entries(PREFERENCES).map(([name, value]) => `user_pref(${JSON.stringify(name)}, ${JSON.stringify(value)});\n`);
  writeFileSync(join(profile, "user.js"), preferences.join(""));
  const process = spawn(FIREFOX!, ["--headless", "--no-remote", "--profile", profile, "--remote-debugging-port", "0"], { stdio: ["ignore", "ignore", "pipe"] });
  const url = new Promise<string>((resolve, reject) => {
    let said = "";
    process.stderr!.on("data", (data) => {
      said += data;
      const [, url] = /WebDriver BiDi listening on (ws:\S+)/.exec(said) ?? [];
      if (url) resolve(url);
    });
    process.on("exit", () => reject(new Error(`Firefox ended: ${said.slice(-400)}`)));
  });
  return { process, url };
}

/** A test in Firefox. It fails too if the page logs an error, as for a violation of its content security policy. */
export function firefoxTest(name: string, body: (page: FirefoxPage) => Promise<void>): void {
  const reason = FIREFOX ? lackingPage() : "firefox is missing (Debian package: firefox-esr)";
  if (reason) return skipped(name, reason);
  test(name, async () => {
    const profile = mkdtempSync(join(tmpdir(), "stepscope-firefox-"));
    const { process, url } = started(profile);
    try {
      const page = await FirefoxPage.connect(await url);
      await body(page);
      page.close();
      if (page.faults.length > 0) throw new Error(page.faults.join("\n"));
    } finally {
      const ended = new Promise((resolve) => process.on("exit", resolve));
      process.kill();
      await ended;
      rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
    }
  });
}
