// What the panes of stacks ask of the worker: what is weighed, and the functions that answers name by index.

import { computed } from "@preact/signals";
import { useRef } from "preact/hooks";
import { weightOf } from "../../profile/capture.ts";
import type { FunctionNames, Weighing } from "../../worker/flame.ts";
import type { Answer, Arguments } from "../../worker/queries.ts";
import { useAnswer } from "../answers.ts";
import { entry, selected, transforms, weight } from "../state.ts";

/** What the shown weight is: of the address, as far as the capture has it. */
export const weighed = computed(() => weightOf(weight.value, entry.value ?? { events: [], event: 0 }));

/** A state of waits in words. */
function stateTitle(state: string): string {
  if (state === "preempted") return "waiting for a CPU";
  return state === "no_stack" ? "blocked, no stack" : `blocked: ${state.replaceAll("_", " ")}`;
}

/** What the panes weigh. */
export const weighing = computed<Weighing>(() => {
  const { weight, event } = weighed.value;
  return { selection: selected.value, weight, event, transforms: transforms.value, states: (entry.value?.states ?? []).map(stateTitle) };
});

/** An answer with the functions that it names. While a new one is made, the one before stays. */
export interface Named<T> {
  answer: T | undefined;
  functions: FunctionNames | undefined;
  failure: string | undefined;
  loading: boolean;
}

type NamedQuery = "flame" | "functionTable" | "sandwich";

/** Asks for something that names functions by index; the functions come with it. */
export function useNamed<Name extends NamedQuery>(name: Name, given: Arguments<Name>): Named<Answer<Name>> {
  const { answer, failure, loading } = useAnswer(name, given);
  const count = answer?.functionCount ?? 0;
  const named = useAnswer("functions", answer && { capture: answer.capture, states: given.states, count });
  const fitting = useRef<{ answer: Answer<Name>; functions: FunctionNames }>();
  const functions = named.answer;
  if (answer && functions && functions.capture === answer.capture && functions.names.length >= count) fitting.current = { answer, functions };
  return { answer: fitting.current?.answer, functions: fitting.current?.functions, failure: failure ?? named.failure, loading: loading || named.loading };
}

/** The indices of the functions with a name. */
export function indexOf(functions: FunctionNames, name: string): number {
  return functions.names.indexOf(name);
}
