// Refuses sign-ins where too many have failed within a minute: from one client, from all, or for one name. It counts in the
// memory of one replica.

import { ErrorReason, refuse } from "#kit/base/errors.ts";
import type { Clock } from "#kit/time/clock.ts";
import {
  failedSignInMs,
  maxFailedSignIns,
  maxFailedSignInsOfAll,
  maxFailingClients,
} from "./limits.ts";
import { maxFailedSignInsOfName } from "./operator-limits.ts";

/** Bounds the guessing of secrets. */
export interface SignInLimits {
  /**
   * Runs an attempt, which has failed where it answers undefined. Until its end it counts as failed, so that simultaneous attempts are
   * bounded too. Refuses with RATE_LIMIT_EXCEEDED before the attempt where the client failed too often within the last minute. Where all
   * clients together did, only a failed attempt is refused, because strangers must not lock out people with a secret. A password has
   * fewer bits than a secret. So where a name is given, every attempt for it is refused when too many failed.
   */
  attempt<T>(
    client: string,
    look: () => Promise<T | undefined>,
    name?: string,
  ): Promise<T | undefined>;
}

export function createSignInLimits(clock: Clock): SignInLimits {
  const ofAll = new RecentFailures(maxFailedSignInsOfAll);
  const ofClient = failuresOf(maxFailedSignIns);
  const ofName = failuresOf(maxFailedSignInsOfName);
  return {
    async attempt(client, look, name) {
      const nowMs = clock.steady();
      const own = [ofClient(client, nowMs)];
      if (name !== undefined) own.push(ofName(name, nowMs));
      refuseFor(Math.max(...own.map((failures) => failures.waitMs(nowMs))));
      const waitOfAllMs = ofAll.waitMs(nowMs);
      const counted = waitOfAllMs > 0 ? own : [...own, ofAll];
      const failure = { atMs: nowMs };
      for (const failures of counted) failures.add(failure);
      const forget = () => {
        for (const failures of counted) failures.forget(failure);
      };
      let found: Awaited<ReturnType<typeof look>>;
      try {
        found = await look();
      } catch (error) {
        // The store did not answer, so the caller made no wrong guess.
        forget();
        throw error;
      }
      if (found !== undefined) forget();
      else refuseFor(waitOfAllMs);
      return found;
    },
  };
}

/** Makes a function that finds the failures of a client, or of a name. */
function failuresOf(most: number): (key: string, nowMs: number) => RecentFailures {
  // The last entry is the one with the latest attempt.
  const byKey = new Map<string, RecentFailures>();
  return (key, nowMs) => {
    const own = byKey.get(key) ?? new RecentFailures(most);
    byKey.delete(key);
    for (const [first, failures] of byKey) {
      if (byKey.size < maxFailingClients && !failures.isEmpty(nowMs)) break;
      byKey.delete(first);
    }
    byKey.set(key, own);
    return own;
  };
}

interface Failure {
  readonly atMs: number;
}

/** Failures of the last minute, up to a bound. */
class RecentFailures {
  readonly #most: number;
  // In the order of time.
  #failures: Failure[] = [];

  constructor(most: number) {
    this.#most = most;
  }

  isEmpty(nowMs: number): boolean {
    this.#failures = this.#failures.filter(({ atMs }) => nowMs - atMs < failedSignInMs);
    return this.#failures.length === 0;
  }

  /** Milliseconds until there is room for another one. */
  waitMs(nowMs: number): number {
    const [oldest] = this.isEmpty(nowMs) ? [] : this.#failures;
    const isFull = oldest !== undefined && this.#failures.length >= this.#most;
    return isFull ? oldest.atMs + failedSignInMs - nowMs : 0;
  }

  add(failure: Failure): void {
    this.#failures.push(failure);
  }

  forget(failure: Failure): void {
    this.#failures = this.#failures.filter((one) => one !== failure);
  }
}

function refuseFor(waitMs: number): void {
  if (waitMs <= 0) return;
  refuse(ErrorReason.RATE_LIMIT_EXCEEDED, {
    message: "Too many sign-ins have failed. Wait a minute.",
    metadata: { retry_after_ms: String(Math.ceil(waitMs)) },
  });
}
