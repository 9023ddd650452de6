import { ErrorReason, isRefusal } from "#kit/base/errors.ts";
import type { HostContext } from "./context.ts";
import type { Stores } from "./stores.ts";

/** Milliseconds between two looks at the database's clock: a machine's own drifts by less than a millisecond meanwhile. */
const lookEveryMs = 10_000;
/** Milliseconds between two looks at one that is away. */
const retryMs = 1_000;
/** Looks at the start of which none told anything: a database that is so slow has other troubles. */
const maxUnsure = 5;

/**
 * Leases, deadlines and months are written by one process and judged by another: all go by the clock of the database that
 * they share, so that a machine whose clock is wrong takes nothing from those whose is right. Resolves when it is known, which
 * is for as long as it takes; then it is looked at now and then until `stack` ends. Rejects when `signal` aborts.
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
      // Away: its clock goes on, and so does what was measured of it.
      if (!life.signal.aborted) await look().catch(() => undefined);
    }
  };
  const following = follow();
  stack.defer(() => {
    life.abort();
    return following;
  });
}

/** Throws where it is not worth asking again. */
function unlessAway(error: unknown): undefined {
  if (!isRefusal(error, ErrorReason.SERVICE_UNAVAILABLE)) throw error;
}
