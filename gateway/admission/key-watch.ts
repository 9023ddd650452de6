import type { Client } from "@connectrpc/connect";
import { untilAborted } from "#kit/base/abort.ts";
import { ErrorReason, isRefusal } from "#kit/base/errors.ts";
import type { Clock } from "#kit/time/clock.ts";
import type { AuthService, WatchKeysResponse } from "#proto/genmesh/auth/v1/auth_service_pb.ts";
import type { AdmissionEvents, WatchEnd } from "./events.ts";
import type { AdmissionLimits } from "./limits.ts";

/** What the cache does about news of keys. */
interface KeyWatchListener {
  /** The history has a gap here: nothing that was learned before counts. */
  forget(): void;
  changed(keyIds: readonly string[]): void;
}

/** A watch of auth's key changes, which is begun anew where it breaks. */
export interface KeyWatch extends AsyncDisposable {
  /** Resolves when auth was heard for the first time. */
  readonly heard: Promise<void>;
  /** How many gapless histories have begun; 0: auth was never heard. */
  epoch(): number;
  /** The store's revision up to which all changes were heard. */
  revision(): bigint;
  /** Was auth heard within the bound, so that what is cached counts? */
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
  // Watches in a row that ended before a word was heard.
  let silentWatches = 0;
  let heardAtMs = Number.NEGATIVE_INFINITY;
  // 0 asks for "from now", so that what was learned before is void.
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
    // Nothing is cached until a new history begins; each key costs a call meanwhile.
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

/** Aborts `stop` when nothing was heard for `silenceMs`: a connection can die without a word. */
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
