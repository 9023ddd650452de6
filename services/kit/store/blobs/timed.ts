// Measures the operations of any store of blobs. `traced.ts` makes spans of them.

import { ErrorReason, isRefusal } from "#kit/base/errors.ts";
import type { Metrics } from "#kit/base/metrics.ts";
import {
  BlobExistsError,
  BlobNotFoundError,
  type BlobStat,
  type BlobStore,
  type ListedBlob,
  type StoredBlob,
} from "#kit/store/blobs.ts";

type Operation = "put" | "open" | "stat" | "delete" | "list";
/** `left`: the caller gave the operation up, or failed to bring the bytes to store. */
type Outcome = "ok" | "absent" | "taken" | "away" | "left" | "failed";

/**
 * `store`, with its operations and their repeats timed as `genmesh_blob_operation_seconds`. The time is the store's. Of a `put` it runs
 * from the last byte of its source on; of one that never got there, it is all of the time. Of an `open` it runs to the first byte. Of a
 * `list` it is the time of waiting for the next name.
 */
export function timedBlobs(store: BlobStore, metrics: Metrics, kind: "file" | "s3"): BlobStore {
  const operations = metrics.histogram(
    "genmesh_blob_operation_seconds",
    "Operations of the store of files, with their repeats, by outcome",
    ["store", "operation", "outcome"],
  );
  const observe: Observe = (operation, outcome, ms) =>
    operations.of(kind, operation, outcome).observe(ms / 1_000);
  return {
    put: (key, source, signal) => timedPut(store, { key, source, signal }, observe),
    openRead: (key, range) => timed("open", () => store.openRead(key, range), observe),
    stat: (key) => {
      const outcomeOf = (found: BlobStat | undefined) => (found ? "ok" : "absent");
      return timed("stat", () => store.stat(key), observe, outcomeOf);
    },
    delete: (key) => timed("delete", () => store.delete(key), observe),
    list: (prefix) => timedList(store, prefix, observe),
  };
}

/** Counts one operation that took `ms`. */
type Observe = (operation: Operation, outcome: Outcome, ms: number) => void;

async function timed<T>(
  operation: Operation,
  work: () => Promise<T>,
  observe: Observe,
  outcomeOf: (result: T) => Outcome = () => "ok",
): Promise<T> {
  const begunMs = performance.now();
  let outcome: Outcome = "ok";
  try {
    const result = await work();
    outcome = outcomeOf(result);
    return result;
  } catch (error) {
    outcome = failureOf(error);
    throw error;
  } finally {
    observe(operation, outcome, performance.now() - begunMs);
  }
}

async function timedPut(
  store: BlobStore,
  put: { key: string; source: AsyncIterable<Uint8Array>; signal: AbortSignal | undefined },
  observe: Observe,
): Promise<StoredBlob> {
  const { key, source, signal } = put;
  const begunMs = performance.now();
  const brought: Brought = { endedAtMs: undefined, hasFailed: false };
  let outcome: Outcome = "ok";
  try {
    return await store.put(key, watched(source, brought), signal);
  } catch (error) {
    outcome = signal?.aborted || brought.hasFailed ? "left" : failureOf(error);
    throw error;
  } finally {
    observe("put", outcome, performance.now() - (brought.endedAtMs ?? begunMs));
  }
}

async function* timedList(
  store: BlobStore,
  prefix: string | undefined,
  observe: Observe,
): AsyncIterable<ListedBlob> {
  const listed = store.list(prefix)[Symbol.asyncIterator]();
  let waitedMs = 0;
  let outcome: Outcome = "left";
  try {
    for (;;) {
      const askedMs = performance.now();
      const next = await listed.next().finally(() => {
        waitedMs += performance.now() - askedMs;
      });
      if (next.done) break;
      yield next.value;
    }
    outcome = "ok";
  } catch (error) {
    outcome = failureOf(error);
    throw error;
  } finally {
    observe("list", outcome, waitedMs);
    await listed.return?.();
  }
}

interface Brought {
  endedAtMs: number | undefined;
  hasFailed: boolean;
}

/** All bytes of `source`. `brought` gets the way in which it ended. */
async function* watched(
  source: AsyncIterable<Uint8Array>,
  brought: Brought,
): AsyncIterable<Uint8Array> {
  try {
    yield* source;
    brought.endedAtMs = performance.now();
  } catch (error) {
    brought.hasFailed = true;
    throw error;
  }
}

function failureOf(error: unknown): Outcome {
  if (error instanceof BlobNotFoundError) return "absent";
  if (error instanceof BlobExistsError) return "taken";
  return isRefusal(error, ErrorReason.SERVICE_UNAVAILABLE) ? "away" : "failed";
}
