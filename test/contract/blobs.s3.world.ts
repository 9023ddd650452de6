import { randomBytes } from "node:crypto";
import type { Client } from "minio";
import { afterEach, describe } from "vitest";
import { randomIds } from "#kit/base/ids.ts";
import { createLogger } from "#kit/base/logger.ts";
import { openS3Blobs, type S3Blobs, type S3BlobsOptions } from "#kit/store/blobs/s3.ts";
import { parseS3Url } from "#kit/store/blobs/s3-url.ts";
import { systemClock } from "#kit/time/clock.ts";
import { findBackend } from "../support/backends.ts";
import { removeBucket, s3Client } from "../support/stores.ts";

/** Buckets of some tests on one server. */
export interface S3Tests {
  /** The URL of a bucket that no other test has. It is removed with its content after the test. */
  newUrl(): string;
  /** A store of the test's own, closed after the test. It is in a new bucket where no URL is given. */
  open(url?: string, options?: Partial<S3BlobsOptions>): Promise<S3Blobs>;
  /** The server itself, to change stored data. */
  raw: Client;
  /** The bucket of a URL. */
  bucketOf(url: string): string;
}

/** Tests on an S3 server. Without one, a skipped test shows the reason. */
export async function describeS3(title: string, tests: (s3: S3Tests) => void): Promise<void> {
  const { url, note } = await findBackend("s3");
  describe.skipIf(url === undefined)(`${title}${note}`, () => {
    tests(s3Tests(url ?? "s3+http://nobody:nothing@localhost/nowhere"));
  });
}

/** Opens a store with this machine's clock and no log. */
export function openTestBlobs(url: string, options: Partial<S3BlobsOptions> = {}) {
  const log = createLogger("silent");
  return openS3Blobs({ url, clock: systemClock, ids: randomIds, log, ...options });
}

function s3Tests(url: string): S3Tests {
  const raw = s3Client(url);
  const urls: string[] = [];
  const stores: S3Blobs[] = [];
  const bucketOf = (one: string) => parseS3Url(one).bucket;
  afterEach(async () => {
    for (const store of stores.splice(0)) await store[Symbol.asyncDispose]();
    for (const one of urls.splice(0)) await removeBucket(raw, bucketOf(one));
  });
  const newUrl = () => {
    const own = new URL(url);
    own.pathname = `/genmesh-test-${randomBytes(6).toString("hex")}`;
    urls.push(own.href);
    return own.href;
  };
  return {
    raw,
    bucketOf,
    newUrl,
    async open(own = newUrl(), options = {}) {
      const store = await openTestBlobs(own, options);
      stores.push(store);
      return store;
    },
  };
}
