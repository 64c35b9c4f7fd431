// The page's end of the worker.

import type { Answer, Arguments, FromWorker, QueryName, ToWorker } from "../worker/queries.ts";
import type { Growth } from "../worker/store.ts";
import type { Source } from "./source.ts";

declare const WORKER_SCRIPT: string;

interface Pending {
  resolve(answer: unknown): void;
  reject(error: Error): void;
}

/** Asks the worker, and gives it the tables that it wants. */
export class Client {
  private readonly worker: Worker;
  private readonly pending = new Map<number, Pending>();
  private next = 0;
  /** Called when rows of a live recording have arrived. */
  grown: (growth: Growth) => void = () => {};

  constructor(source: Source) {
    const script = URL.createObjectURL(new Blob([WORKER_SCRIPT], { type: "text/javascript" }));
    this.worker = new Worker(script);
    URL.revokeObjectURL(script);
    this.worker.onmessage = ({ data }: MessageEvent<FromWorker>) => {
      if (data.kind === "wanted") {
        const { name } = data;
        source.table(name).then(
          (bytes) => this.send({ kind: "bytes", name, bytes }, bytes ? [bytes] : []),
          (error: Error) => this.send({ kind: "missing", name, message: error.message }),
        );
        return;
      }
      if (data.kind === "grown") return this.grown(data.growth);
      const asked = this.pending.get(data.id);
      this.pending.delete(data.id);
      if (data.kind === "answer") asked?.resolve(data.answer);
      else asked?.reject(new Error(data.message));
    };
  }

  ask<Name extends QueryName>(name: Name, given: Arguments<Name>): Promise<Answer<Name>> {
    const id = this.next++;
    return new Promise((resolve, reject) => {
      this.pending.set(id, { resolve: resolve as (answer: unknown) => void, reject });
      this.send({ kind: "query", id, name, arguments: given });
    });
  }

  /** Gives the worker a message of a live recording. */
  take(message: ArrayBuffer): void {
    this.send({ kind: "rows", message }, [message]);
  }

  /** Forgets all rows of a live recording: they come again. */
  forget(): void {
    this.send({ kind: "forget" });
  }

  private send(message: ToWorker, transfer: Transferable[] = []): void {
    this.worker.postMessage(message, transfer);
  }
}
