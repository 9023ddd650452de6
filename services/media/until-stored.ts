// Waits out a store that is away, for work that was paid for and must not be lost.

import { ErrorReason, isRefusal } from "#kit/base/errors.ts";
import type { Clock } from "#kit/time/clock.ts";
import { claimRetryMs } from "./limits.ts";

/** Repeats work at a store of this service while the store is away (a full disk, a server that restarts), until `signal` aborts. */
export async function untilStored<T>(
  { clock, signal }: { clock: Clock; signal: AbortSignal },
  work: () => Promise<T>,
): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (signal.aborted || !isRefusal(error, ErrorReason.SERVICE_UNAVAILABLE)) throw error;
      await clock.sleep(claimRetryMs, signal);
    }
  }
}
