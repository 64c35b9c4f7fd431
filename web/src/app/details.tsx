// The details panel: of the chosen interval, else of the chosen function, else of the selection.

import { FunctionDetails } from "./flame/details.tsx";
import { at, chosenFunction } from "./state.ts";
import { SelectionDetails } from "./strip/details.tsx";
import { IntervalDetails } from "./timeline/details.tsx";

export function Details() {
  return (
    <>
      {at.value && <IntervalDetails {...at.value} />}
      {chosenFunction.value && <FunctionDetails name={chosenFunction.value} />}
      <SelectionDetails />
      {!at.value && !chosenFunction.value && <p class="soft on-screen">Click a frame, a function or an interval: its details are shown here.</p>}
    </>
  );
}
