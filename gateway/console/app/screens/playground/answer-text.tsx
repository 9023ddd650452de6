// Shows the text of an answer. The code that formats it is loaded only here.

import { signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { Code } from "../../kit/copy.tsx";
import type { Markdown } from "./markdown.tsx";
import { prettyJson } from "./pretty-json.ts";

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

/** The text of an answer, formatted. Without the code for that: as it came. An answer to a schema is JSON. */
export function AnswerText({ text, isGrowing }: { text: string; isGrowing: boolean }) {
  useEffect(load, []);
  const json = useMemo(() => prettyJson(text), [text]);
  if (json !== undefined) return <Code label="Answer in JSON" text={json} />;
  const Formatted = loaded.value;
  return Formatted ? <Formatted {...{ text, isGrowing }} /> : <p class="prompt">{text}</p>;
}
