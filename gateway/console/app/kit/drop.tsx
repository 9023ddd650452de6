// Takes files that are dropped or pasted. The screen of files and the playground share it.

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

/** The reader may drop files on its content, and paste files anywhere in the page. Null: no files are taken now. */
export function DropArea({
  onFiles,
  class: name = "",
  children,
}: {
  onFiles: ((files: File[]) => void) | null;
  class?: string;
  children: ComponentChildren;
}) {
  const [isOver, setOver] = useState(false);
  const take = useRef(onFiles);
  take.current = onFiles;
  useEffect(() => {
    const paste = (event: ClipboardEvent) => {
      // Word processors copy text together with an image of it.
      if (event.clipboardData?.types.includes("text/plain")) return;
      const files = filesOf(event.clipboardData);
      if (files.length === 0 || !take.current) return;
      event.preventDefault();
      take.current(files);
    };
    document.addEventListener("paste", paste);
    return () => document.removeEventListener("paste", paste);
  }, []);
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: dropping is a shortcut, a button does the same by keyboard.
    <div
      class={`${name} ${isOver ? "drop is-over" : "drop"}`.trim()}
      onDragOver={(event) => {
        if (!onFiles || !event.dataTransfer?.types.includes("Files")) return;
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        setOver(false);
        const files = filesOf(event.dataTransfer);
        if (!onFiles || files.length === 0) return;
        event.preventDefault();
        onFiles(files);
      }}
    >
      {children}
    </div>
  );
}

function filesOf(transfer: DataTransfer | null): File[] {
  return [...(transfer?.files ?? [])];
}
