// The help: every key, as the commands state them.

import { commands, localKeys } from "./commands.ts";
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
                    {keys.map((keys) => (
                      <Keys key={keys} keys={keys} />
                    ))}
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

interface Listed {
  title: string;
  keys: string[];
}

/** Commands, each with the first of its keys, then the keys of parts that need the focus. */
function groups(): Map<string, Listed[]> {
  const groups = new Map<string, Listed[]>();
  const list = (group: string, listed: Listed) => groups.set(group, [...(groups.get(group) ?? []), listed]);
  for (const { title, group, keys } of commands.value) if (keys?.length) list(group, { title, keys: keys.slice(0, 1) });
  for (const { group, ...listed } of localKeys.value) list(`${group} (has the focus)`, listed);
  return groups;
}

const SIGNS: Record<string, string> = { ArrowLeft: "←", ArrowRight: "→", ArrowUp: "↑", ArrowDown: "↓", Escape: "Esc", PageUp: "Page ↑", PageDown: "Page ↓", ContextMenu: "Menu", " ": "Space" };

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
