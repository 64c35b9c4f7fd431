// The menu of a frame or function: transforms and the like.

import { useEffect, useRef } from "preact/hooks";
import { pathName } from "../../profile/transforms.ts";
import type { FunctionNames } from "../../worker/flame.ts";
import { go, transform } from "../state.ts";
import { exactly } from "../../search.ts";

export interface MenuItem {
  title: string;
  run(): void;
}

/** What can be done with a function. `path` is the hash of the call path to it, where there is one. */
export function functionItems(functions: FunctionNames, index: number, path?: number): MenuItem[] {
  const name = functions.names[index];
  const module = functions.modules[index];
  const items: (MenuItem | false)[] = [
    { title: "Show only this function and its callees", run: () => transform({ kind: "focus", name }) },
    path !== undefined && { title: "Show only this call path", run: () => transform({ kind: "path", name: pathName(path, name) }) },
    { title: "Leave out stacks with this function", run: () => transform({ kind: "drop", name }) },
    { title: "Merge into callers", run: () => transform({ kind: "merge", name }) },
    { title: "Collapse its recursion", run: () => transform({ kind: "recursion", name }) },
    module !== "" && { title: `Collapse ${short(module)}`, run: () => transform({ kind: "collapse", name: module }) },
    { title: "Search for it", run: () => go({ search: exactly(name) }) },
    { title: "Callers and callees", run: () => go({ function: name, pane: "functions" }) },
    { title: "Source", run: () => go({ function: name, pane: "source", source: undefined }) },
    { title: "Copy its name", run: () => void copy(name) },
  ];
  return items.filter((item) => item !== false);
}

function short(text: string): string {
  return text.length > 40 ? `${text.slice(0, 39)}…` : text;
}

/** Copies a text; without the right to, by a selection of it, which pages from files have. */
export async function copy(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    area.style.position = "fixed";
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}

/** A menu at a point of the window. Arrow keys move, Enter chooses, Escape closes. */
export function Menu({ x, y, label, items, close }: { x: number; y: number; label: string; items: MenuItem[]; close: () => void }) {
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    list.current?.querySelector<HTMLElement>("[role=menuitem]")?.focus();
    const outside = (event: PointerEvent) => {
      if (!list.current?.contains(event.target as Node)) close();
    };
    addEventListener("pointerdown", outside, true);
    addEventListener("blur", close);
    return () => {
      removeEventListener("pointerdown", outside, true);
      removeEventListener("blur", close);
      before?.focus();
    };
  }, []);
  useEffect(() => {
    const menu = list.current!;
    menu.style.left = `${Math.max(4, Math.min(x, innerWidth - menu.offsetWidth - 4))}px`;
    menu.style.top = `${Math.max(4, Math.min(y, innerHeight - menu.offsetHeight - 4))}px`;
  }, [x, y]);
  const onKey = (event: KeyboardEvent) => {
    const entries = [...list.current!.querySelectorAll<HTMLElement>("[role=menuitem]")];
    const at = entries.indexOf(document.activeElement as HTMLElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: entries.length - 1 }[event.key];
    if (to !== undefined) entries[(to + entries.length) % entries.length].focus();
    else if (event.key === "Escape" || event.key === "Tab") close();
    else if (event.key !== "Enter" && event.key !== " ") return;
    if (event.key === "Enter" || event.key === " ") (document.activeElement as HTMLElement).click();
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div class="menu" role="menu" aria-label={label} ref={list} onKeyDown={onKey} onContextMenu={(event) => event.preventDefault()}>
      {items.map(({ title, run }) => (
        <button key={title} role="menuitem" tabIndex={-1} onClick={() => (close(), run())}>
          {title}
        </button>
      ))}
    </div>
  );
}
