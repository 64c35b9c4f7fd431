// Takes steps and times out of the selection; threads, scopes and the like stay.

import { clearSelection, select, selection } from "../state.ts";

export function clearSteps(): void {
  const { threads, processes, scopes, states } = selection.peek();
  if (threads || processes || scopes || states) select({ steps: undefined, stepClass: undefined, stepTime: undefined, from: undefined, to: undefined });
  else clearSelection();
}
