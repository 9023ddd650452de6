import { randomBytes } from "node:crypto";
import { jetstreamManager, type StreamAPI } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { Client } from "minio";
import { MongoClient } from "mongodb";
import { parseNatsUrl } from "#kit/queue/jetstream-url.ts";
import { parseS3Url } from "#kit/store/blobs/s3-url.ts";
import { findBackend } from "./backends.ts";

/** A database, a bucket and a stream of the test's own at the real servers. */
export interface OwnStores {
  /** The name of the database, the bucket and other data on the servers. */
  name: string;
  /** The servers, with the paths of the database and the bucket. */
  urls: { mongodb: string; nats: string; s3: string };
  /** Variables that name them. */
  env: Record<string, string>;
}

/** The addresses of real servers. */
export type ServerUrls = OwnStores["urls"];

/** Chooses names at the configured servers. Undefined where one is missing. `stack` removes the data of these names. */
export async function ownStores(
  stack: AsyncDisposableStack,
  purpose: string,
): Promise<OwnStores | undefined> {
  const found = await Promise.all((["mongodb", "nats", "s3"] as const).map(findBackend));
  const [mongodb, nats, s3] = found.map(({ url }) => url);
  return mongodb && nats && s3 ? storesAt(stack, { mongodb, nats, s3 }, purpose) : undefined;
}

/** Chooses names at these servers. `stack` removes the data of these names. */
export function storesAt(
  stack: AsyncDisposableStack,
  servers: ServerUrls,
  purpose: string,
): OwnStores {
  const name = nameFor(purpose);
  const { mongodb, nats, s3 } = servers;
  const urls = { mongodb: withPath(mongodb, name), nats, s3: withPath(s3, name) };
  stack.defer(() => dropDatabase(urls.mongodb));
  stack.defer(() => removeBucket(s3Client(urls.s3), name));
  stack.defer(() => withStreams(nats, (streams) => removeStream(streams, name)));
  return {
    name,
    urls,
    env: {
      GENMESH_DATABASE_URL: urls.mongodb,
      GENMESH_BLOBS_URL: urls.s3,
      GENMESH_QUEUE_URL: nats,
      GENMESH_NATS_NAME: name,
    },
  };
}

/** Chooses a bucket at this server. `stack` removes it. */
export function ownBucket(stack: AsyncDisposableStack, s3: string, purpose: string): string {
  const name = nameFor(purpose);
  const url = withPath(s3, name);
  stack.defer(() => removeBucket(s3Client(url), name));
  return url;
}

/** A name that no other test has, for a database, a bucket and other data on a server. */
export function nameFor(purpose: string): string {
  return `genmesh-${purpose}-${randomBytes(6).toString("hex")}`;
}

/** A client of the server behind a URL, for work of a test that the product does not do. */
export function s3Client(url: string): Client {
  const { host, port, secure, bucket: _, ...keys } = parseS3Url(url);
  return new Client({ ...keys, endPoint: host, port, useSSL: secure });
}

/** Puts an object into a bucket that exists. Answers a URL at which it can be read without a key for an hour. */
export async function putReadable(url: string, name: string, bytes: Buffer): Promise<string> {
  const client = s3Client(url);
  const { bucket } = parseS3Url(url);
  await client.putObject(bucket, name, bytes);
  return client.presignedGetObject(bucket, name, readableSeconds);
}

const readableSeconds = 60 * 60;

/** Removes a bucket with its content, where there is one. */
export async function removeBucket(client: Client, bucket: string): Promise<void> {
  if (!(await client.bucketExists(bucket))) return;
  for (;;) {
    const { objects } = await client.listObjectsV2Query(bucket, "", "", "", 250, "");
    if (objects.length === 0) break;
    for (const { name } of objects) if (name) await client.removeObject(bucket, name);
  }
  await client.removeBucket(bucket);
}

/** Does work with the management of a server's streams. */
export async function withStreams<T>(
  url: string,
  work: (streams: StreamAPI) => Promise<T>,
): Promise<T> {
  const { servers, auth } = parseNatsUrl(url);
  const connection = await connect({ servers, ...auth });
  try {
    return await work((await jetstreamManager(connection)).streams);
  } finally {
    await connection.close();
  }
}

/** Removes the wake-ups of a mesh, where there are any. */
export async function removeStream(streams: StreamAPI, name: string): Promise<void> {
  await streams.delete(streamOf(name)).catch(() => {});
}

/** The stream of a mesh of this name. */
export function streamOf(name: string): string {
  return `${name}-wakes`;
}

/** The database or bucket of this name. Only for a URL of a server. */
export function withPath(url: string, path: string): string {
  const changed = new URL(url);
  changed.pathname = `/${path}`;
  return changed.href;
}

async function dropDatabase(url: string): Promise<void> {
  await using client = new MongoClient(url);
  await client.db().dropDatabase();
}
