// The help: every key, as the commands state them.

import { commands, type Command } from "./commands.ts";
import { Icon } from "./icons.tsx";

export function Help({ close }: { close: () => void }) {
  return (
    <>
      <div class="head">
        <h2>Keys</h2>
        <button onClick={close} aria-label="Close">
          <Icon name="close" />
        </button>
      </div>
      <div class="groups">
        {[...groups()].map(([group, list]) => (
          <section key={group}>
            <h3>{group}</h3>
            <dl>
              {list.map(({ title, keys }) => (
                <div key={title}>
                  <dt>{title}</dt>
                  <dd>
                    <Keys keys={keys![0]} />
                  </dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
    </>
  );
}

function groups(): Map<string, Command[]> {
  const groups = new Map<string, Command[]>();
  for (const command of commands.value) {
    if (!command.keys?.length) continue;
    groups.set(command.group, [...(groups.get(command.group) ?? []), command]);
  }
  return groups;
}

const SIGNS: Record<string, string> = { ArrowLeft: "←", ArrowRight: "→", ArrowUp: "↑", ArrowDown: "↓", Escape: "Esc", " ": "Space" };

/** Keys as caps: `g e` are two presses, `Ctrl+k` is one. */
export function Keys({ keys }: { keys: string }) {
  const presses = keys === " " ? [keys] : keys.split(" ");
  return (
    <>
      {presses.map((press, index) => (
        <kbd key={index}>
          {press
            .split(/(?<=.)\+/)
            .map((key) => SIGNS[key] ?? (key.length === 1 && presses.length === 1 && press.includes("+") ? key.toUpperCase() : key))
            .join(" ")}
        </kbd>
      ))}
    </>
  );
}
