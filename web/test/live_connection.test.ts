// The connection to a live recording when it breaks: closed, silent, or slept through.

import assert from "node:assert/strict";
import { afterEach, mock, test } from "node:test";
import type { Client } from "../src/data/client.ts";
import { Live } from "../src/data/live.ts";

/** A socket whose other end is the test. */
class Socket {
  static readonly OPEN = 1;
  static all: Socket[] = [];
  readyState = 1;
  onmessage: (event: { data: ArrayBuffer | string }) => void = () => {};
  onclose: () => void = () => {};

  constructor() {
    Socket.all.push(this);
  }

  says(news: object): void {
    this.onmessage({ data: JSON.stringify(news) });
  }

  /** As browsers do it without a network: `onclose` would come much later. */
  close(): void {
    this.readyState = 2;
  }

  send(): void {}
}

afterEach(() => mock.timers.reset());

/** Time passes; the clock moves between timers, too. */
function pass(ms: number): void {
  for (let left = ms; left > 0; left -= 100) mock.timers.tick(Math.min(100, left));
}

function following() {
  mock.timers.enable({ apis: ["setTimeout", "setInterval", "Date"], now: 1_000_000 });
  Socket.all = [];
  Object.assign(globalThis, { WebSocket: Socket, location: { href: "http://127.0.0.1:1/" } });
  const seen: string[] = [];
  const client = { forget: () => seen.push("forget"), take: (rows: ArrayBuffer) => seen.push(`rows ${rows.byteLength}`) };
  const live = new Live("token", client as unknown as Client, {
    connection: (state) => seen.push(state),
    started: (dropped) => dropped > 0 && seen.push(`dropped ${dropped}`),
    returned: (after) => seen.push(`returned after ${after} ms`),
  });
  const last = () => Socket.all.at(-1)!;
  const opens = () => {
    last().says({ kind: "alive", seconds: 10 });
    last().says({ kind: "start", dropped: 0 });
  };
  opens();
  const taken = () => seen.splice(0);
  taken();
  return { live, last, opens, taken };
}

test("a socket that closes is opened again, and the page knows for how long it heard nothing", () => {
  const { last, opens, taken } = following();
  pass(300);
  last().onclose();
  assert.deepEqual(taken(), ["lost"]);
  pass(500);
  assert.deepEqual(taken(), ["connecting"]);
  last().onclose();
  pass(1000);
  opens();
  assert.deepEqual(taken(), ["lost", "connecting", "forget", "open", "returned after 1800 ms"]);
});

test("a socket that stays open and says nothing is given up, and what it says later does not count", () => {
  const { last, opens, taken } = following();
  pass(20_000);
  last().onmessage({ data: new ArrayBuffer(8) });
  pass(24_000);
  assert.deepEqual(taken(), ["rows 8"], "rows are signs of life, too");
  const silent = last();
  pass(2_000);
  assert.deepEqual(taken(), ["lost"]);
  assert.equal(silent.readyState, 2);
  pass(500);
  opens();
  silent.onmessage({ data: new ArrayBuffer(9) });
  silent.onclose();
  assert.deepEqual(taken(), ["connecting", "forget", "open", "returned after 26500 ms"]);
});

test("a page that slept waits for the next sign of life before it gives up", () => {
  const { last, taken } = following();
  mock.timers.setTime(1_000_000 + 3_600_000);
  pass(1_000);
  assert.deepEqual(taken(), []);
  last().says({ kind: "alive", seconds: 10 });
  pass(20_000);
  assert.deepEqual(taken(), []);
  pass(10_000);
  assert.deepEqual(taken(), ["lost", "connecting"]);
});

test("a recording that ended is not asked again, and a pause that took too long is no loss", () => {
  const { live, last, opens, taken } = following();
  live.pause();
  last().onmessage({ data: new ArrayBuffer(33 << 20) });
  live.resume();
  opens();
  assert.deepEqual(taken(), ["connecting", "forget", "open"]);
  last().says({ kind: "end" });
  last().onclose();
  pass(60_000);
  assert.deepEqual(taken(), ["ended"]);
});
