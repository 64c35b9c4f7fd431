// Answers of the worker, for components.

import { useEffect, useRef, useState } from "preact/hooks";
import type { Table } from "../profile/columns.ts";
import type { Answer, Arguments, QueryName } from "../worker/queries.ts";
import { capture, client, entry, grown, manifest } from "./state.ts";

/** An answer that may be on its way. While a new one is, the one before stays. */
export interface Answered<T> {
  answer: T | undefined;
  /** Why there is none. */
  failure: string | undefined;
  loading: boolean;
}

/**
 * Asks the worker whenever the arguments change; `undefined` asks nothing. `version` asks again where the arguments are the
 * same and the data are not, as while a recording is live.
 */
export function useAnswer<Name extends QueryName>(name: Name, given: Arguments<Name> | undefined, version = 0): Answered<Answer<Name>> {
  const [state, setState] = useState<Answered<Answer<Name>>>({ answer: undefined, failure: undefined, loading: given !== undefined });
  const key = given && JSON.stringify(given);
  // Rows of a live recording arrive faster than some answers. So the next question waits for the answer before, which is shown.
  const isLive = manifest.value.live;
  const turn = useRef({ last: 0, shown: 0, ahead: Promise.resolve() });
  useEffect(() => () => void (turn.current.shown = Infinity), []);
  useEffect(() => {
    const number = ++turn.current.last;
    if (given === undefined) {
      turn.current.shown = number;
      return setState({ answer: undefined, failure: undefined, loading: false });
    }
    const show = (answered: Answered<Answer<Name>>) => {
      if (number < turn.current.shown || (!isLive && number < turn.current.last)) return;
      turn.current.shown = number;
      setState({ ...answered, loading: number < turn.current.last });
    };
    const ask = () =>
      client()
        .ask(name, given)
        .then(
          (answer) => show({ answer, failure: undefined, loading: false }),
          (error: Error) => show({ answer: undefined, failure: error.message, loading: false }),
        );
    setState((before) => ({ ...before, loading: true }));
    if (isLive) turn.current.ahead = turn.current.ahead.then(() => (number < turn.current.last ? undefined : ask()));
    else void ask();
  }, [name, key, version, isLive && grown.value]);
  return state;
}

/** A whole table of the shown capture; for small ones such as `threads` and `steps`. */
export function useTable(name: string): Table | undefined {
  return useTableAnswer(name).answer;
}

/** The same, and why it is not there. */
export function useTableAnswer(name: string): Answered<Table> {
  const rows = entry.value?.tables[name] ?? 0;
  return useAnswer("table", rows > 0 ? { capture: capture.value, name } : undefined, rows);
}
