import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect as connectNats } from "@nats-io/transport-node";
import { Client } from "minio";
import { MongoClient } from "mongodb";
import { parseS3Url } from "#kit/blobs/s3-url.ts";
import type { Peers } from "#kit/peers.ts";
import { parseNatsUrl } from "#kit/queue/jetstream-url.ts";
import { operatorPeers } from "../../services/host/cli/client.ts";
import { envToOperatorConfig } from "../../services/host/config.ts";
import { readMeshArguments } from "../../services/host/run-mesh/options.ts";
import { startLocalMesh } from "../../services/host/run-mesh/run.ts";
import { findBackend } from "./backends.ts";

/** Every role as processes of its own, on stores of its own at the real servers. */
export interface MeshProcesses extends AsyncDisposable {
  /** Of every gateway. */
  baseUrls: string[];
  /** With the admin token. */
  operator: Peers;
  /** Every process has it so much later, at the latest when this resolves. */
  jump(ms: number): Promise<void>;
}

/** Milliseconds in which every process has seen that the clock jumped; they look every 20. */
const jumpedWithinMs = 200;
const clock = fileURLToPath(new URL("./mesh-clock.ts", import.meta.url));

/**
 * Starts a mesh and resolves when all of it is ready; undefined where there is no server for one of its stores. `replicas`:
 * of each role.
 */
export async function startMeshProcesses(options: {
  replicas: string;
  dataDir: string;
  env: Record<string, string>;
  /** Takes what all processes log, a JSON object a line. */
  log: string[];
}): Promise<MeshProcesses | undefined> {
  await using stack = new AsyncDisposableStack();
  const stores = await ownStores(stack);
  if (!stores) return undefined;
  const { dataDir, log } = options;
  const clockFile = join(dataDir, "clock");
  writeFileSync(clockFile, "0");
  const env = {
    PATH: process.env.PATH,
    PORT: "0",
    GENMESH_DATA_DIR: dataDir,
    GENMESH_LOG_LEVEL: "trace",
    // What a test leaves open must not keep its world.
    GENMESH_DRAIN_MS: "1000",
    TEST_CLOCK_FILE: clockFile,
    ...stores,
    ...options.env,
  };
  const mesh = await startLocalMesh({
    ...readMeshArguments(["--replicas", options.replicas, "--internal-port", "0"]),
    env,
    log(line) {
      const said = line.slice(line.indexOf("|") + 2);
      if (said.startsWith("{")) log.push(said);
    },
    nodeArgs: ["--import", clock],
    signal: AbortSignal.timeout(startWithinMs),
  });
  stack.defer(() => mesh.stop(AbortSignal.timeout(stopWithinMs)));
  const operator = operatorPeers(envToOperatorConfig({ ...env, ...mesh.operatorEnv }), undefined);
  let aheadMs = 0;
  const owned = stack.move();
  return {
    baseUrls: mesh.baseUrls,
    operator,
    async jump(ms) {
      aheadMs += ms;
      writeFileSync(clockFile, `${aheadMs}`);
      await delay(jumpedWithinMs);
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** Milliseconds; seven processes compete for the cores of a test machine with whatever else runs there. */
const [startWithinMs, stopWithinMs] = [120_000, 15_000];

/** Variables of a database, a bucket and a stream that nobody has; `stack` removes what was put there. */
export async function ownStores(stack: AsyncDisposableStack) {
  const [mongodb, nats, s3] = await Promise.all([
    findBackend("mongodb"),
    findBackend("nats"),
    findBackend("s3"),
  ]);
  if (!mongodb.url || !nats.url || !s3.url) return undefined;
  const name = `genmesh-e2e-${randomBytes(6).toString("hex")}`;
  const [database, blobs] = [new URL(mongodb.url), new URL(s3.url)];
  database.pathname = blobs.pathname = `/${name}`;
  stack.defer(() => dropDatabase(database.href));
  stack.defer(() => removeBucket(blobs.href));
  stack.defer(() => removeStream(nats.url ?? "", `${name}-wakes`));
  return {
    GENMESH_DATABASE_URL: database.href,
    GENMESH_BLOBS_URL: blobs.href,
    GENMESH_QUEUE_URL: nats.url,
    GENMESH_NATS_NAME: name,
  };
}

async function dropDatabase(url: string): Promise<void> {
  await using client = new MongoClient(url);
  await client.db().dropDatabase();
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

async function removeStream(url: string, stream: string): Promise<void> {
  const { servers, auth } = parseNatsUrl(url);
  const connection = await connectNats({ servers, ...auth });
  const manager = await jetstreamManager(connection);
  await manager.streams.delete(stream).catch(() => {});
  await connection.close();
}
