// The tables that the worker holds. A table is asked for once, decoded, and kept. Those of a live recording grow.

import { decode } from "../data/parquet.ts";
import type { CaptureEntry, Table } from "../profile/columns.ts";
import { GrowingTable } from "../profile/growing.ts";

const EMPTY: Table = { rows: 0, columns: {} };

interface Waiting {
  resolve(bytes: ArrayBuffer | undefined): void;
  reject(error: Error): void;
}

/** What a live recording says of itself. crates/live/src/state.rs makes it. */
export interface LiveState {
  state: "waiting" | "recording" | "ended" | "finished" | "killed" | "failed";
  /** Why it failed. */
  problem: string;
  /** The latest time that is known, and the earliest whose rows are held; nanoseconds since the start. */
  until: number;
  from: number;
  /** Samples and waits are known up to this time: later ones wait for the names of their stacks. */
  named: number;
  /** How far the picture is behind the program, in nanoseconds. */
  behind: number;
  /** Records and marks that the recorder lost. */
  lost: number;
  lostMarks: number;
  /** Whether samples or waits are added up, because there are too many. */
  summed: boolean;
  /** Number of the present snapshot, 0 before the first: tables that are not sent are those of the snapshot. */
  snapshot: number;
  title: string;
  /** The folder of the recording. */
  folder: string;
  moments: { time: number; text: string }[];
  /** The capture's entry in the manifest as of the snapshot, without the rows that are sent. */
  entry: Partial<CaptureEntry>;
}

/** Rows of each growing table, and what the recording says. */
export interface Growth {
  rows: Record<string, number>;
  state: LiveState;
}

/** The first line of a message: rows of a table, or the state of the recording. */
type Head = { table: string; rows: number; at?: number; since?: number } | { live: LiveState };

export class Store {
  private readonly tables = new Map<string, Promise<Table>>();
  private readonly growing = new Map<string, GrowingTable>();
  private readonly waiting = new Map<string, Waiting>();
  private readonly arriving = new Map<string, Promise<ArrayBuffer | undefined>>();
  private readonly ask: (name: string) => void;
  private snapshot = 0;

  /** `ask` requests the bytes of a table; they arrive by `receive`. */
  constructor(ask: (name: string) => void) {
    this.ask = ask;
  }

  table(name: string): Promise<Table> {
    const growing = this.growing.get(name);
    if (growing) return Promise.resolve(growing.table);
    let table = this.tables.get(name);
    if (!table) {
      const bytes = new Promise<ArrayBuffer | undefined>((resolve, reject) => this.waiting.set(name, { resolve, reject }));
      this.ask(name);
      table = bytes.then((bytes) => (bytes ? decode(bytes) : EMPTY));
      this.tables.set(name, table);
    }
    return table;
  }

  /** Whether a live recording sends the rows of this table. */
  isGrowing(name: string): boolean {
    return this.growing.has(name);
  }

  /** A table that the caller keeps itself, such as a tile: two callers get two copies. */
  async once(name: string): Promise<Table> {
    let bytes = this.arriving.get(name);
    if (!bytes) {
      bytes = new Promise<ArrayBuffer | undefined>((resolve, reject) => this.waiting.set(name, { resolve, reject }));
      this.arriving.set(name, bytes);
      this.ask(name);
    }
    const arrived = await bytes.finally(() => this.arriving.delete(name));
    return arrived ? decode(arrived) : { ...EMPTY };
  }

  receive(name: string, bytes: ArrayBuffer | undefined): void {
    this.waiting.get(name)?.resolve(bytes);
    this.waiting.delete(name);
  }

  /** There are no bytes now. Who asks again may get them. */
  fail(name: string, message: string): void {
    this.tables.delete(name);
    this.waiting.get(name)?.reject(new Error(message));
    this.waiting.delete(name);
  }

  /** Takes a message of a live recording. Gives the growth when all tables fit together. */
  async take(message: ArrayBuffer): Promise<Growth | undefined> {
    const end = new Uint8Array(message).indexOf(10);
    const head = JSON.parse(new TextDecoder().decode(message.slice(0, end < 0 ? undefined : end))) as Head;
    if ("live" in head) return this.commit(head.live);
    const rows = await decode(message.slice(end + 1));
    const table = this.growing.get(head.table) ?? new GrowingTable(head.table.slice(head.table.indexOf("/") + 1));
    table.put(rows, head.at ?? (head.since === undefined ? undefined : table.rowAt(head.since)));
    this.growing.set(head.table, table);
    return undefined;
  }

  /** Forgets the rows of a live recording. All of them come again. */
  forget(): void {
    this.growing.clear();
    this.tables.clear();
  }

  private commit(state: LiveState): Growth {
    // What is made of the rows, such as lanes, is another now.
    if (state.snapshot !== this.snapshot) this.tables.clear();
    this.snapshot = state.snapshot;
    const rows: Record<string, number> = {};
    for (const [name, table] of this.growing) {
      table.forgetBefore(state.from);
      rows[name] = table.table.rows;
    }
    return { rows, state };
  }
}
