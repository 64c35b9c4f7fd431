// What the steps ask of the worker beside their table.

import type { Answer, Arguments } from "../../worker/queries.ts";
import type { Selection } from "../../worker/queries.ts";
import { client, manifest } from "../state.ts";

/** What to ask about the thread of the selected steps; `undefined` where it is not known what threads do at each moment. */
export function threadTimeOf(selection: Selection): Arguments<"threadTime"> | undefined {
  const entry = manifest.value.captures[selection.capture];
  // Of waits that are added up, moments are not known.
  const areSingle = entry?.lanes.switches && (entry.tables["waits"] ?? 0) > 0 && !entry.leftOut.some((sentence) => /waits are added up/.test(sentence));
  return areSingle ? { selection, states: entry.states } : undefined;
}

export async function askThreadTime(selection: Selection): Promise<Answer<"threadTime"> | undefined> {
  const given = threadTimeOf(selection);
  return given && client().ask("threadTime", given).catch(() => undefined);
}
