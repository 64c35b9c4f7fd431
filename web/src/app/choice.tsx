// What can be selected by name: processes, threads, scopes, states. Ranges of time and steps are dragged.

import { texts } from "../profile/columns.ts";
import { threadNames } from "../profile/lanes.ts";
import { useTable } from "./answers.ts";
import { entry, go, select, selection } from "./state.ts";

/** Most names of a kind; the palette finds all. */
const MOST = 200;

/** Adds a name to what is selected. */
export function Choice() {
  const [threads, processes, scopes] = [useTable("threads"), useTable("processes"), useTable("scope_names")];
  const names = {
    Process: processes ? texts(processes, "label") : [],
    Thread: threads ? threadNames(threads) : [],
    Scope: scopes ? texts(scopes, "name") : [],
    State: entry.value?.states ?? [],
  };
  // Of a single one there is nothing to choose.
  const offered = Object.entries(names).filter(([kind, { length }]) => length > (kind === "Scope" || kind === "State" ? 0 : 1));
  if (offered.length === 0) return null;
  const choose = (event: preact.TargetedEvent<HTMLSelectElement>) => {
    const [kind, row] = event.currentTarget.value.split(" ");
    event.currentTarget.value = "";
    add(kind as keyof typeof names, Number(row), names.Scope);
  };
  return (
    <select class="choice" aria-label="Select by name" title="Select a process, a thread, a scope or a state" value="" onChange={choose}>
      <option value="" disabled hidden>
        Only …
      </option>
      {offered.map(([kind, of]) => (
        <optgroup key={kind} label={kind === "State" ? "State of waits" : kind}>
          {of.slice(0, MOST).map((name, row) => (
            <option key={row} value={`${kind} ${row}`}>
              {name}
            </option>
          ))}
        </optgroup>
      ))}
    </select>
  );
}

function add(kind: "Process" | "Thread" | "Scope" | "State", row: number, scopes: string[]): void {
  const { processes = [], threads = [], scopes: chosen = [], states = [] } = selection.peek();
  const joined = <T,>(list: T[], one: T) => [...list.filter((other) => other !== one), one];
  if (kind === "Process") select({ processes: joined(processes, row) });
  if (kind === "Thread") select({ threads: joined(threads, row) });
  if (kind === "Scope") select({ scopes: joined(chosen, scopes[row]) });
  // Only waits have states.
  if (kind === "State") go({ weight: "offcpu", selection: { ...selection.peek(), states: joined(states, row) } });
}
