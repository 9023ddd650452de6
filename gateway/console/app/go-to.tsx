import { useEffect, useState } from "preact/hooks";
import { toast } from "./kit/toast.tsx";
import type { Palette } from "./palette.tsx";

/** The button that opens the palette, which Ctrl and K open too. Its code is loaded then. */
export function GoTo() {
  const [Shown, setShown] = useState<{ Palette: typeof Palette } | null>(null);
  const open = () =>
    import("./palette.tsx").then(setShown, () => toast("It could not be loaded. Try again."));
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      // A dialog that is open is not left.
      if (!document.querySelector("dialog[open]")) open();
    };
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, []);
  return (
    <>
      <button type="button" class="go-to" aria-keyshortcuts="Control+K" onClick={open}>
        <span>Go to…</span>
        <kbd>Ctrl K</kbd>
      </button>
      {Shown && <Shown.Palette onClose={() => setShown(null)} />}
    </>
  );
}
