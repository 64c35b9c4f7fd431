// Queries on stacks: flame graphs, functions, lines, differences.

import type { Order, Transform } from "../profile/address.ts";
import { Profile, type ProfileTables } from "../profile/capture.ts";
import type { Table } from "../profile/columns.ts";
import type { CostTree } from "../profile/cost_tree.ts";
import { difference, type Widths } from "../profile/difference.ts";
import type { Flame } from "../profile/flame.ts";
import { Catalogue } from "../profile/functions.ts";
import type { FunctionTable, Neighbours, Sandwich } from "../profile/function_table.ts";
import type { Instructions } from "../profile/instructions.ts";
import type { FileCost, Lines } from "../profile/lines.ts";
import { hasWaits, type Weight } from "../profile/weigh.ts";
import type { Selection } from "./queries.ts";
import type { Store } from "./store.ts";

/** What is weighed. */
export interface Weighing {
  selection: Selection;
  weight: Weight;
  event: number;
  transforms: Transform[];
  /** Names of the states of waits. */
  states: string[];
}

/** The functions that trees name by index. */
export interface FunctionNames {
  names: string[];
  modules: string[];
  /** Codes of `KINDS`. */
  kinds: Uint8Array;
  owned: Uint8Array;
  owners: Uint8Array;
  inlined: Uint8Array;
  hasOwned: boolean;
}

/** What an answer that names functions says of them: how many there are, more than the page knows if a transform made some. */
export interface OfFunctions {
  capture: number;
  functionCount: number;
}

/** Both sides of a difference, and what their weights are multiplied by to be comparable. */
export interface DifferenceArguments {
  after: Weighing;
  before: Weighing;
  scales: [after: number, before: number];
  widths: Widths;
  foldsStartUp: boolean;
}

export interface FlameQueries {
  flame: { arguments: Weighing & { order: Order; inverted: boolean; foldsStartUp: boolean }; answer: { flame: Flame } & OfFunctions };
  functions: { arguments: { capture: number; states: string[]; count: number }; answer: FunctionNames & { capture: number } };
  functionTable: { arguments: Weighing; answer: FunctionTable & OfFunctions };
  neighbours: { arguments: Weighing & { name: string }; answer: Neighbours };
  sandwich: { arguments: Weighing & { name: string }; answer: Sandwich & OfFunctions };
  lines: { arguments: Weighing & { file: string }; answer: Lines };
  instructions: { arguments: Weighing & { frame: number }; answer: Instructions };
  files: { arguments: Weighing; answer: { files: FileCost[]; whole: number } };
  costTree: { arguments: Weighing; answer: CostTree };
  difference: { arguments: DifferenceArguments; answer: { flame: Flame; functions: FunctionNames } };
}

type Answers = { [Name in keyof FlameQueries]: (given: FlameQueries[Name]["arguments"]) => Promise<FlameQueries[Name]["answer"]> };

/** The answers, from the tables of a store. */
export function flameAnswers(store: Store): Answers {
  const profiles = new Profiles(store);
  const opened = async (given: Weighing, ...needs: Later[]) => {
    const { capture, ...part } = given.selection;
    return { profile: await profiles.of(capture, given.states, [...neededBy(given), ...needs]), weighed: { ...given, part } };
  };
  const counted = ({ selection }: Weighing, { functions }: Profile): OfFunctions => ({ capture: selection.capture, functionCount: functions.names.length });
  return {
    async flame(given) {
      const { profile, weighed } = await opened(given, ...(given.order === "time" ? (["samples"] as const) : []));
      const flame = profile.flame(weighed, given);
      return { flame, ...counted(given, profile) };
    },
    async functions({ capture, states }) {
      return { ...namesOf((await profiles.of(capture, states, [])).functions), capture };
    },
    async functionTable(given) {
      const { profile, weighed } = await opened(given);
      const table = profile.table(weighed);
      return { ...table, ...counted(given, profile) };
    },
    async neighbours(given) {
      const { profile, weighed } = await opened(given);
      return profile.neighbours(weighed, profile.functions.names.indexOf(given.name));
    },
    async sandwich(given) {
      const { profile, weighed } = await opened(given);
      const trees = profile.sandwich(weighed, profile.functions.names.indexOf(given.name));
      return { ...trees, ...counted(given, profile) };
    },
    async lines(given) {
      const { profile, weighed } = await opened(given);
      return profile.lines(weighed, given.file);
    },
    async instructions(given) {
      const { profile, weighed } = await opened(given);
      const of = (name: string) => store.table(`${given.selection.capture}/${name}/${given.frame}`);
      const [code, samples] = await Promise.all([of("instructions"), of("instruction_samples")]);
      return profile.instructions(weighed, code, samples);
    },
    async files(given) {
      const { profile, weighed } = await opened(given);
      return profile.files(weighed);
    },
    async costTree(given) {
      const { profile, weighed } = await opened(given, "cost");
      return profile.costTree(weighed);
    },
    async difference({ after, before, scales, widths, foldsStartUp }) {
      const sides = await Promise.all([after, before].map(async (given, side) => {
        const { profile, weighed } = await opened(given);
        return { tree: profile.tree(weighed.transforms), own: profile.own(weighed), functions: profile.functions, scale: scales[side] };
      }));
      const made = difference(sides[0], sides[1], widths, foldsStartUp);
      return { flame: made.flame, functions: namesOf(made.functions) };
    },
  };
}

function namesOf({ names, modules, kinds, owned, owners, inlined, hasOwned }: FunctionNames): FunctionNames {
  // Copies: an answer's arrays move to the page.
  return { names, modules, kinds: kinds.slice(), owned: owned.slice(), owners: owners.slice(), inlined: inlined.slice(), hasOwned };
}

/** The tables of a profile that may wait until something needs them. */
type Later = "samples" | "waits" | "amounts" | "scopes" | "cost";

const ALWAYS = ["frames", "modules", "stacks", "threads", "steps"] as const;
const LATER: Record<Later, readonly string[]> = { samples: ["samples"], waits: ["waits"], amounts: ["amounts"], scopes: ["scopes", "scope_names"], cost: ["cost_nodes", "cost_places"] };

/** The tables that a weight and a selection need. */
function neededBy({ weight, selection }: Pick<Weighing, "weight" | "selection">): Later[] {
  const ofWeight: Later[] = hasWaits(weight) ? ["waits"] : weight === "cpu" ? [] : ["amounts"];
  const { capture, loop, states, ...limits } = selection;
  const isLimited = Object.values(limits).some((limit) => limit !== undefined);
  return [...ofWeight, ...(isLimited ? (["samples"] as const) : []), ...(selection.scopes ? (["scopes"] as const) : [])];
}

/**
 * The profiles of the captures that were asked for. Each has the tables that were needed so far, so that the first picture does not wait for all of
 * them. A live recording's tables grow, so its profile is made again.
 */
class Profiles {
  private readonly store: Store;
  private readonly known = new Map<number, { key: string; needs: Set<Later>; catalogue: Catalogue; profile: Profile | undefined }>();

  constructor(store: Store) {
    this.store = store;
  }

  async of(capture: number, states: readonly string[], needs: readonly Later[]): Promise<Profile> {
    let known = this.known.get(capture);
    if (!known) this.known.set(capture, (known = { key: "", needs: new Set(), catalogue: new Catalogue(states), profile: undefined }));
    for (const need of needs) known.needs.add(need);
    // They arrive meanwhile. The query that needs them reports a failure.
    for (const name of ALWAYS) this.store.table(`${capture}/${name}`).catch(() => undefined);
    const sums = await this.sums(capture, known.needs);
    const names = [...ALWAYS, ...[...known.needs].sort().flatMap((need) => LATER[need])];
    const found = await Promise.all(names.map((name) => this.store.table(`${capture}/${name}`)));
    const table = (name: string): Table => found[names.indexOf(name)] ?? { rows: 0, columns: {} };
    const tables: ProfileTables = {
      frames: table("frames"), modules: table("modules"), stacks: table("stacks"), threads: table("threads"), samples: table("samples"), sums, amounts: table("amounts"), waits: table("waits"),
      steps: table("steps"), scopes: table("scopes"), scopeNames: table("scope_names"), costNodes: table("cost_nodes"), costPlaces: table("cost_places"),
    };
    const key = `${names} ${found.map(({ rows }) => rows)}`;
    if (known.profile && known.key === key) return known.profile;
    // A recording that starts again has fewer frames than it had.
    if (tables.frames.rows < known.catalogue.functions.ofFrame.length) known.catalogue = new Catalogue(states);
    known.profile = new Profile(tables, known.catalogue);
    known.key = key;
    return known.profile;
  }

  /** The samples by stack, which are enough to weigh the whole recording. Captures without many samples have none, and need `samples`. */
  private async sums(capture: number, needs: Set<Later>): Promise<Table> {
    const none = this.store.isGrowing(`${capture}/samples`) || needs.has("samples");
    const sums: Table = none ? { rows: 0, columns: {} } : await this.store.table(`${capture}/sums`);
    if (sums.rows === 0) needs.add("samples");
    return sums;
  }
}
