// Dark or light: as the system says, or as the reader chose. The choice is of the reader, so links do not hold it.

import { effect, signal } from "@preact/signals";

export const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

const KEY = "stepscope-theme";

export const theme = signal<Theme>(stored());
/** The theme that is shown. Renderers read their colours again when it changes. */
export const isDark = signal(false);

function stored(): Theme {
  try {
    return THEMES.find((theme) => theme === localStorage.getItem(KEY)) ?? "system";
  } catch {
    return "system";
  }
}

export function cycleTheme(): void {
  theme.value = THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length];
}

/** Keeps the page in the chosen theme. */
export function followTheme(): void {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const apply = () => {
    const dark = theme.value === "dark" || (theme.value === "system" && system.matches);
    document.documentElement.dataset["theme"] = dark ? "dark" : "light";
    isDark.value = dark;
  };
  system.addEventListener("change", apply);
  // Pictures are not drawn again for paper: those in dark colours are inverted there.
  addEventListener("beforeprint", () => {
    document.documentElement.classList.toggle("drawn-dark", isDark.value);
    document.documentElement.dataset["theme"] = "light";
  });
  addEventListener("afterprint", apply);
  effect(() => {
    apply();
    try {
      localStorage.setItem(KEY, theme.value);
    } catch {
      // A page without storage forgets the choice.
    }
  });
}
