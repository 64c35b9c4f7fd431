// The functions of a capture. Frames at different lines and addresses are of one function: those with equal `identity`.

import { integers, texts, type Table } from "./columns.ts";
import { KINDS, type Kind } from "../tree.ts";

/** Name of the function that stands for samples without a stack. */
export const NO_STACK = "(no stack)";

/** Functions by index, which never changes: a live recording and transforms add some at the end. */
export interface Functions {
  names: string[];
  /** File names of modules; empty where unknown. */
  modules: string[];
  /** Codes of `KINDS`. */
  kinds: Uint8Array;
  owned: Uint8Array;
  /** Whether costs are attributed to it: it is owned, or none is and it is the program's own. */
  owners: Uint8Array;
  /** Whether all its frames are inlined. */
  inlined: Uint8Array;
  /** The function of each frame. */
  ofFrame: Int32Array;
  /** The function of samples without a stack. */
  noStack: number;
  /** The function of each state of waits; the first one is waiting for a CPU. */
  ofState: Int32Array;
  hasOwned: boolean;
}

const GROUP = KINDS.indexOf("group");

/** What kind of code a function is. */
export function kindOf(functions: Functions, index: number): Kind {
  return KINDS[functions.kinds[index]] ?? "unknown";
}

/** What a function is, besides its name. */
interface Traits {
  kind: number;
  owned: boolean;
  owner: boolean;
  inlined: boolean;
}

const NO_TRAITS: Traits = { kind: GROUP, owned: false, owner: false, inlined: false };

/** Collects functions, each once. */
export class Catalogue {
  readonly functions: Functions = {
    names: [], modules: [], kinds: new Uint8Array(64), owned: new Uint8Array(64), owners: new Uint8Array(64), inlined: new Uint8Array(64),
    ofFrame: new Int32Array(0), noStack: 0, ofState: new Int32Array(0), hasOwned: false,
  };
  private readonly indices = new Map<string, Map<string, number>>();
  private readonly ofIdentity = new Map<number, number>();
  private readonly stands = new Map<string, number>();

  /** `states` are the names of the states of waits. */
  constructor(states: readonly string[] = []) {
    this.functions.noStack = this.of(NO_STACK, "", NO_TRAITS);
    this.functions.ofState = Int32Array.from(states, (state) => this.of(`[${state}]`, "", NO_TRAITS));
  }

  /** Adds the functions of the frames that are new. */
  grow(frames: Table, modules: Table): void {
    const { functions } = this;
    const first = functions.ofFrame.length;
    if (frames.rows <= first) return;
    const ofFrame = new Int32Array(frames.rows);
    ofFrame.set(functions.ofFrame);
    functions.ofFrame = ofFrame;
    const names = texts(frames, "function");
    const moduleNames = modules.rows > 0 ? texts(modules, "name") : [];
    const [module, kind, owned, owner, inlined, identity] = ["module", "kind", "owned", "owner", "inlined", "identity"].map((column) => integers(frames, column));
    for (let frame = first; frame < frames.rows; frame++) {
      let index = this.ofIdentity.get(identity[frame]);
      if (index === undefined) {
        index = this.of(names[frame], moduleNames[module[frame]] ?? "", { kind: kind[frame], owned: false, owner: false, inlined: inlined[frame] !== 0 });
        this.ofIdentity.set(identity[frame], index);
      }
      ofFrame[frame] = index;
      this.mark(index, { owned: owned[frame] !== 0, owner: owner[frame] !== 0, inlined: inlined[frame] !== 0 });
    }
  }

  /** The function of this name and module. */
  of(name: string, module: string, traits: Traits): number {
    let named = this.indices.get(module);
    if (!named) this.indices.set(module, (named = new Map()));
    let index = named.get(name);
    if (index === undefined) {
      index = this.add(name, module, traits);
      named.set(name, index);
    }
    return index;
  }

  /** One owned frame makes a function owned: debug information may name a header for some of its lines. */
  mark(index: number, { owned, owner, inlined }: Omit<Traits, "kind">): void {
    const { functions } = this;
    if (owned) {
      functions.owned[index] = 1;
      functions.hasOwned = true;
    }
    if (owner) functions.owners[index] = 1;
    if (!inlined) functions.inlined[index] = 0;
  }

  /** A function that stands for a whole module. */
  ofModule(module: string): number {
    const { functions } = this;
    const like = functions.modules.indexOf(module);
    const traits = { kind: functions.kinds[like] ?? GROUP, owned: functions.owned[like] === 1, owner: functions.owners[like] === 1, inlined: false };
    return this.standFor(`module ${module}`, `[${module}]`, module, traits);
  }

  /** A function that stands for a thread. */
  ofThread(thread: number, name: string): number {
    return this.standFor(`thread ${thread}`, name, "", NO_TRAITS);
  }

  private standFor(key: string, name: string, module: string, traits: Traits): number {
    let index = this.stands.get(key);
    if (index === undefined) this.stands.set(key, (index = this.add(name, module, traits)));
    return index;
  }

  private add(name: string, module: string, { kind, owned, owner, inlined }: Traits): number {
    const { functions } = this;
    const index = functions.names.push(name) - 1;
    functions.modules.push(module);
    if (index >= functions.kinds.length) {
      functions.kinds = widened(functions.kinds);
      functions.owned = widened(functions.owned);
      functions.owners = widened(functions.owners);
      functions.inlined = widened(functions.inlined);
    }
    functions.kinds[index] = kind;
    functions.owned[index] = owned ? 1 : 0;
    functions.owners[index] = owner ? 1 : 0;
    functions.inlined[index] = inlined ? 1 : 0;
    return index;
  }
}

function widened(column: Uint8Array): Uint8Array {
  const longer = new Uint8Array(column.length * 2);
  longer.set(column);
  return longer;
}

/** Nodes of a tree, parents first. */
interface Paths {
  parents: Int32Array;
  /** Below 0 for the whole. */
  functions: Int32Array;
}

/** A number for each call path, by the names on it: the same in each page of the same program. */
export function pathHashes(tree: Paths, functions: Functions): Uint32Array {
  const ofName = Uint32Array.from(functions.names, (name, index) => hashOf(`${name}\0${functions.modules[index]}`));
  const hashes = new Uint32Array(tree.parents.length);
  for (let node = 0; node < hashes.length; node++) {
    const of = tree.functions[node];
    if (of < 0) continue;
    const parent = tree.parents[node];
    let hash = Math.imul((parent < 0 ? 0 : hashes[parent]) ^ ofName[of], 0x01000193);
    hash ^= hash >>> 15;
    hashes[node] = Math.imul(hash, 0x2c1b3c6d);
  }
  return hashes;
}

/** FNV-1a over UTF-16 units. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return hash >>> 0;
}
