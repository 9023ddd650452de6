// Tells gateways which keys have changed, within a second, so that a deleted key is refused at once. It looks at the store often,
// because other replicas change keys too.

import { ErrorReason, RefusalError, refuse, unavailable } from "#kit/base/errors.ts";
import type { Clock } from "#kit/time/clock.ts";
import type { AuthEvents } from "./events.ts";
import {
  heartbeatMs,
  maxChangesPerMessage,
  maxPollSilenceMs,
  maxWatchers,
  pollMs,
} from "./limits.ts";
import type { AuthStore, KeyChanges } from "./store.ts";

/** The key changes of a store. One poller reads them for all watchers. */
export interface KeyChangeFeed extends AsyncDisposable {
  /** Begins to poll. Rejects where the store does not answer. */
  start(): Promise<void>;
  /**
   * Sends changes after `since` (0: from now) and heartbeats without key ids. The first message comes at once. It ends when `signal` aborts
   * or the feed ends its watches. A heartbeat means that the store answered. While the store is away, no message is sent. Refuses with
   * WATCH_RESET where a change may be missing, and with SERVICE_UNAVAILABLE above 1,000 watchers.
   */
  watch(since: bigint, signal: AbortSignal): AsyncIterable<KeyChanges>;
  /** Ends the open watches. Their clients come back, to another replica where this one is ending. */
  endWatches(): void;
  /** Milliseconds since the store last answered. */
  silentMs(): number;
}

/** Is the feed too far behind to be useful? */
export function isStale(feed: KeyChangeFeed): boolean {
  return feed.silentMs() > maxPollSilenceMs;
}

/** Makes a feed that has not started. */
export function createKeyChangeFeed(deps: {
  store: AuthStore;
  clock: Clock;
  events: AuthEvents;
}): KeyChangeFeed {
  const { store, clock, events } = deps;
  const life = new AbortController();
  const watchers = new Set<Watcher>();
  let revision = 0n;
  let seenAtMs = clock.steady();
  let polling: Promise<void> | undefined;

  const look = async () => {
    const changes = await store.changesSince(revision, maxChangesPerMessage);
    const isSame = changes?.revision === revision && changes.keyIds.length === 0;
    if (isSame) return beatWhereDue();
    // Also undefined where the revision is lower than before, because a backup was restored.
    revision = changes?.revision ?? (await store.revision());
    for (const watcher of watchers) {
      if (changes) watcher.push(changes, clock.steady());
      else watcher.reset();
    }
  };
  const beatWhereDue = () => {
    for (const watcher of watchers) {
      // The next poll would be too late for the heartbeat.
      const dueMs = clock.steady() - watcher.toldAtMs() + pollMs > heartbeatMs;
      if (dueMs) watcher.push({ revision, keyIds: [] }, clock.steady());
    }
  };
  return {
    async start() {
      revision = await store.revision();
      seenAtMs = clock.steady();
      polling = poll(deps, life.signal, async () => {
        await look();
        seenAtMs = clock.steady();
      });
    },
    async *watch(since, signal) {
      if (watchers.size >= maxWatchers) {
        throw unavailable();
      }
      const watcher = createWatcher(maxChangesPerMessage, clock.steady());
      // The watcher is added before the store is read, so that the poller sends it all changes that are made meanwhile.
      watchers.add(watcher);
      events.watchersChanged(watchers.size);
      const end = () => watcher.end();
      signal.addEventListener("abort", end, { once: true });
      if (signal.aborted || life.signal.aborted) end();
      try {
        watcher.push(await firstOf(store, since), clock.steady());
        yield* watcher.messages();
      } finally {
        signal.removeEventListener("abort", end);
        watchers.delete(watcher);
        events.watchersChanged(watchers.size);
      }
    },
    endWatches() {
      for (const watcher of watchers) watcher.end();
    },
    silentMs: () => clock.steady() - seenAtMs,
    async [Symbol.asyncDispose]() {
      life.abort();
      for (const watcher of watchers) watcher.end();
      await polling;
    },
  };
}

/** Polls until `signal` aborts. A failed look is reported, and the next follows. */
async function poll(
  { clock, events }: { clock: Clock; events: AuthEvents },
  signal: AbortSignal,
  look: () => Promise<void>,
): Promise<void> {
  let failures = 0;
  for (;;) {
    await clock.sleep(pollMs, signal).catch(() => {});
    if (signal.aborted) return;
    try {
      await look();
      if (failures > 0) events.pollRecovered();
      failures = 0;
    } catch (error) {
      failures += 1;
      events.pollFailed(error, failures);
    }
  }
}

async function firstOf(store: AuthStore, since: bigint): Promise<KeyChanges> {
  if (since === 0n) return { revision: await store.revision(), keyIds: [] };
  const changes = await store.changesSince(since, maxChangesPerMessage);
  return changes ?? refuse(ErrorReason.WATCH_RESET);
}

/** One watch. Its unsent changes are merged into one message, so that a slow reader costs a bounded set. */
interface Watcher {
  /** Adds to the next message. Where that has too many keys, the watch ends with WATCH_RESET. */
  push(changes: KeyChanges, nowMs: number): void;
  /** Ends the watch with WATCH_RESET, because the store's history has changed. */
  reset(): void;
  /** Ends the watch without an error. */
  end(): void;
  /** The time of the last message to the reader. */
  toldAtMs(): number;
  /** The messages, for one reader. */
  messages(): AsyncIterable<KeyChanges>;
}

/** Makes a watch without a message since `nowMs`. */
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
