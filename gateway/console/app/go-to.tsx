// Opens the palette, whose code is loaded only then. `palette.tsx` is what opens.

import { useLayoutEffect, useState } from "preact/hooks";
import { toast } from "./kit/toast.tsx";
import type { Palette } from "./palette.tsx";

/** Opens the palette, which Ctrl and K open too. Its code is loaded then. The palette is null while it is closed. */
export function usePalette() {
  const [Shown, setShown] = useState<{ Palette: typeof Palette } | null>(null);
  const open = () =>
    import("./palette.tsx").then(setShown, () => toast("It could not be loaded. Try again."));
  // Before the screen is painted, so that the first key press counts.
  useLayoutEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      // A dialog that is open is not left.
      if (!document.querySelector("dialog[open]")) open();
    };
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, []);
  return { open, palette: Shown && <Shown.Palette onClose={() => setShown(null)} /> };
}

/** The button that opens the palette. */
export function GoTo({ onOpen }: { onOpen(): void }) {
  return (
    <button type="button" class="go-to" aria-keyshortcuts="Control+K" onClick={onOpen}>
      <span>Go to…</span>
      <kbd>Ctrl K</kbd>
    </button>
  );
}
