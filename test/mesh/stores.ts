import { randomBytes } from "node:crypto";
import { jetstreamManager, type StreamAPI } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { Client } from "minio";
import { MongoClient } from "mongodb";
import { parseS3Url } from "#kit/blobs/s3-url.ts";
import { parseNatsUrl } from "#kit/queue/jetstream-url.ts";
import { findBackend } from "../support/backends.ts";
import { openTcpWire, type TcpWire } from "../support/tcp-wire.ts";

/** A database, a bucket and a stream that nobody else has, each behind a wire that can be cut and held up. */
export interface MeshStores extends AsyncDisposable {
  /** Variables that name them. */
  env: Record<string, string>;
  wires: Record<"mongodb" | "nats" | "s3", TcpWire>;
  /** Runs work on the stream's management, past the wire. */
  stream<T>(work: (streams: StreamAPI, name: string) => Promise<T>): Promise<T>;
}

/** Opens them; undefined where one of the servers cannot be had. What was put there is removed at the end. */
export async function openMeshStores(): Promise<MeshStores | undefined> {
  const names = ["mongodb", "nats", "s3"] as const;
  const found = await Promise.all(names.map(findBackend));
  const [mongodb, nats, s3] = found.map(({ url }) => url);
  if (!mongodb || !nats || !s3) return undefined;
  await using stack = new AsyncDisposableStack();
  const name = `genmesh-mesh-${randomBytes(6).toString("hex")}`;
  const behind = async (url: string) => stack.use(await openTcpWire(new URL(url).host));
  const wires = { mongodb: await behind(mongodb), nats: await behind(nats), s3: await behind(s3) };
  const through = (url: string, wire: TcpWire, path?: string) => {
    const changed = new URL(url);
    changed.host = wire.address;
    if (path) changed.pathname = path;
    return changed.href;
  };
  const stream: MeshStores["stream"] = async (work) => {
    const { servers, auth } = parseNatsUrl(nats);
    const connection = await connect({ servers, ...auth });
    try {
      const { streams } = await jetstreamManager(connection);
      return await work(streams, `${name}-wakes`);
    } finally {
      await connection.close();
    }
  };
  stack.defer(() => dropDatabase(mongodb, name));
  stack.defer(() =>
    removeBucket(through(s3, wires.s3, `/${name}`).replace(wires.s3.address, new URL(s3).host)),
  );
  stack.defer(async () => void (await stream((all, one) => all.delete(one)).catch(() => {})));
  const owned = stack.move();
  return {
    env: {
      GENMESH_DATABASE_URL: through(mongodb, wires.mongodb, `/${name}`),
      GENMESH_BLOBS_URL: through(s3, wires.s3, `/${name}`),
      GENMESH_QUEUE_URL: through(nats, wires.nats),
      GENMESH_NATS_NAME: name,
    },
    wires,
    stream,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

async function dropDatabase(url: string, name: string): Promise<void> {
  await using client = new MongoClient(url);
  await client.db(name).dropDatabase();
}

async function removeBucket(url: string): Promise<void> {
  const { host, port, secure, bucket, ...keys } = parseS3Url(url);
  const client = new Client({ ...keys, endPoint: host, port, useSSL: secure });
  if (!(await client.bucketExists(bucket))) return;
  const names: string[] = [];
  for await (const { name } of client.listObjectsV2(bucket, "", true)) names.push(name);
  await client.removeObjects(bucket, names);
  await client.removeBucket(bucket);
}
