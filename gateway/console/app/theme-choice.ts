// The reader's choice of a light or dark page.

import { signal } from "@preact/signals";

export type Theme = "system" | "light" | "dark";

const root = document.documentElement;

/** The reader's choice. Until then the page follows the system. theme.ts reads the same value before anything is painted. */
export const theme = signal<Theme>((root.dataset.theme as Theme | undefined) ?? "system");

export function chooseTheme(chosen: Theme): void {
  theme.value = chosen;
  if (chosen === "system") {
    localStorage.removeItem("theme");
    delete root.dataset.theme;
  } else {
    localStorage.setItem("theme", chosen);
    root.dataset.theme = chosen;
  }
}
