import { codePoints } from "./body.ts";
import { ErrorReason, refuse } from "./errors.ts";

/** Most characters of an Idempotency-Key (the contract's). */
export const maxIdempotencyKeyLength = 255;

/** Checks a caller's Idempotency-Key; absent stays absent. Refuses with INVALID_IDEMPOTENCY_KEY. */
export function checkIdempotencyKey(key: string | undefined): string | undefined {
  if (key === undefined) return undefined;
  if (key === "" || codePoints(key, maxIdempotencyKeyLength) > maxIdempotencyKeyLength) {
    refuse(ErrorReason.INVALID_IDEMPOTENCY_KEY, { param: "Idempotency-Key" });
  }
  return key;
}
