// The cost tree of what is selected: what the reader's own code costs, each function with all that it calls.

import { useState } from "preact/hooks";
import { percent, weight as quantity } from "../../units.ts";
import { useAnswer } from "../answers.ts";
import { chosenFunction, go } from "../state.ts";
import { weighed, weighing } from "./asked.ts";
import { WeightChoice } from "./flame.tsx";
import { clipped } from "./picture.tsx";
import { Rows, type RowColumn } from "./rows.tsx";

type Key = "tree" | "cost" | "share" | "own" | "ownShare" | "module";

const COLUMNS: RowColumn<Key>[] = [
  { key: "tree", title: "owned code", about: "The call tree of owned functions. A > … > B is a chain of calls; [family] is code of others that the function above calls." },
  { key: "cost", title: "cost", about: "Cost of the function and all that it calls.", isNumber: true, width: 86 },
  { key: "share", title: "%", about: "The same, in percent of what is selected.", isNumber: true, width: 62 },
  { key: "own", title: "self", about: "Cost without the rows below it.", isNumber: true, width: 86 },
  { key: "ownShare", title: "%", about: "The same, in percent of what is selected.", isNumber: true, width: 62 },
  { key: "module", title: "module", about: "The file that holds the function's code.", width: 140 },
];

export function CostTree() {
  const { answer, failure } = useAnswer("costTree", weighing.value);
  const [chosen, setChosen] = useState(-1);
  if (failure) return <p class="failure">The cost tree failed: {failure}</p>;
  if (!answer) return <p class="empty">Adding up.</p>;
  if (answer.rows.length === 0) return <p class="empty">There is no cost tree of this recording: its stacks are not placed below owned code.</p>;
  const { rows, whole } = answer;
  const { unit } = weighed.value;
  const share = (weight: number) => percent((weight * 100) / (whole || 1));
  const cell = (at: number, key: Key) => {
    const row = rows[at];
    switch (key) {
      case "tree":
        return (
          <span class={`tree-cell ${row.kind}`} style={{ paddingLeft: `${row.indent * 14}px` }}>
            {clipped(row.text)}
          </span>
        );
      case "cost":
        return quantity(row.total, unit);
      case "share":
        return share(row.total);
      case "own":
        return row.own > 0 ? quantity(row.own, unit) : "";
      case "ownShare":
        return row.own > 0 ? share(row.own) : "";
      case "module":
        return row.module;
    }
  };
  const choose = (at: number) => {
    setChosen(at);
    const { function: name } = rows[at];
    if (name) go({ function: name });
  };
  return (
    <div class="functions">
      <div class="pane-bar">
        <WeightChoice />
        <span class="soft">Code that is not owned belongs to its nearest owned caller. Rows below 1 % are added up.</span>
      </div>
      <Rows
        label="Cost tree"
        columns={COLUMNS}
        count={rows.length}
        cell={cell}
        chosen={chosen >= 0 && chosen < rows.length ? chosen : rows.findIndex((row) => row.function !== "" && row.function === chosenFunction.value)}
        onChoose={choose}
        onOpen={(at) => rows[at].function && go({ function: rows[at].function, pane: "flame", transforms: [{ kind: "focus", name: rows[at].function }] })}
        rowTitle={(at) => clipped(rows[at].function || rows[at].text)}
      />
    </div>
  );
}
