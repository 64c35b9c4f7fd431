// The worker: holds the columns of the captures and answers the page's queries, so that the page never waits for a sum.

import { usageOf } from "../profile/usage.ts";
import { flameAnswers } from "./flame.ts";
import type { Answer, Arguments, FromWorker, QueryName, ToWorker } from "./queries.ts";
import { Store } from "./store.ts";
import { timelineAnswers } from "./timeline.ts";

const send = (message: FromWorker, transfer: Transferable[] = []) => self.postMessage(message, { transfer });
const store = new Store((name) => send({ kind: "wanted", name }));

/** The code of each query. */
const ANSWERS: { [Name in QueryName]: (given: Arguments<Name>) => Promise<Answer<Name>> } = {
  ...flameAnswers(store),
  ...timelineAnswers(store),
  table: ({ capture, name }) => store.table(`${capture}/${name}`),
  usage: async ({ capture, event, duration, buckets }) => usageOf(await store.table(`${capture}/samples`), event, duration, buckets),
};

/** What a live recording sends is taken in its order. */
let last: Promise<void> = Promise.resolve();
function live(data: Extract<ToWorker, { kind: "rows" | "forget" }>): void {
  last = last.then(async () => {
    if (data.kind === "forget") return store.forget();
    const growth = await store.take(data.message);
    if (growth) send({ kind: "grown", growth });
  });
}

/** What needs all samples and only goes with a picture: it waits until the other queries are answered, which need less. */
const PATIENT: ReadonlySet<QueryName> = new Set(["usage"]);
/** How long the queries of a new screen take to arrive. */
const ARRIVAL_MS = 50;
let unanswered = 0;
let waiting: (() => void)[] = [];

async function afterOthers(): Promise<void> {
  await new Promise((arrived) => setTimeout(arrived, ARRIVAL_MS));
  if (unanswered > 0) await new Promise<void>((answered) => waiting.push(answered));
}

self.onmessage = async ({ data }: MessageEvent<ToWorker>) => {
  if (data.kind === "bytes") return store.receive(data.name, data.bytes);
  if (data.kind === "missing") return store.fail(data.name, data.message);
  if (data.kind !== "query") return live(data);
  const answer = ANSWERS[data.name] as (given: unknown) => Promise<unknown>;
  const isPatient = PATIENT.has(data.name);
  if (isPatient) await afterOthers();
  else unanswered++;
  try {
    const answered = await answer(data.arguments);
    send({ kind: "answer", id: data.id, answer: answered }, data.name === "table" ? [] : buffersOf(answered));
  } catch (error) {
    send({ kind: "failure", id: data.id, message: error instanceof Error ? error.message : String(error) });
  }
  if (!isPatient && --unanswered === 0) {
    for (const go of waiting) go();
    waiting = [];
  }
};

/** The arrays of an answer, which move to the page: it may hold a million nodes. Whole tables stay here. */
function buffersOf(value: unknown): ArrayBuffer[] {
  if (ArrayBuffer.isView(value)) return [value.buffer as ArrayBuffer];
  if (typeof value !== "object" || value === null || Array.isArray(value)) return [];
  return [...new Set(Object.values(value).flatMap(buffersOf))];
}
