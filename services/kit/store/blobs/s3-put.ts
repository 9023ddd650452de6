// Writes one blob to S3 so that it is written once, even where answers are lost.

import type { Ids } from "#kit/base/ids.ts";
import { BlobExistsError, type StoredBlob } from "#kit/store/blobs.ts";
import type { Clock } from "#kit/time/clock.ts";
import { attempt } from "./s3-attempts.ts";
import type { S3Bucket } from "./s3-bucket.ts";
import { isS3Fault } from "./s3-call.ts";
import { type Spooled, spool } from "./s3-spool.ts";

/** The parts that a write needs. */
export interface PutContext {
  bucket: S3Bucket;
  clock: Clock;
  ids: Ids;
  /** The folder where large blobs wait until their size is known. */
  scratchFolder: string;
}

/**
 * Writes a blob by one PUT. Each PUT has an id. So after a lost answer the object itself shows whether this PUT made it. Another
 * writer's object is never mistaken for it, or removed.
 */
export async function putBlob(
  key: string,
  source: AsyncIterable<Uint8Array>,
  signal: AbortSignal | undefined,
  context: PutContext,
): Promise<StoredBlob> {
  signal?.throwIfAborted();
  const { scratchFolder: folder, ids } = context;
  await using spooled = await spool(source, { folder, signal });
  const draft: Draft = { putId: ids.make("put"), spooled, isSent: false };
  try {
    await putOnce(key, draft, signal, context);
    signal?.throwIfAborted();
  } catch (error) {
    if (!signal?.aborted) throw error;
    if (draft.isSent) await removeOwn(key, draft, context);
    throw signal.reason;
  }
  return { sizeBytes: spooled.sizeBytes, sha256: spooled.sha256 };
}

/** A blob that is to be written. */
interface Draft {
  putId: string;
  spooled: Spooled;
  /** A PUT was begun, and so may have been carried out. */
  isSent: boolean;
}

async function putOnce(
  key: string,
  draft: Draft,
  signal: AbortSignal | undefined,
  { bucket, clock }: PutContext,
): Promise<void> {
  const { putId, spooled } = draft;
  const taken = () => new BlobExistsError(`the key is taken: ${key}`);
  const write = async (unsure: boolean) => {
    signal?.throwIfAborted();
    const found = await bucket.head(key);
    if (found) {
      if (unsure && found.putId === putId) return;
      throw taken();
    }
    draft.isSent = true;
    try {
      await bucket.write(key, spooled, putId, signal);
    } catch (error) {
      if (!isS3Fault(error, "taken")) throw error;
      // The attempt before this one may have made it, if it had not ended when we looked.
      if (!unsure || (await bucket.head(key))?.putId !== putId) throw taken();
    }
  };
  await attempt(clock, write, { signal, also: ["conflict"], long: true });
}

/** An object that cannot be removed now is found by the collection of unused blobs. */
async function removeOwn(key: string, { putId }: Draft, { bucket }: PutContext): Promise<void> {
  try {
    const found = await bucket.head(key);
    if (found?.putId === putId) await bucket.remove(key);
  } catch {
    // The caller gets the reason for the end, which is another one.
  }
}
