// Keeps blobs in a bucket of S3, for a mesh. It joins requests, repeats and writes of the other files, and checks the bucket at
// the start.

import { tmpdir } from "node:os";
import { Readable } from "node:stream";
import { ErrorReason, isRefusal } from "#kit/base/errors.ts";
import type { Ids } from "#kit/base/ids.ts";
import type { Logger } from "#kit/base/logger.ts";
import {
  BlobNotFoundError,
  type BlobStore,
  checkBlobKey,
  type ListedBlob,
} from "#kit/store/blobs.ts";
import type { Clock } from "#kit/time/clock.ts";
import { attempt } from "./s3-attempts.ts";
import { createS3Bucket, type S3Bucket } from "./s3-bucket.ts";
import { createS3Caller, isS3Fault } from "./s3-call.ts";
import { putBlob } from "./s3-put.ts";
import { spool } from "./s3-spool.ts";
import { parseS3Url } from "./s3-url.ts";

/** Options of an S3 store. */
export interface S3BlobsOptions {
  /** See {@link parseS3Url}. */
  url: string;
  /** A process that only reads needs no right to check the bucket, or to make it. Default: false. */
  readOnly?: boolean;
  /** The folder where large blobs wait until their size is known. Default: the system's temporary folder. */
  scratchFolder?: string;
  clock: Clock;
  ids: Ids;
  log: Logger;
}

/** A {@link BlobStore} in a bucket. Disposing closes its connections. */
export interface S3Blobs extends BlobStore, AsyncDisposable {
  /**
   * Sends the store one request. Rejects where it does not answer, or denies a process that also writes. After a write was given up,
   * rejects where the store takes no write.
   */
  check(): Promise<void>;
}

/**
 * Blobs as objects of a bucket, which is made where it is missing. Only plain verbs are used: PUT, GET with Range, HEAD, DELETE, LIST
 * v2. A key is written once by checking first and by `If-None-Match: *`. With a store that does not know the condition, two writers can
 * still meet in the moment between the two. Where the store is away, or denies, every operation is refused with SERVICE_UNAVAILABLE
 * within some seconds. A write whose answer was lost may then have happened.
 *
 * Rejects where the store denies an operation that will be needed. Throws a TypeError where the URL makes no sense. Does not reject
 * where the store is away at the moment.
 */
export async function openS3Blobs(options: S3BlobsOptions): Promise<S3Blobs> {
  const { clock, ids, log, readOnly = false, scratchFolder = tmpdir() } = options;
  const target = parseS3Url(options.url);
  const caller = createS3Caller(target);
  const bucket = createS3Bucket(target, caller);
  if (!readOnly) {
    try {
      await prepare(bucket, log);
    } catch (error) {
      caller[Symbol.dispose]();
      throw error;
    }
  }
  // A store without room still answers questions.
  let isInDoubt = false;
  const tryToWrite = async () => {
    const key = ids.make("check");
    const byte = Readable.from([Buffer.of(0)]);
    await using spooled = await spool(byte, { folder: scratchFolder, signal: undefined });
    await bucket.write(key, spooled, key);
    await bucket.remove(key);
  };
  return {
    async put(key, source, signal) {
      try {
        const context = { bucket, clock, ids, scratchFolder };
        return await putBlob(checkBlobKey(key), source, signal, context);
      } catch (error) {
        isInDoubt ||= isRefusal(error, ErrorReason.SERVICE_UNAVAILABLE);
        throw error;
      }
    },
    async openRead(key, range) {
      checkBlobKey(key);
      try {
        return await attempt(clock, () => bucket.read(key, range));
      } catch (error) {
        throw isS3Fault(error, "absent") ? new BlobNotFoundError("no such blob") : error;
      }
    },
    async stat(key) {
      checkBlobKey(key);
      const found = await attempt(clock, () => bucket.head(key));
      return found && { sizeBytes: found.sizeBytes, storedAtMs: found.storedAtMs };
    },
    async delete(key) {
      checkBlobKey(key);
      await attempt(clock, () => bucket.remove(key));
    },
    list: (prefix = "") => list(bucket, clock, prefix),
    async check() {
      try {
        await bucket.head("check");
      } catch (error) {
        // A store denies missing objects to credentials that may read objects and not list them.
        if (!(readOnly && isS3Fault(error, "denied"))) throw error;
      }
      if (isInDoubt) await tryToWrite();
      isInDoubt = false;
    },
    async [Symbol.asyncDispose]() {
      caller[Symbol.dispose]();
    },
  };
}

async function prepare(bucket: S3Bucket, log: Logger): Promise<void> {
  try {
    await bucket.make();
  } catch (error) {
    if (!isS3Fault(error, "away", "conflict")) {
      throw new Error("the bucket is missing and may not be made, or the credentials are refused", {
        cause: error,
      });
    }
    log.warn({ err: error }, "the store of blobs is away; writing begins when it is back");
  }
}

async function* list(bucket: S3Bucket, clock: Clock, prefix: string): AsyncIterable<ListedBlob> {
  for (let after = ""; ; ) {
    const page = await attempt(clock, () => bucket.page(prefix, after));
    // In a shared bucket, others' objects may have names that no blob has.
    yield* page.filter(({ key }) => isBlobKey(key));
    const last = page.at(-1)?.key;
    if (last === undefined || last === after) return;
    after = last;
  }
}

function isBlobKey(key: string): boolean {
  try {
    return checkBlobKey(key) === key;
  } catch {
    return false;
  }
}
