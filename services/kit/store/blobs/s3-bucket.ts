// The requests to a bucket, each as one call of the library. Trying again is left to `s3-attempts.ts`.

import type { IncomingMessage } from "node:http";
import { PassThrough, type Readable } from "node:stream";
import { finished } from "node:stream/promises";
import type { ByteRange, ListedBlob } from "#kit/store/blobs.ts";
import { isS3Fault, type S3Caller } from "./s3-call.ts";
import { awayRefusal } from "./s3-errors.ts";
import { listPageKeys, silenceMs, writeSilenceMs } from "./s3-limits.ts";
import type { Spooled } from "./s3-spool.ts";
import type { S3Target } from "./s3-url.ts";

/** A store's facts about an object. */
export interface S3Object {
  sizeBytes: number;
  storedAtMs: number;
  /** The id of the PUT that made it. Undefined where genmesh did not make it. */
  putId: string | undefined;
}

/** The requests of a bucket, each sent once. They reject with an S3CallError. */
export interface S3Bucket {
  /** Undefined where there is no such object. */
  head(key: string): Promise<S3Object | undefined>;
  /** Writes where no object is. A signal that aborts before the last byte was handed over ends it. */
  write(key: string, content: Spooled, putId: string, signal?: AbortSignal): Promise<void>;
  read(key: string, range?: ByteRange): Promise<Readable>;
  remove(key: string): Promise<void>;
  /** Some objects in the order of their keys, those after `after`. None where there are no further ones. */
  page(prefix: string, after: string): Promise<ListedBlob[]>;
  /** Makes the bucket where it is missing. */
  make(): Promise<void>;
}

/** Name of the metadata with the PUT that made an object. */
const putIdName = "genmesh-put";

/** The requests of `target`'s bucket. */
export function createS3Bucket(target: S3Target, caller: S3Caller): S3Bucket {
  return new BucketRequests(target, caller);
}

class BucketRequests implements S3Bucket {
  readonly #target: S3Target;
  readonly #caller: S3Caller;
  /** The first write finds this out: a store that does not know conditions refuses or ignores them. */
  #isConditional = true;

  constructor(target: S3Target, caller: S3Caller) {
    this.#target = target;
    this.#caller = caller;
  }

  async head(key: string): Promise<S3Object | undefined> {
    const found = await this.#caller
      .call(silenceMs, (client) => client.statObject(this.#target.bucket, key))
      .catch(unlessAbsent);
    if (!found) return undefined;
    const { size, lastModified, metaData } = found;
    const putId = metaData[putIdName] as string | undefined;
    return { sizeBytes: size, storedAtMs: lastModified.getTime(), putId };
  }

  async write(
    key: string,
    content: Spooled,
    putId: string,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    try {
      await this.#put(key, content, putId, signal);
    } catch (error) {
      if (isS3Fault(error, "no-bucket")) await this.make();
      else if (isS3Fault(error, "unsupported") && this.#isConditional) this.#isConditional = false;
      else throw error;
      await this.#put(key, content, putId, signal);
    }
  }

  read(key: string, range?: ByteRange): Promise<Readable> {
    const { bucket } = this.#target;
    return this.#caller.call(silenceMs, async (client) => {
      const answer = range
        ? client.getPartialObject(bucket, key, range.start, range.end - range.start + 1)
        : client.getObject(bucket, key);
      return bodyOf((await answer) as IncomingMessage);
    });
  }

  async remove(key: string): Promise<void> {
    await this.#caller
      .call(silenceMs, (client) => client.removeObject(this.#target.bucket, key))
      .catch(unlessAbsent);
  }

  async page(prefix: string, after: string): Promise<ListedBlob[]> {
    const { objects } = await this.#caller.call(silenceMs, (client) =>
      client.listObjectsV2Query(this.#target.bucket, prefix, "", "", listPageKeys, after),
    );
    return objects.map(({ name = "", size = 0, lastModified }) => ({
      key: name,
      sizeBytes: size,
      storedAtMs: lastModified?.getTime() ?? 0,
    }));
  }

  async make(): Promise<void> {
    const { bucket, region } = this.#target;
    if (await this.#exists()) return;
    try {
      await this.#caller.call(silenceMs, (client) => client.makeBucket(bucket, region));
    } catch (error) {
      // Another process was faster. A bucket of that name in another account must not be used.
      if (!isS3Fault(error, "taken") || !(await this.#exists())) throw error;
    }
  }

  #exists(): Promise<boolean> {
    return this.#caller.call(silenceMs, (client) => client.bucketExists(this.#target.bucket));
  }

  #put(
    key: string,
    content: Spooled,
    putId: string,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const { bucket, region, secure } = this.#target;
    return this.#caller.call(writeSilenceMs, async (client) => {
      const headers = {
        "content-length": content.sizeBytes,
        "content-type": "application/octet-stream",
        [`x-amz-meta-${putIdName}`]: putId,
        ...(this.#isConditional ? { "if-none-match": "*" } : {}),
      };
      const body = content.body();
      const stop = () => {
        if (!Buffer.isBuffer(body)) body.destroy(signal?.reason);
      };
      signal?.addEventListener("abort", stop, { once: true });
      try {
        const options = { method: "PUT", bucketName: bucket, objectName: key, headers };
        // The client's putObject would hold the whole object in memory.
        const digest = secure ? "" : content.sha256;
        const answer = await client.makeRequestStreamAsync(options, body, digest, [200], region);
        await finished(answer.resume());
      } finally {
        signal?.removeEventListener("abort", stop);
        if (!Buffer.isBuffer(body)) body.destroy();
      }
    });
  }
}

function unlessAbsent(error: unknown): undefined {
  if (!isS3Fault(error, "absent")) throw error;
}

/**
 * An answer's body for a reader of any speed. A store that stays silent while the reader waits ends it with a refusal. A reader that
 * does not read has any time. Destroying it closes the connection.
 */
function bodyOf(response: IncomingMessage): Readable {
  const body = new PassThrough();
  const { socket } = response;
  const onSilence = () => {
    // Bytes wait here that the reader has not read yet. Only where none wait, the store is too slow.
    if (response.readableLength > 0 || body.writableNeedDrain) socket.setTimeout(silenceMs);
    else response.destroy(new Error(`the store was silent for ${silenceMs} ms`));
  };
  socket.setTimeout(silenceMs);
  socket.on("timeout", onSilence);
  response.once("close", () => socket.off("timeout", onSilence));
  response.on("error", (error) => body.destroy(awayRefusal(error)));
  body.once("close", () => response.destroy());
  response.pipe(body);
  return body;
}
