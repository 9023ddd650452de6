// Words the refusal of an S3 store that cannot work now. The other files for S3 share it.

import { ErrorReason, RefusalError } from "#kit/base/errors.ts";
import { awayRetryMs } from "./s3-limits.ts";

/** The refusal of a store that cannot work now. `cause` is for our own log. */
export function awayRefusal(cause: unknown): RefusalError {
  return new RefusalError(ErrorReason.SERVICE_UNAVAILABLE, {
    metadata: { retry_after_ms: `${awayRetryMs}` },
    cause,
  });
}
