// The connection to a live recording: messages of rows go to the worker, commands go to the program.

import type { Client } from "./client.ts";

/** How the connection is. */
export type Connection = "connecting" | "open" | "lost" | "ended";

/** What the page hears of it. */
export interface Listener {
  connection(state: Connection): void;
  /** Everything comes again, because this page lost this number of messages; 0 if it is new. */
  started(dropped: number): void;
  /** The connection is there again after this number of milliseconds without it. */
  returned(after: number): void;
}

/** What the program does on request. */
export type LiveCommand = { command: "save"; seconds?: number } | { command: "mark"; text?: string } | { command: "stop" };

/** News of the connection, as text. crates/serve/src/live.rs makes them. */
type News = { kind: "start"; dropped: number } | { kind: "answer"; id: number; done: boolean; text: string } | { kind: "alive"; seconds: number } | { kind: "end" };

/** While the page is paused, at most this number of bytes waits. */
const MOST_WAITING = 32 << 20;
/** Time until the next attempt to connect; each takes twice as long as the one before. */
const FIRST_RETRY = 500;
const LAST_RETRY = 8000;
/** A program that leaves this many of its signs of life out is gone, whatever the browser knows: a cut network closes nothing. */
const MISSED = 2.5;
/** How often it is looked at, in milliseconds. If it takes longer, the page itself slept. */
const LOOK = 1000;
const SLEPT = 5000;

export class Live {
  private readonly address: string;
  private readonly protocols: string[];
  private readonly client: Client;
  private readonly listener: Listener;
  private socket: WebSocket | undefined;
  private retry = FIRST_RETRY;
  private retrying: ReturnType<typeof setTimeout> | undefined;
  /** When anything came, when that was looked at, and how many milliseconds are between signs of life. */
  private heard = Date.now();
  private looked = Date.now();
  private period = Infinity;
  private isLost = false;
  private lostAt = 0;
  private next = 1;
  private readonly asked = new Map<number, { resolve(text: string): void; reject(error: Error): void }>();
  /** Messages that wait while the page is paused; `undefined` if it is not, `"gap"` if they were too many. */
  private waiting: ArrayBuffer[] | "gap" | undefined;
  private waitingBytes = 0;

  constructor(token: string, client: Client, listener: Listener) {
    this.address = new URL("live", location.href).href.replace(/^http/, "ws").replace(/#.*/, "");
    this.protocols = ["stepscope", `token.${token}`];
    this.client = client;
    this.listener = listener;
    this.connect();
    setInterval(() => this.look(), LOOK);
    // A page that is seen again, or a network that is there again, does not wait for the next attempt.
    const now = () => this.retrying !== undefined && this.connect();
    globalThis.addEventListener?.("online", now);
    globalThis.document?.addEventListener("visibilitychange", now);
  }

  /** Asks the program. Gives its sentence. */
  ask(command: LiveCommand): Promise<string> {
    const socket = this.socket;
    if (socket?.readyState !== WebSocket.OPEN) return Promise.reject(new Error("The connection is lost."));
    const id = this.next++;
    return new Promise((resolve, reject) => {
      this.asked.set(id, { resolve, reject });
      socket.send(JSON.stringify({ id, ...command }));
    });
  }

  /** Holds back what arrives. */
  pause(): void {
    this.waiting ??= [];
  }

  /** Shows what arrived meanwhile. If that was too much, everything comes again. */
  resume(): void {
    const waiting = this.waiting;
    this.waiting = undefined;
    this.waitingBytes = 0;
    if (waiting === "gap") this.connectAgain();
    else waiting?.forEach((message) => this.client.take(message));
  }

  private connectAgain(): void {
    const socket = this.socket;
    this.connect();
    socket?.close();
  }

  private connect(): void {
    clearTimeout(this.retrying);
    this.retrying = undefined;
    this.period = Infinity;
    this.listener.connection("connecting");
    const socket = new WebSocket(this.address, this.protocols);
    this.socket = socket;
    let ended = false;
    socket.binaryType = "arraybuffer";
    socket.onmessage = ({ data }: MessageEvent<ArrayBuffer | string>) => {
      // A connection that was given up may still deliver what was on its way.
      if (this.socket !== socket) return;
      this.heard = Date.now();
      if (typeof data !== "string") return this.take(data);
      const news = JSON.parse(data) as News;
      if (news.kind === "start") this.start(news.dropped);
      else if (news.kind === "answer") this.answer(news);
      else if (news.kind === "alive") this.period = news.seconds * 1000;
      else ended = true;
    };
    socket.onclose = () => this.socket === socket && this.close(ended);
  }

  /** Whether signs of life are missing. */
  private look(): void {
    const now = Date.now();
    // Who slept heard nothing: the next sign of life tells.
    if (now - this.looked > SLEPT) this.heard = Math.max(this.heard, now - this.period * (MISSED - 1));
    this.looked = now;
    if (now - this.heard <= this.period * MISSED) return;
    const socket = this.socket;
    this.close(false);
    socket?.close();
  }

  private close(ended: boolean): void {
    this.socket = undefined;
    this.period = Infinity;
    const lost = new Error("The connection was lost before the answer.");
    this.asked.forEach(({ reject }) => reject(lost));
    this.asked.clear();
    this.listener.connection(ended ? "ended" : "lost");
    if (ended) return;
    // Attempts that fail belong to the same loss.
    if (!this.isLost) this.lostAt = this.heard;
    this.isLost = true;
    this.retrying = setTimeout(() => this.connect(), this.retry);
    this.retry = Math.min(this.retry * 2, LAST_RETRY);
  }

  private start(dropped: number): void {
    this.retry = FIRST_RETRY;
    if (this.waiting) {
      // What the page shows stays until it goes on; then everything comes once more.
      this.waiting = "gap";
    } else {
      this.client.forget();
    }
    this.listener.connection("open");
    this.listener.started(dropped);
    if (this.isLost) this.listener.returned(Date.now() - this.lostAt);
    this.isLost = false;
  }

  private take(message: ArrayBuffer): void {
    if (!this.waiting) return this.client.take(message);
    if (this.waiting === "gap") return;
    this.waitingBytes += message.byteLength;
    if (this.waitingBytes > MOST_WAITING) this.waiting = "gap";
    else this.waiting.push(message);
  }

  private answer({ id, done, text }: Extract<News, { kind: "answer" }>): void {
    const asked = this.asked.get(id);
    this.asked.delete(id);
    if (done) asked?.resolve(text);
    else asked?.reject(new Error(text));
  }
}
