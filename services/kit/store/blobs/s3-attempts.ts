// Decides when a request to S3 is tried again, and for how long.

import type { Clock } from "#kit/time/clock.ts";
import { isS3Fault, type S3Fault } from "./s3-call.ts";
import { awayRefusal } from "./s3-errors.ts";
import { attemptBudgetMs, attemptPauseMs, maxAttemptPauseMs } from "./s3-limits.ts";

/** Options for trying again. */
export interface AttemptOptions {
  signal?: AbortSignal | undefined;
  /** Answers that time can change, besides a store that is away. */
  also?: S3Fault[];
  /** An attempt may take any time. */
  long?: boolean;
}

/**
 * Runs work that may be done twice. Where the store is away, or its answer is one of `also`, the work runs again with growing pauses.
 * That goes on for some seconds from its beginning (of `long` work: from the first failure). After that, and where the store denies,
 * the work is refused with SERVICE_UNAVAILABLE. All other errors pass at once. Rejects with the signal's reason where the signal aborts
 * in a pause.
 */
export async function attempt<T>(
  clock: Clock,
  work: (unsure: boolean) => Promise<T>,
  { signal, also = [], long = false }: AttemptOptions = {},
): Promise<T> {
  let unsure = false;
  let giveUpAt = long ? undefined : clock.steady() + attemptBudgetMs;
  for (let pauseMs = attemptPauseMs; ; pauseMs = Math.min(2 * pauseMs, maxAttemptPauseMs)) {
    try {
      return await work(unsure);
    } catch (error) {
      if (isS3Fault(error, "denied", "unsupported", "no-bucket")) throw awayRefusal(error);
      if (!isS3Fault(error, "away", ...also)) throw error;
      giveUpAt ??= clock.steady() + attemptBudgetMs;
      if (clock.steady() + pauseMs >= giveUpAt) throw awayRefusal(error);
      unsure = true;
    }
    // Between half and all of the pause, so that replicas that failed together do not come back together.
    await clock.sleep(pauseMs * (0.5 + Math.random() / 2), signal);
  }
}
