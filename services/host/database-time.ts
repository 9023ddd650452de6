// Sets a process's clock by that of MongoDB, which all processes share. Services in their own process call it before they start.

import { ErrorReason, isRefusal } from "#kit/base/errors.ts";
import type { HostContext } from "./context.ts";
import type { Stores } from "./stores.ts";

/** Milliseconds between two readings of the database's clock. A machine's own drifts by less than a millisecond meanwhile. */
const lookEveryMs = 10_000;
/** Milliseconds between two attempts at a database that is away. */
const retryMs = 1_000;
/** Readings at the start that may be too unsure to use. A database that is slower has other troubles. */
const maxUnsure = 5;

/**
 * Leases, deadlines and months are written by one process and judged by another. All use the clock of the database that they share. So
 * a machine with a wrong clock takes no work from machines with a right one. Resolves when the time is known, which may take any time.
 * It is then read now and then until `stack` ends. Rejects when `signal` aborts.
 */
export async function followDatabaseTime(
  { correctedClock: clock, log }: HostContext,
  { database }: Stores,
  { stack, signal }: { stack: AsyncDisposableStack; signal: AbortSignal },
): Promise<void> {
  if (database?.kind !== "mongodb") return;
  const { mongo } = database;
  const look = async () => {
    const outcome = await clock.correct(() => mongo.serverTime());
    if (outcome !== "corrected") return outcome;
    log.warn({ behindMs: clock.behindMs }, "this machine's clock is wrong: the database's counts");
    return outcome;
  };
  for (let unsure = 0; unsure < maxUnsure; ) {
    const outcome = await look().catch(unlessAway);
    if (outcome === "unsure") unsure++;
    else if (outcome === undefined) await clock.sleep(retryMs, signal);
    else break;
  }
  const life = new AbortController();
  const follow = async () => {
    while (!life.signal.aborted) {
      await clock.sleep(lookEveryMs, life.signal).catch(() => {});
      // The database is away. Its clock goes on, and so does the measured difference.
      if (!life.signal.aborted) await look().catch(() => undefined);
    }
  };
  const following = follow();
  stack.defer(() => {
    life.abort();
    return following;
  });
}

/** Throws where trying again makes no sense. */
function unlessAway(error: unknown): undefined {
  if (!isRefusal(error, ErrorReason.SERVICE_UNAVAILABLE)) throw error;
}
