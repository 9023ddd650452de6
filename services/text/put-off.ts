import { clockSlackMs } from "#kit/lease-time.ts";
import { keepReviewMs, leaseMs, settleRetryMs, sweepRetryMs } from "./limits.ts";

/** No request is leased, or put off while it is settled, for longer by a right clock, in ms. */
export const longestDueMs = Math.max(leaseMs, settleRetryMs, sweepRetryMs) + clockSlackMs;
/** The same of a request of an older release that an operator is to look at, in ms. */
export const longestReviewMs = keepReviewMs + clockSlackMs;
