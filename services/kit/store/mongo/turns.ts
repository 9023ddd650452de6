// Lets writes of one process to the same place in MongoDB follow each other, where writing at once would make them wait for each
// other.

import { untilAborted, withinTime } from "#kit/base/abort.ts";
import type { Clock } from "#kit/time/clock.ts";
import { awayRefusal, isAwayRefusal } from "./errors.ts";
import { operationTimeoutMs } from "./limits.ts";

/**
 * Runs work when its turn has come. `hasWaited`: other work of its name was before it. `signal`: aborts when the caller leaves. Work
 * that has not begun by then never begins, and is rejected with the signal's reason.
 */
type InTurn = <T>(
  name: string,
  work: (hasWaited: boolean) => Promise<T>,
  signal?: AbortSignal,
) => Promise<T>;

/**
 * Runs work of the same name one after the other. Requests for the same place in a unique index come together. A server that keeps such
 * an index by locks has each two of them wait for each other, a second a pair. With turns only other processes can come in between.
 *
 * Where work is refused because the database is away, all work that waits behind it is refused too, and never begins. Otherwise the
 * last one would wait for the missing server once for each one before it. Later work is tried again. Work whose turn has not come
 * within the time of one operation is refused in the same way.
 */
export function createTurns(clock: Pick<Clock, "sleep">): InTurn {
  const last = new Map<string, Promise<void>>();
  return async (name, work, signal) => {
    signal?.throwIfAborted();
    const before = last.get(name);
    const over = Promise.withResolvers<void>();
    const { promise } = over;
    last.set(name, promise);
    const end = (error?: unknown) => {
      if (last.get(name) === promise) last.delete(name);
      if (isAwayRefusal(error)) over.reject(error);
      else over.resolve();
    };
    // No other work may wait behind it.
    promise.catch(() => {});
    try {
      if (before) await turnAfter(before, clock, signal);
    } catch (error) {
      if (isAwayRefusal(error)) end(error);
      // Work behind one that gives up waits for the one before that.
      else before?.then(() => end(), end);
      throw error;
    }
    try {
      const done = await work(before !== undefined);
      end();
      return done;
    } catch (error) {
      end(error);
      throw error;
    }
  };
}

function turnAfter(
  before: Promise<void>,
  clock: Pick<Clock, "sleep">,
  signal: AbortSignal | undefined,
): Promise<void> {
  const late = () => awayRefusal(new Error("others had their turns for too long"));
  return withinTime({ clock, ms: operationTimeoutMs, late }, (inTime) =>
    untilAborted(before, signal ? AbortSignal.any([inTime, signal]) : inTime),
  );
}
