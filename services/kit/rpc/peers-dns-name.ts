// Looks up the addresses of a peer's name again and again. `peers-dns.ts` uses each answer.

import type { Logger } from "#kit/base/logger.ts";
import type { Clock } from "#kit/time/clock.ts";

/** Milliseconds between two look-ups. A new pod is used within 5 s, with the 2 s that a resolver may need. */
const resolveIntervalMs = 2_000;
/** Least milliseconds between two look-ups, no matter how many connections fail. */
const minResolveIntervalMs = 250;

/** The parts that following a name needs. */
export interface NameOptions {
  host: string;
  lookup: (host: string) => Promise<readonly string[]>;
  /** Called with each answer that has an address. */
  onAnswer: (addresses: readonly string[]) => void;
  clock: Clock;
  log: Logger;
}

/** A name that is looked up again and again. */
export interface FollowedName {
  /** Looks it up now, or as soon as the least interval has passed. */
  soon(): void;
  /** Resolves when the look-up under way, or the next one, has ended, with or without an answer. */
  answered(): Promise<void>;
  /** Resolves when a look-up that begins after this call has ended, with or without an answer. */
  lookedUp(): Promise<void>;
  stop(): void;
}

/** Looks a name up until it is stopped. A look-up that fails changes nothing. */
export function followName(options: NameOptions): FollowedName {
  const { host, lookup, onAnswer, clock, log } = options;
  const stop = new AbortController();
  let nap = new AbortController();
  let answered = Promise.withResolvers<void>();
  let isAsking = false;
  let wasMissing = false;

  async function resolve(): Promise<void> {
    isAsking = true;
    const answer = await lookup(host).catch((error: NodeJS.ErrnoException) => error);
    isAsking = false;
    if (stop.signal.aborted) return;
    const isMissing = answer instanceof Error || answer.length === 0;
    if (isMissing && !wasMissing) {
      const code = answer instanceof Error ? answer.code : "no address";
      log.warn({ peer: host, code }, "a peer's name leads nowhere; its last addresses stay");
    }
    wasMissing = isMissing;
    if (!isMissing) onAnswer(answer);
    answered.resolve();
    answered = Promise.withResolvers();
  }
  async function run(): Promise<void> {
    while (!stop.signal.aborted) {
      nap = new AbortController();
      await resolve();
      await clock.sleep(minResolveIntervalMs, stop.signal).catch(() => {});
      await clock.sleep(resolveIntervalMs - minResolveIntervalMs, nap.signal).catch(() => {});
    }
  }
  void run();
  return {
    soon: () => nap.abort(),
    answered() {
      if (!isAsking) nap.abort();
      return answered.promise;
    },
    async lookedUp() {
      nap.abort();
      // The look-up under way began before this call.
      if (isAsking) await answered.promise;
      await answered.promise;
    },
    stop() {
      stop.abort();
      nap.abort();
      answered.resolve();
    },
  };
}
