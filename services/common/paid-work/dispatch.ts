// Refuses a request whose hold may have lapsed before it is sent. Text and speech call it right before they send.

import { unavailable } from "#kit/base/errors.ts";
import type { Clock } from "#kit/time/clock.ts";
import { dispatchWithinMs } from "./limits.ts";

/**
 * Refuses a request that may not be sent any more. More than 5 s have passed since its money was first checked, by the monotonic clock.
 * Past its lease it could be sent without any money.
 */
export function refuseLate(openedAt: number, clock: Clock): void {
  if (clock.steady() > openedAt + dispatchWithinMs) throw unavailable();
}
