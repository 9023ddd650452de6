import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { Markdown } from "./markdown.tsx";

/** The code of Markdown, which comes with the first answer. Undefined before that, and where it cannot be loaded. */
const loaded = signal<typeof Markdown | undefined>(undefined);
let loading: Promise<void> | undefined;

function load(): void {
  loading ??= import("./markdown.tsx").then(
    (module) => {
      loaded.value = module.Markdown;
    },
    () => {
      loading = undefined;
    },
  );
}

/** The text of an answer, formatted. Without the code for that: as it came. */
export function AnswerText({ text }: { text: string }) {
  useEffect(load, []);
  const Formatted = loaded.value;
  return Formatted ? <Formatted text={text} /> : <p class="prompt">{text}</p>;
}
