import { randomBytes } from "node:crypto";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect as connectNats } from "@nats-io/transport-node";
import { Client } from "minio";
import { MongoClient } from "mongodb";
import { parseS3Url } from "#kit/blobs/s3-url.ts";
import { parseNatsUrl } from "#kit/queue/jetstream-url.ts";

/** Where real servers are. */
export interface ServerUrls {
  mongodb: string;
  nats: string;
  s3: string;
}

/**
 * Variables of a database, a bucket and a stream that nobody has, each named `prefix` and something random. `stack`
 * removes what was put there.
 */
export function ownStores(stack: AsyncDisposableStack, urls: ServerUrls, prefix: string) {
  const name = `${prefix}-${randomBytes(6).toString("hex")}`;
  const [database, blobs] = [new URL(urls.mongodb), new URL(urls.s3)];
  database.pathname = blobs.pathname = `/${name}`;
  stack.defer(() => dropDatabase(database.href));
  stack.defer(() => removeBucket(blobs.href));
  stack.defer(() => removeStream(urls.nats, `${name}-wakes`));
  return {
    GENMESH_DATABASE_URL: database.href,
    GENMESH_BLOBS_URL: blobs.href,
    GENMESH_QUEUE_URL: urls.nats,
    GENMESH_NATS_NAME: name,
  };
}

/** Puts an object into a bucket that exists; a URL at which anybody may read it for an hour. */
export async function putReadable(blobsUrl: string, name: string, bytes: Buffer): Promise<string> {
  const { client, bucket } = bucketOf(blobsUrl);
  await client.putObject(bucket, name, bytes);
  return client.presignedGetObject(bucket, name, readableSeconds);
}

const readableSeconds = 60 * 60;

function bucketOf(url: string): { client: Client; bucket: string } {
  const { host, port, secure, bucket, ...keys } = parseS3Url(url);
  return { client: new Client({ ...keys, endPoint: host, port, useSSL: secure }), bucket };
}

async function dropDatabase(url: string): Promise<void> {
  await using client = new MongoClient(url);
  await client.db().dropDatabase();
}

async function removeBucket(url: string): Promise<void> {
  const { client, bucket } = bucketOf(url);
  if (!(await client.bucketExists(bucket))) return;
  const names: string[] = [];
  for await (const { name } of client.listObjectsV2(bucket, "", true)) names.push(name);
  await client.removeObjects(bucket, names);
  await client.removeBucket(bucket);
}

async function removeStream(url: string, stream: string): Promise<void> {
  const { servers, auth } = parseNatsUrl(url);
  const connection = await connectNats({ servers, ...auth });
  const manager = await jetstreamManager(connection);
  await manager.streams.delete(stream).catch(() => {});
  await connection.close();
}
