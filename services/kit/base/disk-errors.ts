import { ErrorReason, RefusalError } from "./errors.ts";

/** A disk or a machine that cannot do its work now, and may again: full, over quota, failing, read-only, out of descriptors. */
const awayCodes: ReadonlySet<unknown> = new Set([
  "ENOSPC",
  "EDQUOT",
  "EIO",
  "EROFS",
  "EMFILE",
  "ENFILE",
]);
/** Hint of the refusal, in ms. */
const awayRetryMs = 1_000;

/** The error of a file operation as SERVICE_UNAVAILABLE where the disk is at fault; every other error as it is. */
export function ofDisk(error: unknown): unknown {
  if (!awayCodes.has((error as { code?: unknown } | null)?.code)) return error;
  return new RefusalError(ErrorReason.SERVICE_UNAVAILABLE, {
    metadata: { retry_after_ms: `${awayRetryMs}` },
    cause: error,
  });
}

/** Waits for file operations; rejects with what {@link ofDisk} makes of their error. */
export async function onDisk<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw ofDisk(error);
  }
}
