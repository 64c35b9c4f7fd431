// The command palette: type a few letters, press Enter.

import { useEffect, useState } from "preact/hooks";
import { find, type Command } from "./commands.ts";
import { Keys } from "./help.tsx";

/** Entries that are listed; typing more narrows them. */
const LISTED = 60;

export function Palette({ close }: { close: () => void }) {
  const [typed, setTyped] = useState("");
  const [found, setFound] = useState<Command[]>([]);
  const [chosen, setChosen] = useState(0);
  useEffect(() => {
    let isOld = false;
    setChosen(0);
    find(typed, (all) => isOld || setFound(all.slice(0, LISTED)));
    return () => {
      isOld = true;
    };
  }, [typed]);
  useEffect(() => document.getElementById(`command-${chosen}`)?.scrollIntoView({ block: "nearest" }), [chosen, found]);

  const run = (command: Command | undefined) => {
    if (!command) return;
    close();
    command.run();
  };
  const onKey = (event: KeyboardEvent) => {
    const by = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (by !== 0) {
      event.preventDefault();
      setChosen((chosen + by + found.length) % Math.max(1, found.length));
    } else if (event.key === "Enter") {
      event.preventDefault();
      run(found[chosen]);
    }
  };
  return (
    <>
      <input
        type="text"
        role="combobox"
        aria-label="Command"
        aria-expanded="true"
        aria-controls="commands"
        aria-activedescendant={found.length > 0 ? `command-${chosen}` : undefined}
        aria-autocomplete="list"
        placeholder="Go to a screen, capture, function, table or step; run a command"
        autocomplete="off"
        spellcheck={false}
        value={typed}
        onInput={(event) => setTyped(event.currentTarget.value)}
        onKeyDown={onKey}
        autofocus
      />
      <ul id="commands" role="listbox" aria-label="Commands">
        {found.map((command, index) => (
          <li
            key={index}
            id={`command-${index}`}
            role="option"
            aria-selected={index === chosen}
            onPointerMove={() => setChosen(index)}
            onClick={() => run(command)}
          >
            <span class="group">{command.group}</span>
            <span class="title">{command.title}</span>
            {command.detail && <span class="detail">{command.detail}</span>}
            {command.keys?.[0] && <Keys keys={command.keys[0]} />}
          </li>
        ))}
      </ul>
      {found.length === 0 && <p class="empty">Nothing matches.</p>}
    </>
  );
}
