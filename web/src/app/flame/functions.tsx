// The functions of what is selected, with their callers and callees.

import { signal } from "@preact/signals";
import { useMemo, useState } from "preact/hooks";
import { fit, formsOf } from "../../label.ts";
import { counted, percent, weight as quantity } from "../../units.ts";
import type { FunctionNames } from "../../worker/flame.ts";
import { useAnswer } from "../answers.ts";
import { adjust, chosenFunction, functionSort, go, search } from "../state.ts";
import { useNamed, weighed, weighing } from "./asked.ts";
import { WeightChoice } from "./flame.tsx";
import { functionItems, Menu } from "./menu.tsx";
import { clipped, Picture } from "./picture.tsx";
import { Rows, type RowColumn } from "./rows.tsx";
import { hitsOf } from "./search.ts";

type Key = "name" | "self" | "selfShare" | "total" | "totalShare" | "attributed" | "module";

const COLUMNS: RowColumn<Key>[] = [
  { key: "name", title: "function", about: "The function; a dot marks owned code." },
  { key: "self", title: "self", about: "Weight that ends in the function.", isNumber: true, width: 86 },
  { key: "selfShare", title: "%", about: "Self weight, in percent of what is selected.", isNumber: true, width: 62 },
  { key: "total", title: "total", about: "Weight of stacks that hold the function; recursion counts once.", isNumber: true, width: 86 },
  { key: "totalShare", title: "%", about: "Total weight, in percent of what is selected.", isNumber: true, width: 62 },
  { key: "attributed", title: "attributed", about: "Weight of stacks whose nearest owned function, from leaf to root, this is.", isNumber: true, width: 86 },
  { key: "module", title: "module", about: "The file that holds its code.", width: 110 },
];

/** Which part is beside the list: a preference of the reader. */
const isSandwich = signal(false);

export function Functions() {
  const { answer, functions, failure } = useNamed("functionTable", weighing.value);
  const [menu, setMenu] = useState<{ index: number; x: number; y: number }>();
  const hits = useMemo(() => functions && hitsOf(functions.names, search.value), [functions, search.value]);
  const order = useMemo(() => {
    if (!answer || !functions) return [];
    const rows = [...answer.functions.keys()].filter((row) => !hits || hits[answer.functions[row]]);
    const by = functionSort.value;
    if (by === "name" || by === "module") {
      const texts = by === "name" ? functions.names : functions.modules;
      const text = (row: number) => texts[answer.functions[row]];
      return rows.sort((a, b) => (text(a) < text(b) ? -1 : text(a) > text(b) ? 1 : a - b));
    }
    const values = by === "attributed" ? answer.attributed : by.startsWith("total") ? answer.total : answer.self;
    return rows.sort((a, b) => values[b] - values[a] || a - b);
  }, [answer, functions, hits, functionSort.value]);
  if (failure) return <p class="failure">The functions failed: {failure}</p>;
  if (!answer || !functions) return <p class="empty">Adding up.</p>;
  const { unit } = weighed.value;
  const chosen = order.findIndex((row) => functions.names[answer.functions[row]] === chosenFunction.value);
  const share = (weight: number) => percent((weight * 100) / (answer.whole || 1));
  const cell = (at: number, key: Key, room: number) => {
    const row = order[at];
    const of = answer.functions[row];
    switch (key) {
      case "name":
        return <FunctionName functions={functions} index={of} room={room} />;
      case "module":
        return functions.modules[of];
      case "selfShare":
        return share(answer.self[row]);
      case "totalShare":
        return share(answer.total[row]);
      default: {
        const weight = answer[key][row];
        return weight > 0 ? quantity(weight, unit) : "";
      }
    }
  };
  return (
    <div class="functions">
      <div class="pane-bar">
        <WeightChoice />
        <input type="search" placeholder="Search functions" aria-label="Search functions by regular expression" value={search.value} onInput={(event) => adjust({ search: event.currentTarget.value })} />
        <span class="soft">{counted(order.length, "function")}</span>
      </div>
      <div class="halves">
        <Rows
          label="Functions"
          columns={functions.owners.includes(1) ? COLUMNS : COLUMNS.filter(({ key }) => key !== "attributed")}
          count={order.length}
          cell={cell}
          sorted={functionSort.value}
          onSort={(key) => (adjust({ functionSort: key === "selfShare" ? "self" : key === "totalShare" ? "total" : key }))}
          chosen={chosen}
          onChoose={(at) => adjust({ function: functions.names[answer.functions[order[at]]] })}
          onOpen={(at) => go({ function: functions.names[answer.functions[order[at]]], pane: "source", source: undefined })}
          onMenu={(at, x, y) => setMenu({ index: answer.functions[order[at]], x, y })}
          rowTitle={(at) => clipped(functions.names[answer.functions[order[at]]])}
        />
        <Beside functions={functions} />
      </div>
      {menu && <Menu x={menu.x} y={menu.y} label={clipped(functions.names[menu.index])} items={functionItems(functions, menu.index)} close={() => setMenu(undefined)} />}
    </div>
  );
}

/** A function's name, marked if it is owned. */
export function FunctionName({ functions, index, room }: { functions: FunctionNames; index: number; room: number }) {
  return (
    <span class="function-name">
      {functions.owned[index] ? <i class="mine" title="owned" /> : null}
      {fit(formsOf(functions.names[index]), Math.max(12, room)) ?? clipped(functions.names[index])}
    </span>
  );
}

/** Callers and callees of the chosen function, as lists or as two trees. */
function Beside({ functions }: { functions: FunctionNames }) {
  const name = chosenFunction.value;
  if (!name || !functions.names.includes(name)) return <p class="empty">Choose a function to see its callers and callees.</p>;
  return (
    <section class="beside" aria-label="Callers and callees">
      <header>
        <b title={clipped(name)}>{fit(formsOf(name), 34)}</b>
        <button aria-pressed={isSandwich.value} title="All paths to the function, and all below it" onClick={() => (isSandwich.value = !isSandwich.value)}>
          Sandwich
        </button>
      </header>
      {isSandwich.value ? <SandwichTrees name={name} /> : <Neighbours name={name} functions={functions} />}
    </section>
  );
}

function Neighbours({ name, functions }: { name: string; functions: FunctionNames }) {
  const { answer, failure } = useAnswer("neighbours", { ...weighing.value, name });
  if (failure) return <p class="failure">{failure}</p>;
  if (!answer) return null;
  const list = (title: string, { functions: of, weights }: typeof answer.callers) => (
    <section>
      <h4>{title}</h4>
      {of.length === 0 && <p class="soft">None.</p>}
      <table class="plain">
        <tbody>
          {[...of].slice(0, 200).map((index, at) => (
            <tr key={index}>
              <td>
                <button class="link" title={clipped(functions.names[index])} onClick={() => go({ function: functions.names[index] })}>
                  <FunctionName functions={functions} index={index} room={26} />
                </button>
              </td>
              <td class="number">{quantity(weights[at], weighed.value.unit)}</td>
              <td class="number">{percent((weights[at] * 100) / (answer.total || 1))} %</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
  return (
    <div class="neighbours">
      <p class="soft">
        self {quantity(answer.self, weighed.value.unit)}, total {quantity(answer.total, weighed.value.unit)}; shares of the total
      </p>
      {list("Callers", answer.callers)}
      {list("Callees", answer.callees)}
    </div>
  );
}

function SandwichTrees({ name }: { name: string }) {
  const { answer, functions, failure } = useNamed("sandwich", { ...weighing.value, name });
  const hits = useMemo(() => functions && hitsOf(functions.names, search.value), [functions, search.value]);
  const [zooms, setZooms] = useState<[number, number]>([0, 0]);
  if (failure) return <p class="failure">{failure}</p>;
  if (!answer || !functions) return null;
  const half = (title: string, flame: typeof answer.callers, index: 0 | 1) => (
    <>
      <h4>{title}</h4>
      <Picture
        flame={flame}
        functions={functions}
        unit={weighed.value.unit}
        label={`${title} of ${clipped(name)}`}
        colours="kind"
        hits={hits}
        zoom={zooms[index]}
        onZoom={(hash) => setZooms(index === 0 ? [hash, zooms[1]] : [zooms[0], hash])}
        items={(node) => functionItems(functions, flame.functions[node])}
      />
    </>
  );
  return (
    <div class="sandwich">
      {half("Callers", answer.callers, 0)}
      {half("Callees", answer.callees, 1)}
    </div>
  );
}
