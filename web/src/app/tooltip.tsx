// Definitions on hover and focus: of any element with `data-tip`. The text is also its description for screen readers.

import { signal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";

interface Tip {
  text: string;
  anchor: DOMRect;
  target: HTMLElement;
}

const shown = signal<Tip | undefined>(undefined);
const DELAY = 250;

export function Tooltip() {
  const element = useRef<HTMLDivElement>(null);
  // Before the first paint: an element may have the focus already then.
  useLayoutEffect(follow, []);
  const tip = shown.value;
  useLayoutEffect(() => {
    const box = element.current;
    if (!box || !tip) return;
    const { width, height } = box.getBoundingClientRect();
    const left = Math.min(Math.max(6, tip.anchor.left), innerWidth - width - 6);
    const below = tip.anchor.bottom + 6;
    box.style.left = `${left}px`;
    box.style.top = `${below + height > innerHeight ? Math.max(4, tip.anchor.top - height - 6) : below}px`;
  }, [tip]);
  if (!tip) return null;
  return (
    <div class="tooltip" role="tooltip" ref={element}>
      {tip.text}
    </div>
  );
}

/** Hides what is shown at the pointer when Escape is pressed, wherever the focus is. `hide` must be the same one in each rendering. */
export function useEscape(hide: () => void): void {
  useLayoutEffect(() => {
    const onKey = (event: KeyboardEvent) => event.key === "Escape" && hide();
    document.addEventListener("keydown", onKey, true);
    return () => document.removeEventListener("keydown", onKey, true);
  }, [hide]);
}

function follow(): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const show = (event: Event) => {
    clearTimeout(timer);
    const target = event.target instanceof Element ? event.target.closest<HTMLElement>("[data-tip]") : null;
    const text = target?.dataset["tip"];
    if (!target || !text) return void (shown.value = undefined);
    const open = () => (shown.value = { text, anchor: target.getBoundingClientRect(), target });
    // The focus is shown at once when the keyboard moves it.
    if (event.type === "focusin") open();
    else timer = setTimeout(open, shown.value ? 0 : DELAY);
  };
  const hide = () => {
    clearTimeout(timer);
    shown.value = undefined;
  };
  // An element that gets the focus may be scrolled to, so its definition goes with it.
  const onScroll = () => {
    const tip = shown.value;
    if (!tip?.target.contains(document.activeElement)) return hide();
    const anchor = tip.target.getBoundingClientRect();
    if (anchor.bottom < 0 || anchor.top > innerHeight) return hide();
    shown.value = { ...tip, anchor };
  };
  const onKey = (event: KeyboardEvent) => {
    if (event.key === "Escape") hide();
  };
  const listened: [string, (event: never) => void][] = [
    ["pointerover", show],
    ["focusin", show],
    ["focusout", hide],
    ["pointerdown", hide],
    ["scroll", onScroll],
    ["keydown", onKey],
  ];
  for (const [name, listener] of listened) document.addEventListener(name, listener as EventListener, true);
  return () => {
    for (const [name, listener] of listened) document.removeEventListener(name, listener as EventListener, true);
  };
}
