// What opens over the screen: the palette and the help. Only one at a time.

import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { Help } from "./help.tsx";
import { Palette } from "./palette.tsx";

const open = signal<"palette" | "help" | undefined>(undefined);

export function openPalette(): void {
  open.value = "palette";
}

export function openHelp(): void {
  open.value = "help";
}

/** Closes what is open, and gives the focus back to what had it. */
export function close(): void {
  open.value = undefined;
}

export function Overlay() {
  const dialog = useRef<HTMLDialogElement>(null);
  const shown = open.value;
  useEffect(() => {
    if (shown) dialog.current?.showModal();
  }, [shown]);
  if (!shown) return null;
  return (
    <dialog
      ref={dialog}
      class={shown}
      aria-label={shown === "palette" ? "Command palette" : "Keys and help"}
      onClose={close}
      onClick={(event) => event.target === dialog.current && dialog.current?.close()}
    >
      {shown === "palette" ? <Palette close={() => dialog.current?.close()} /> : <Help close={() => dialog.current?.close()} />}
    </dialog>
  );
}
