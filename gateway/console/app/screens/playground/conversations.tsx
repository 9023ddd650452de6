// The list of earlier conversations, beside a chat.

import { useEffect } from "preact/hooks";
import { isKeeping, setKeeping } from "../../browser-store.ts";
import { Checkbox } from "../../kit/form.tsx";
import { When } from "../../kit/values.tsx";
import { beginAnother, chat, reopen } from "./chat-turns.ts";
import { keptConversations, loadConversations, modelOf, titleOf } from "./kept-conversations.ts";

/** Loads the browser's conversations, and shows the newest in a page that has none yet. */
export function useConversations(): { isLoading: boolean } {
  const isLoading = keptConversations.value === undefined;
  useEffect(() => {
    if (!isLoading) return;
    void loadConversations().then(() => {
      const newest = keptConversations.value?.[0];
      if (newest && chat.turns.value.length === 0) reopen(newest);
    });
  }, []);
  return { isLoading };
}

/** Earlier conversations of this key, which only this browser has. */
export function Conversations() {
  const kept = keptConversations.value ?? [];
  return (
    <section class="card stack options" aria-label="Conversations">
      <Checkbox
        label="Keep conversations in this browser"
        checked={isKeeping.value}
        onChecked={async (isOn) => {
          await setKeeping(isOn);
          await loadConversations();
        }}
      />
      <p class="fine muted">
        They are kept here alone, until you sign out. Without this, nothing is kept.
      </p>
      {chat.turns.value.length > 0 && isKeeping.value && (
        <div>
          <button type="button" class="small" onClick={beginAnother}>
            New conversation
          </button>
        </div>
      )}
      {kept.length > 0 && (
        <ul class="list earlier">
          {kept.map((one) => (
            <li key={one.id}>
              <button
                type="button"
                class="link"
                aria-current={chat.isShown(one.id) ? "true" : undefined}
                onClick={() => reopen(one)}
              >
                {titleOf(one)}
              </button>
              <p class="sub">
                {modelOf(one)} <When at={new Date(one.at).toISOString()} style="ago" />
              </p>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
