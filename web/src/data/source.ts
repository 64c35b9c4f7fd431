// Where tables come from: the page itself, or the program that serves it.

import type { Manifest } from "../profile/columns.ts";
import type { Document } from "../profile/document.ts";

/** Gives the Parquet bytes of tables by name, such as `0/samples` or `0/lanes/3/0/17`. */
export interface Source {
  manifest(): Promise<Manifest>;
  /** `undefined` if there is no such table. */
  table(name: string): Promise<ArrayBuffer | undefined>;
}

/** Tables in elements of the page. */
export class Embedded implements Source {
  async manifest(): Promise<Manifest> {
    const text = document.getElementById("manifest")?.textContent;
    if (!text) throw new Error("The page has no manifest.");
    return JSON.parse(text) as Manifest;
  }

  async table(name: string): Promise<ArrayBuffer | undefined> {
    const element = document.querySelector(`script[data-name="${CSS.escape(name)}"]`);
    if (!element?.textContent) return undefined;
    return bytesOf(atob(element.textContent)).buffer;
  }
}

/** The bytes of a text of characters below 256. A loop is forty times as fast as `Uint8Array.from`. */
function bytesOf(text: string): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < bytes.length; at++) bytes[at] = text.charCodeAt(at);
  return bytes;
}

/** A table on its way. */
export interface Loading {
  name: string;
  /** Bytes so far. */
  received: number;
  /** Bytes in all; `undefined` while the server makes the table. */
  total: number | undefined;
}

/** What is on its way while the report is made. */
export const REPORT = "report";
/** How names of tables of live rows start. crates/cli/src/commands/live.rs has the same. */
const LIVE_TABLES = "live/";
/** The key of the token in `sessionStorage`, which belongs to this server's port and to this tab. */
const TOKEN = "stepscope-token";
/** Waits before each further attempt, in milliseconds. */
const PAUSES = [200, 1000, 3000];
/** What the page says when nobody answers, also not later. */
const GONE = "The program that serves this page does not answer: it has ended, or the connection to its machine is cut. Start `stepscope view` again, and open the address that it prints.";

/** Tables of a server, which wants the token with each request. */
export class Served implements Source {
  readonly token: string;
  private watch: (loading: Loading[]) => void;
  private readonly loading = new Map<string, Loading>();
  private prefix = "";

  /** `watch` gets the tables on their way whenever there is news of one. */
  constructor(token: string, watch: (loading: Loading[]) => void = () => {}) {
    this.token = token;
    this.watch = watch;
  }

  /** With the token of the address, which it removes there: the address may be shown to others. A reload finds it in this tab's storage. */
  static async here(watch?: (loading: Loading[]) => void): Promise<Served> {
    return new Served(await takeToken(location, history, sessionStorageOrNone(), redeem), watch);
  }

  /** Gives tables of the live rows from now on, also when the finished capture has others. */
  followLive(): void {
    this.prefix = LIVE_TABLES;
    // Tables come with each snapshot: that is no news.
    this.watch = () => {};
  }

  async manifest(): Promise<Manifest> {
    const response = await this.fetch("data/manifest.json");
    return (await response.json()) as Manifest;
  }

  /** Gives the report to `show`, if the manifest has none: first its verdict, where that is there sooner, then all of it. */
  async document(show: (report: Document) => void): Promise<void> {
    this.report({ name: REPORT, received: 0, total: undefined });
    try {
      for (const part of ["verdict", "document"]) {
        const response = await this.fetch(`data/${part}.json`);
        if (response.status === 200) show((await response.json()) as Document);
      }
    } finally {
      this.finish(REPORT);
    }
  }

  async table(name: string): Promise<ArrayBuffer | undefined> {
    this.report({ name, received: 0, total: undefined });
    try {
      for (let attempt = 0; ; attempt++) {
        const response = await this.fetch(`data/${this.prefix}${name}.parquet`);
        if (response.status !== 200) return undefined;
        try {
          return await read(response, (received, total) => this.report({ name, received, total }));
        } catch {
          // The connection was cut within the table.
          if (attempt === PAUSES.length) throw new Error(GONE);
        }
      }
    } finally {
      this.finish(name);
    }
  }

  private finish(name: string): void {
    this.loading.delete(name);
    this.watch([...this.loading.values()]);
  }

  private report(loading: Loading): void {
    this.loading.set(loading.name, loading);
    this.watch([...this.loading.values()]);
  }

  /** Answers 200 and 204, which is without content; others are errors in the server's words. */
  private async fetch(path: string): Promise<Response> {
    if (!this.token) throw new Error("The address has no token. Open the address that `stepscope view` printed.");
    const response = await this.attempt(path);
    if (response.ok) return response;
    const words = (await response.text()).trim();
    throw new Error(words || `The server answered ${response.status}.`);
  }

  private async attempt(path: string): Promise<Response> {
    for (const pause of PAUSES) {
      try {
        return await fetch(path, { headers: { Authorization: `Bearer ${this.token}` } });
      } catch {
        await new Promise((resolve) => setTimeout(resolve, pause));
      }
    }
    return fetch(path, { headers: { Authorization: `Bearer ${this.token}` } }).catch(() => {
      throw new Error(GONE);
    });
  }
}

/**
 * The token of the address `?token=...`, or for its ticket `?ticket=...`, else the one that was kept; empty without any. The
 * hash stays as it is.
 */
export async function takeToken(
  address: Pick<Location, "pathname" | "search" | "hash">,
  history: Pick<History, "state" | "replaceState">,
  storage: Pick<Storage, "getItem" | "setItem"> | undefined,
  redeem: (ticket: string) => Promise<string>,
): Promise<string> {
  const query = new URLSearchParams(address.search);
  const ticket = query.get("ticket");
  const given = query.get("token") ?? (ticket && (await redeem(ticket)));
  if (!given) return storage?.getItem(TOKEN) ?? "";
  storage?.setItem(TOKEN, given);
  history.replaceState(history.state, "", address.pathname + address.hash);
  return given;
}

/** The token for a ticket, which the server takes once. */
async function redeem(ticket: string): Promise<string> {
  const response = await fetch("ticket", { headers: { Authorization: `Ticket ${ticket}` } }).catch(() => {
    throw new Error(GONE);
  });
  const words = (await response.text()).trim();
  if (!response.ok) throw new Error(words);
  return words;
}

/** Browsers may forbid to keep anything. Then a reload needs the printed address. */
function sessionStorageOrNone(): Storage | undefined {
  try {
    return sessionStorage;
  } catch {
    return undefined;
  }
}

/** The bytes of a response; `progress` gets how many there are. */
async function read(response: Response, progress: (received: number, total: number | undefined) => void): Promise<ArrayBuffer> {
  const total = Number(response.headers.get("content-length")) || undefined;
  if (!response.body || !total || response.headers.has("content-encoding")) return response.arrayBuffer();
  const bytes = new Uint8Array(total);
  let received = 0;
  for (const reader = response.body.getReader(); ; ) {
    const { done, value } = await reader.read();
    if (done) break;
    bytes.set(value, received);
    received += value.length;
    progress(received, total);
  }
  if (received < total) throw new Error("the connection was cut");
  return bytes.buffer;
}
