import type { IncomingMessage } from "node:http";
import { PassThrough, type Readable } from "node:stream";
import { finished } from "node:stream/promises";
import type { ByteRange, ListedBlob } from "#kit/store/blobs.ts";
import { isS3Fault, type S3Caller } from "./s3-call.ts";
import { awayRefusal } from "./s3-errors.ts";
import { listPageKeys, silenceMs, writeSilenceMs } from "./s3-limits.ts";
import type { Spooled } from "./s3-spool.ts";
import type { S3Target } from "./s3-url.ts";

/** What a store says of an object. */
export interface S3Object {
  sizeBytes: number;
  storedAtMs: number;
  /** Of the PUT that made it; undefined where it is not one of ours. */
  putId: string | undefined;
}

/** The requests of a bucket, each sent once; they reject with an S3CallError. */
export interface S3Bucket {
  /** Undefined where there is no such object. */
  head(key: string): Promise<S3Object | undefined>;
  /** Writes where nothing is; a signal that aborts before the last byte was handed over ends it. */
  write(key: string, content: Spooled, putId: string, signal?: AbortSignal): Promise<void>;
  read(key: string, range?: ByteRange): Promise<Readable>;
  remove(key: string): Promise<void>;
  /** Some objects in the order of their keys, those after `after`; none where there are no more. */
  page(prefix: string, after: string): Promise<ListedBlob[]>;
  /** Makes the bucket where it is missing. */
  make(): Promise<void>;
}

/** Metadata names the PUT that made an object. */
const putIdName = "genmesh-put";

/** The requests of `target`'s bucket. */
export function createS3Bucket(target: S3Target, caller: S3Caller): S3Bucket {
  return new BucketRequests(target, caller);
}

class BucketRequests implements S3Bucket {
  readonly #target: S3Target;
  readonly #caller: S3Caller;
  /** Found out by the first write: a store that does not know conditions says so, or ignores them. */
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
      // Another process was faster; another account's bucket of that name is not ours to use.
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
        // Its putObject would hold the whole object in memory.
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
 * An answer's body for a reader of any speed: a store that stays silent while the reader waits ends it with a refusal,
 * a reader that does not come for its bytes has all the time it likes. Destroying it closes the connection.
 */
function bodyOf(response: IncomingMessage): Readable {
  const body = new PassThrough();
  const { socket } = response;
  const onSilence = () => {
    // What waits here the reader has not fetched yet; only where nothing does, the store is to blame.
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
