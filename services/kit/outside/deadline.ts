// Bounds the time of a whole fetch from outside, with all its waits.

import { OutsideError, toOutsideError } from "./errors.ts";

/**
 * Runs the work under a deadline and the caller's signal. Rejects as soon as the deadline has passed or the signal aborts, even where
 * the work does not listen. The error is `OutsideError` `timeout`, or the signal's reason. Any other error becomes an `OutsideError`.
 */
export async function withDeadline<T>(
  options: { readonly timeoutMs: number; readonly signal?: AbortSignal | undefined },
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const outer = options.signal;
  outer?.throwIfAborted();
  const controller = new AbortController();
  const { promise: ended, reject } = Promise.withResolvers<never>();
  const end = (reason: unknown) => {
    reject(reason);
    controller.abort(reason);
  };
  const leave = () => end(outer?.reason);
  const timer = setTimeout(end, options.timeoutMs, new OutsideError("timeout"));
  outer?.addEventListener("abort", leave, { once: true });
  try {
    return await Promise.race([work(controller.signal), ended]);
  } catch (error) {
    throw controller.signal.aborted ? controller.signal.reason : toOutsideError(error);
  } finally {
    clearTimeout(timer);
    outer?.removeEventListener("abort", leave);
  }
}
