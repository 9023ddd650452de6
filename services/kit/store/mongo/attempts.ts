// Decides when an operation on MongoDB is tried again, and for how long. Stores make their operations safe to repeat.

import type { Clock } from "#kit/time/clock.ts";
import { awayRefusal, isConflict, mongoFault } from "./errors.ts";
import {
  attemptBudgetMs,
  attemptPauseMs,
  maxAttemptPauseMs,
  operationTimeoutMs,
} from "./limits.ts";

/** Work on the database that may be done twice. `unsure`: an earlier attempt got no answer, and may have been carried out. */
export type Work<T> = (unsure: boolean) => Promise<T>;

/** Runs {@link Work} until the server has answered. */
export type Attempt = <T>(work: Work<T>) => Promise<T>;

/**
 * Makes an {@link Attempt}. Where the server is away, it tries again with growing pauses, for some seconds. Where another write was
 * first, it tries again for as long as an operation may take. Then it refuses with SERVICE_UNAVAILABLE, and the outcome is unknown. All
 * other errors pass at once.
 */
export function createAttempt(clock: Clock): Attempt {
  return async (work) => {
    let unsure = false;
    const beganAt = clock.steady();
    for (let pauseMs = attemptPauseMs; ; pauseMs = Math.min(2 * pauseMs, maxAttemptPauseMs)) {
      try {
        return await work(unsure);
      } catch (error) {
        if (mongoFault(error) !== "away") throw error;
        const budgetMs = isConflict(error) ? operationTimeoutMs : attemptBudgetMs;
        if (clock.steady() + pauseMs >= beganAt + budgetMs) throw awayRefusal(error);
        unsure = true;
      }
      // Between half and all of the pause, so that replicas that failed together do not come back together.
      await clock.sleep(pauseMs * (0.5 + Math.random() / 2));
    }
  };
}
