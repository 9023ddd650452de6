// Has operations on one wallet that come at the same time share one write. MongoDB's ledger needs that, because each write is a
// compare-and-set of the whole wallet.

import { ErrorReason, RefusalError } from "#kit/base/errors.ts";
import { maxBatchOperations, maxWaitingOperations } from "../base/limits.ts";
import type { Operation, Outcome } from "./operations.ts";
import { type WalletRef, walletName } from "./wallet.ts";

/** An operation with the time of its request. */
export interface TimedOperation {
  operation: Operation;
  /** In ms since the epoch. */
  now: number;
}

/**
 * One transition of one wallet. Calls `take` once, at the moment when it begins, so that it gets all operations until then. Answers one
 * outcome for each.
 */
export type RunBatch = (wallet: WalletRef, take: () => TimedOperation[]) => Promise<Outcome[]>;

/** Combines waiting operations of one wallet, one transition at a time. */
export interface Batches {
  /** Queues operations of one wallet. Refuses with SERVICE_UNAVAILABLE where too many wait already. */
  add(wallet: WalletRef, operations: readonly Operation[], now: number): Promise<Outcome[]>;
}

/** The operations and promise of one waiting caller. */
interface Waiting {
  operations: readonly Operation[];
  now: number;
  resolve: (outcomes: Outcome[]) => void;
  reject: (error: unknown) => void;
}

interface Queue {
  waiting: Waiting[];
  /** Operations in {@link waiting}. */
  size: number;
}

/** Makes the queues around a store's transition. */
export function createBatches(run: RunBatch): Batches {
  const queues = new Map<string, Queue>();
  return {
    add: (wallet, operations, now) =>
      new Promise((resolve, reject) => {
        const name = walletName(wallet);
        const known = queues.get(name);
        const queue = known ?? { waiting: [], size: 0 };
        if (queue.size + operations.length > maxWaitingOperations) {
          const metadata = { retry_after_ms: "100" };
          reject(new RefusalError(ErrorReason.SERVICE_UNAVAILABLE, { metadata }));
          return;
        }
        queue.waiting.push({ operations, now, resolve, reject });
        queue.size += operations.length;
        if (known) return;
        queues.set(name, queue);
        // In the same turn in which the queue becomes empty. An operation that comes later begins a new batch.
        void empty(queue, wallet, run, () => queues.delete(name));
      }),
  };
}

/** Runs batches until no operation waits, then calls `done`. Never rejects. */
async function empty(
  queue: Queue,
  wallet: WalletRef,
  run: RunBatch,
  done: () => void,
): Promise<void> {
  while (queue.waiting.length > 0) {
    let batch: Waiting[] | undefined;
    const take = () => {
      batch = shift(queue);
      const timed: TimedOperation[] = [];
      for (const { operations, now } of batch) {
        for (const operation of operations) timed.push({ operation, now });
      }
      return timed;
    };
    try {
      const outcomes = await run(wallet, take);
      let from = 0;
      for (const { operations, resolve } of batch ?? []) {
        resolve(outcomes.slice(from, from + operations.length));
        from += operations.length;
      }
    } catch (error) {
      // A transition that never began fails the operations that it would have taken.
      for (const { reject } of batch ?? shift(queue)) reject(error);
    }
  }
  done();
}

/** Takes callers out of the queue, each with all its operations, until the batch is full. */
function shift(queue: Queue): Waiting[] {
  let size = 0;
  let callers = 0;
  for (const { operations } of queue.waiting) {
    if (callers > 0 && size + operations.length > maxBatchOperations) break;
    size += operations.length;
    callers++;
  }
  queue.size -= size;
  return queue.waiting.splice(0, callers);
}
