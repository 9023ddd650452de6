// Tells a disk that cannot work now from a fault of our own. A full disk refuses a request, which may be tried again.

import { ErrorReason, RefusalError } from "./errors.ts";

/**
 * Codes of a disk or a machine that cannot do its work now, but may later: full, over quota, failing, read-only, out of
 * descriptors.
 */
const awayCodes: ReadonlySet<unknown> = new Set([
  "ENOSPC",
  "EDQUOT",
  "EIO",
  "EROFS",
  "EMFILE",
  "ENFILE",
]);
/** The refusal's hint for when to try again, in ms. */
const awayRetryMs = 1_000;

/**
 * Turns the error of a file operation into SERVICE_UNAVAILABLE where the disk is at fault. Any other error is returned unchanged.
 */
export function ofDisk(error: unknown): unknown {
  if (!awayCodes.has((error as { code?: unknown } | null)?.code)) return error;
  return new RefusalError(ErrorReason.SERVICE_UNAVAILABLE, {
    metadata: { retry_after_ms: `${awayRetryMs}` },
    cause: error,
  });
}

/** Waits for a file operation. Rejects with the result of {@link ofDisk} for its error. */
export async function onDisk<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw ofDisk(error);
  }
}
