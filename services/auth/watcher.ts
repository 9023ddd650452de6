import { ErrorReason, RefusalError } from "#kit/errors.ts";
import type { KeyChanges } from "./store.ts";

/** One watch: what it has still to be told, merged into one message, so that a slow reader costs a bounded set. */
export interface Watcher {
  /** Adds to the next message. Above the bound of changed keys the watch ends with WATCH_RESET. */
  push(changes: KeyChanges, nowMs: number): void;
  /** Ends it with WATCH_RESET: the store's history is not what it was. */
  reset(): void;
  /** Ends it in good order. */
  end(): void;
  /** When something was last put before the reader. */
  toldAtMs(): number;
  /** The messages, for one reader. */
  messages(): AsyncIterable<KeyChanges>;
}

/** Makes a watch that has been told nothing since `nowMs`. */
export function createWatcher(maxKeyIds: number, nowMs: number): Watcher {
  let next: { revision: bigint; keyIds: Set<string> } | undefined;
  let ended: "open" | "ended" | "reset" = "open";
  let toldAtMs = nowMs;
  let wake = Promise.withResolvers<void>();
  const finish = (how: "ended" | "reset") => {
    if (ended === "open") ended = how;
    wake.resolve();
  };
  return {
    push(changes, atMs) {
      const keyIds = next?.keyIds ?? new Set();
      for (const keyId of changes.keyIds) keyIds.add(keyId);
      if (keyIds.size > maxKeyIds) return finish("reset");
      const before = next?.revision ?? 0n;
      next = { revision: before > changes.revision ? before : changes.revision, keyIds };
      toldAtMs = atMs;
      wake.resolve();
    },
    reset: () => finish("reset"),
    end: () => finish("ended"),
    toldAtMs: () => toldAtMs,
    async *messages() {
      for (;;) {
        await wake.promise;
        wake = Promise.withResolvers();
        if (ended === "reset") throw new RefusalError(ErrorReason.WATCH_RESET);
        if (ended === "ended") return;
        const message = next;
        next = undefined;
        if (message) yield { revision: message.revision, keyIds: [...message.keyIds] };
      }
    },
  };
}
