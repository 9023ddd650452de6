// The reasons why genmesh itself stops a request. They decide what is charged, so each signal carries one.

import { isRefusal, unavailable } from "#kit/base/errors.ts";
import type { StopSignal } from "#kit/base/stop.ts";
/**
 * The reason why genmesh stops a request.
 * - `left`: its last caller closed its connection, or its deadline passed.
 * - `lost`: another process has taken it over.
 * - `draining`: this process ends.
 */
export type StopReason = "left" | "lost" | "draining";

/** The reason with which the signal of a request aborts. */
export class Stopped extends Error {
  override readonly name = "Stopped";
  readonly reason: StopReason;

  constructor(reason: StopReason) {
    super(`stopped: ${reason}`);
    this.reason = reason;
  }
}

const reasons = new Map<StopReason, Stopped>();

/** The reason as an error. All requests share one, because a stack trace takes longer than leaving. */
export function stopped(reason: StopReason): Stopped {
  const known = reasons.get(reason) ?? new Stopped(reason);
  reasons.set(reason, known);
  return known;
}

/** The reason why the signal of a request was aborted. Undefined: it was not. */
export function stopReasonOf(signal: StopSignal): StopReason | undefined {
  if (!signal.aborted) return undefined;
  return signal.reason instanceof Stopped ? signal.reason.reason : "left";
}

/** The error that callers get for a request that this process stopped. */
export function asRefusal(error: unknown, stop: StopSignal): unknown {
  const reason = stopReasonOf(stop);
  if (isRefusal(error) || reason === undefined || reason === "left") return error;
  return unavailable(error);
}
