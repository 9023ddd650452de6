import type { StreamAPI } from "@nats-io/jetstream";
import { ownStores, streamOf, withStreams } from "../support/stores.ts";
import { openTcpWire, type TcpWire } from "../support/tcp-wire.ts";

/** A database, a bucket and a stream that no other test has. Each is behind a connection that a test can cut and delay. */
export interface MeshStores extends AsyncDisposable {
  /** Variables that name them. */
  env: Record<string, string>;
  wires: Record<"mongodb" | "nats" | "s3", TcpWire>;
  /** Does work with the stream's management, directly at the server. */
  stream<T>(work: (streams: StreamAPI, name: string) => Promise<T>): Promise<T>;
}

/** Opens them. Undefined where one of the servers is missing. Their data are removed at the end. */
export async function openMeshStores(): Promise<MeshStores | undefined> {
  await using stack = new AsyncDisposableStack();
  const own = await ownStores(stack, "mesh");
  if (!own) return undefined;
  const { name, urls, env } = own;
  const behind = async (url: string) => stack.use(await openTcpWire(new URL(url).host));
  const wires = {
    mongodb: await behind(urls.mongodb),
    nats: await behind(urls.nats),
    s3: await behind(urls.s3),
  };
  const through = (one: keyof typeof wires) => {
    const changed = new URL(urls[one]);
    changed.host = wires[one].address;
    return changed.href;
  };
  const owned = stack.move();
  return {
    env: {
      ...env,
      GENMESH_DATABASE_URL: through("mongodb"),
      GENMESH_BLOBS_URL: through("s3"),
      GENMESH_QUEUE_URL: through("nats"),
    },
    wires,
    stream: (work) => withStreams(urls.nats, (streams) => work(streams, streamOf(name))),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
