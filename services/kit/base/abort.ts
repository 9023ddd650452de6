// Ends a wait when a signal aborts or a time is over, while the work that is waited for may go on.

import type { Clock } from "#kit/time/clock.ts";
import type { StopSignal } from "./stop.ts";

/**
 * Resolves like `work`, or rejects with the signal's reason as soon as the signal aborts. The work itself goes on, for others or
 * until it notices. Its end after the signal is ignored.
 */
export function untilAborted<T>(work: Promise<T>, signal: StopSignal | undefined): Promise<T> {
  if (!signal) return work;
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    if (signal.aborted) abort();
    else signal.addEventListener("abort", abort, { once: true });
    const leave = () => signal.removeEventListener("abort", abort);
    work.then(
      (value) => {
        leave();
        resolve(value);
      },
      (error: unknown) => {
        leave();
        reject(error);
      },
    );
  });
}

/**
 * The result of `work`. Its signal aborts with `late()` once the work has lasted for `ms` by the clock. The work then goes on
 * until it notices.
 */
export async function withinTime<T>(
  { clock, ms, late }: { clock: Pick<Clock, "sleep">; ms: number; late: () => Error },
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const over = new AbortController();
  const timeout = new AbortController();
  clock.sleep(ms, over.signal).then(
    () => timeout.abort(late()),
    () => {},
  );
  try {
    return await work(timeout.signal);
  } finally {
    over.abort();
  }
}

/** Resolves once the signal has aborted; at once where it already has. */
export function whenAborted(signal: StopSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
