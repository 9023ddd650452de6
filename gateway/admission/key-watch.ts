// Follows auth's changes of keys, so that `key-cache.ts` may use what it remembers, and forgets it where changes may be missing.

import type { Client } from "@connectrpc/connect";
import { untilAborted } from "#kit/base/abort.ts";
import { ErrorReason, isRefusal } from "#kit/base/errors.ts";
import type { Clock } from "#kit/time/clock.ts";
import type { AuthService, WatchKeysResponse } from "#proto/genmesh/auth/v1/auth_service_pb.ts";
import type { AdmissionEvents, WatchEnd } from "./events.ts";
import type { AdmissionLimits } from "./limits.ts";

/** The cache's functions for changes of keys. */
interface KeyWatchListener {
  /** The history has a gap here, so all earlier knowledge is invalid. */
  forget(): void;
  changed(keyIds: readonly string[]): void;
}

/** A watch of auth's key changes, which begins again where it breaks. */
export interface KeyWatch extends AsyncDisposable {
  /** Resolves when auth sent its first message. */
  readonly heard: Promise<void>;
  /** The number of gapless histories that have begun. 0: auth never sent a message. */
  epoch(): number;
  /** The store's revision up to which all changes have come. */
  revision(): bigint;
  /** Did a message of auth come within the bound, so that cached keys may be used? */
  inForce(): boolean;
}

/** Begins to watch. */
export function watchKeys(deps: {
  auth: Client<typeof AuthService>;
  clock: Clock;
  limits: AdmissionLimits;
  events: AdmissionEvents;
  listener: KeyWatchListener;
}): KeyWatch {
  const { clock, limits, events, listener } = deps;
  const life = new AbortController();
  const heard = Promise.withResolvers<void>();
  let epoch = 0;
  // Watches in a row that ended before any message.
  let silentWatches = 0;
  let heardAtMs = Number.NEGATIVE_INFINITY;
  // 0 asks for changes from now on, which makes earlier knowledge invalid.
  let revision = 0n;

  const hear = (message: WatchKeysResponse) => {
    if (revision === 0n) {
      epoch += 1;
      listener.forget();
    } else {
      listener.changed(message.changedKeyIds);
    }
    revision = message.revision;
    heardAtMs = clock.steady();
    heard.resolve();
  };
  const forget = () => {
    revision = 0n;
    // No key is cached until a new history begins, so each key costs a call meanwhile.
    heardAtMs = Number.NEGATIVE_INFINITY;
    listener.forget();
  };
  const follow = async (): Promise<void> => {
    const begunAtMs = clock.steady();
    const lastHeardAtMs = () => Math.max(begunAtMs, heardAtMs);
    const { how, cause } = await listen(deps, revision, life.signal, hear, lastHeardAtMs);
    if (how === "reset") forget();
    if (life.signal.aborted) return;
    silentWatches = heardAtMs >= begunAtMs ? 0 : silentWatches + 1;
    events.watchEnded(how, silentWatches, cause);
  };
  const run = async () => {
    while (!life.signal.aborted) {
      await follow();
      const pauseMs = limits.minReconnectMs * 2 ** silentWatches;
      await clock.sleep(Math.min(pauseMs, limits.maxReconnectMs), life.signal).catch(() => {});
    }
  };
  const running = run();
  return {
    heard: heard.promise,
    epoch: () => epoch,
    revision: () => revision,
    inForce: () => clock.steady() - heardAtMs <= limits.maxSilenceMs,
    async [Symbol.asyncDispose]() {
      life.abort();
      await running;
    },
  };
}

/** One watch, to its end. */
async function listen(
  deps: { auth: Client<typeof AuthService>; clock: Clock; limits: AdmissionLimits },
  sinceRevision: bigint,
  life: AbortSignal,
  hear: (message: WatchKeysResponse) => void,
  lastHeardAtMs: () => number,
): Promise<{ how: WatchEnd; cause?: unknown }> {
  const stop = new AbortController();
  const signal = AbortSignal.any([life, stop.signal]);
  const guard = abortWhenSilent(deps.clock, stop, deps.limits.watchSilenceMs, lastHeardAtMs);
  try {
    const messages = deps.auth.watchKeys({ sinceRevision }, { signal })[Symbol.asyncIterator]();
    for (;;) {
      const next = await untilAborted(messages.next(), signal);
      if (next.done) return { how: "ended" };
      hear(next.value);
    }
  } catch (error) {
    if (stop.signal.aborted) return { how: "silent" };
    if (isRefusal(error, ErrorReason.WATCH_RESET)) return { how: "reset" };
    return { how: "failed", cause: error };
  } finally {
    stop.abort();
    await guard;
  }
}

/** Aborts `stop` after `silenceMs` without a message: a connection can die silently. */
async function abortWhenSilent(
  clock: Clock,
  stop: AbortController,
  silenceMs: number,
  lastHeardAtMs: () => number,
): Promise<void> {
  while (!stop.signal.aborted) {
    const leftMs = lastHeardAtMs() + silenceMs - clock.steady();
    if (leftMs <= 0) stop.abort();
    else await clock.sleep(leftMs, stop.signal).catch(() => {});
  }
}
