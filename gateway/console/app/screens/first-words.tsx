// Shows in lists how a request began, from this browser's own store.

import { useEffect } from "preact/hooks";
import { keptConversations, loadConversations } from "./playground/kept-conversations.ts";
import { loadForms, settingsOf } from "./playground/made-jobs.ts";

/** The most characters of a prompt that a row has room for. */
const mostCharacters = 60;

/** Reads from the browser's store what this browser asked. No server knows it. */
export function useFirstWords(): void {
  useEffect(() => {
    void loadForms();
    void loadConversations();
  }, []);
}

/** The first words of a request or job that this browser sent, where it keeps them. */
export function FirstWords({ of: id }: { of: string }) {
  const words = wordsOf(id);
  if (!words) return null;
  const isLong = words.length > mostCharacters;
  return (
    <span class="sub break" title={words}>
      {isLong ? `${words.slice(0, mostCharacters)}…` : words}
    </span>
  );
}

function wordsOf(id: string): string | undefined {
  const settings = settingsOf(id);
  if (settings) return settings.prompt || settings.title;
  const turns = keptConversations.value?.flatMap(({ value }) => value);
  return turns?.find(({ answer }) => answer.id === id)?.text;
}
