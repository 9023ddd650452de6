// Makes the MongoDB driver answer in any case. `connect.ts` wraps the driver's objects with it.

import { mongodb } from "./driver.ts";

/** How long an operation may take, and the function to call for one that took longer. */
export interface Settling {
  withinMs: number;
  onLost(): void;
}

/**
 * An object of the driver (a collection, a cursor) whose operations always settle. One that does not settle in time rejects as if the
 * server were away. The driver's own time-outs do not bound all of an operation. mongodb 7 may write a command to a socket that the
 * server has just closed, and wait for ever for that write (Connection.writeCommand). It never gives back the place in its pool.
 * `current` gives the object and its bounds at each call.
 */
export function settled<T extends object>(current: () => { object: T; settling: Settling }): T {
  const own: T = new Proxy(current().object, {
    get(_, name) {
      const { object: target, settling } = current();
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== "function") return value;
      if (name === Symbol.asyncIterator) return () => documentsOf(own as unknown as Cursor);
      return (...args: unknown[]) => {
        const result: unknown = value.apply(target, args);
        // Settings of a cursor are chained.
        if (result === target) return own;
        if (result instanceof Promise) return inTime(result, settling);
        return isCursor(result) ? settled(() => ({ object: result, settling })) : result;
      };
    },
  });
  return own;
}

/** A single operation that settles in the same way. */
export function inTime<T>(work: Promise<T>, { withinMs, onLost }: Settling): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      const { MongoNetworkTimeoutError } = mongodb();
      reject(new MongoNetworkTimeoutError(`no answer and no fault in ${withinMs} ms`));
      onLost();
    }, withinMs);
    work.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

interface Cursor {
  next(): Promise<unknown>;
  close(): Promise<void>;
}

function isCursor(result: unknown): result is Cursor & object {
  return result instanceof mongodb().AbstractCursor;
}

async function* documentsOf(cursor: Cursor): AsyncGenerator<unknown> {
  try {
    for (let next = await cursor.next(); next !== null; next = await cursor.next()) yield next;
  } finally {
    // The rows that were read stay valid, even where closing the cursor fails.
    await cursor.close().catch(() => {});
  }
}
