import { copyFileSync, rmSync, statSync } from "node:fs";
import { statfs, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Peers } from "#common/agreements/peers.ts";
import { openSqlite } from "#kit/store/sqlite.ts";
import { Unit } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { createSqliteLedger } from "../services/billing/ledger/store-sqlite.ts";
import { operatorPeers } from "../services/host/cli/client.ts";
import { envToOperatorConfig } from "../services/host/config.ts";
import { createSqliteJobStore } from "../services/media/jobs/store-sqlite.ts";
import { type ServerUrls, storesAt } from "../test/support/stores.ts";
import { catalogFor, makeKeys } from "./accounts.ts";
import { genmeshEnv, genmeshNodeArgs, genmeshProgram, scratchFolder } from "./genmesh.ts";
import { seedMongo } from "./growth-mongo.ts";
import { type GrowthSize, seedSqlite, type Template } from "./growth-seed.ts";
import { runLoad } from "./load.ts";
import { host, nextPort } from "./ports.ts";
import { type BenchProcess, cpuMicrosOf, loadCore, startProgram, targetCore } from "./processes.ts";
import { getRequest, models, postRequest } from "./requests.ts";

/** Sizes of a filled store, by the words of `--growth`. */
export const growthSizes = {
  small: {
    accounts: 10_000,
    entries: 50_000,
    endedJobs: 10_000,
    waitingJobs: 10_000,
    waitingAccounts: 1_000,
    pageEntries: 200_000,
  },
  full: {
    accounts: 1_000_000,
    entries: 5_000_000,
    endedJobs: 1_000_000,
    waitingJobs: 100_000,
    waitingAccounts: 1_000,
    pageEntries: 5_000_000,
  },
} as const satisfies Record<string, GrowthSize & { pageEntries: number }>;

/** Bytes of a seeded store for each of its rows, at most. `df` must have room for them before anything is written. */
const mostBytesOfRow = 3_000;
/** Requests of a kind that are not counted, those that are counted, and how many are open at once. */
const [warmUp, counted, inFlight] = [600, 600, 8];
/** Claims that are timed directly at the store. */
const claims = 50;
const adminToken = "admin-token-of-the-bench";
const mostSeconds = 120;

/** Microseconds of CPU time of the process for each operation, and for those of a load the median milliseconds until its answer. */
export type GrowthFigures = Record<string, { cpuMicros: number; medianMs?: number }>;

/** The costs with an empty store and with a filled one, and what that is. */
export interface Growth {
  empty: GrowthFigures;
  filled: GrowthFigures;
  store: string;
}

/** Fills a SQLite store of one process and measures before and after. */
export async function grow(
  size: GrowthSize,
  { profileFolder, signal }: { profileFolder: string | undefined; signal: AbortSignal },
): Promise<Growth> {
  await using stack = new AsyncDisposableStack();
  const folder = await scratchFolder(stack);
  await refuseFullDisk(folder, size);
  const upstream = stack.use(startProgram("./upstream.ts", { core: loadCore }));
  await writeFile(
    join(folder, "catalog.json"),
    JSON.stringify(catalogFor(Number(await upstream.firstLine))),
  );
  const file = join(folder, "data", "genmesh.sqlite");
  let keys: string[] = [];
  let template: Template | undefined;
  {
    await using first = await startForGrowth(folder, {});
    keys = await makeKeys(first.peers);
    template = await makeTemplate(first);
  }
  // Opening moves the newest entries to the journal, so that rows are copied that are up to date.
  {
    using db = openSqlite(file);
    await createSqliteLedger(db).open();
  }
  // Both are measured from the same state, without the traces of an earlier measurement.
  const begin = join(folder, "begin.sqlite");
  copyFileSync(file, begin);
  const claim = () => claimMicros(file);
  const empty = await measure({ folder, claim, keys, profileFolder, signal });
  for (const suffix of ["-wal", "-shm"]) rmSync(`${file}${suffix}`, { force: true });
  copyFileSync(begin, file);
  seedSqlite(file, size, template);
  const filled = await measure({ folder, claim, keys, profileFolder, signal });
  return {
    empty,
    filled,
    store: `SQLite, a file of ${(statSync(file).size / 2 ** 20).toFixed(0)} MiB`,
  };
}

/** Measures one process at a MongoDB server, with a database that is all but empty and with a filled one. */
export async function growMongo(
  size: GrowthSize,
  servers: ServerUrls,
  signal: AbortSignal,
): Promise<Growth> {
  const empty = await measureMongo(undefined, servers, signal);
  return { empty, filled: await measureMongo(size, servers, signal), store: "MongoDB" };
}

async function measureMongo(
  size: GrowthSize | undefined,
  servers: ServerUrls,
  signal: AbortSignal,
) {
  await using stack = new AsyncDisposableStack();
  const folder = await scratchFolder(stack);
  const upstream = stack.use(startProgram("./upstream.ts", { core: loadCore }));
  await writeFile(
    join(folder, "catalog.json"),
    JSON.stringify(catalogFor(Number(await upstream.firstLine))),
  );
  const { urls } = storesAt(stack, servers, "bench-growth");
  const env = { GENMESH_DATABASE_URL: urls.mongodb };
  let keys: string[] = [];
  {
    await using first = await startForGrowth(folder, { env });
    keys = await makeKeys(first.peers);
    const template = await makeTemplate(first);
    if (size) await seedMongo(urls.mongodb, size, template);
  }
  return await measure({ folder, env, keys, profileFolder: undefined, signal });
}

async function refuseFullDisk(folder: string, size: GrowthSize): Promise<void> {
  const rows = size.accounts * 6 + size.entries + (size.endedJobs + size.waitingJobs) * 4;
  const { bavail, bsize } = await statfs(folder);
  if (bavail * bsize < rows * mostBytesOfRow) {
    throw new Error(`${folder} has no room for ${rows} rows of a store`);
  }
}

/** A process on a filled store. */
export interface GrowthProcess extends AsyncDisposable {
  child: BenchProcess;
  port: number;
  peers: Peers;
}

/** Starts one process with data and catalog in a folder. */
export async function startForGrowth(
  folder: string,
  { profileFolder, env = {} }: { profileFolder?: string | undefined; env?: Record<string, string> },
): Promise<GrowthProcess> {
  const grpcPort = await nextPort();
  const profile = profileFolder ? ["--cpu-prof", `--cpu-prof-dir=${profileFolder}`] : [];
  const child = startProgram(genmeshProgram, {
    core: targetCore,
    nodeArgs: [...genmeshNodeArgs, ...profile],
    env: {
      ...genmeshEnv,
      ...{ HOST: host, PORT: "0", GRPC_PORT: `${grpcPort}`, GENMESH_OPS_PORT: "0" },
      ...{ TMPDIR: folder, NODE_COMPILE_CACHE: join(folder, "compiled") },
      GENMESH_CATALOG: join(folder, "catalog.json"),
      GENMESH_ADMIN_TOKEN: adminToken,
      GENMESH_DATA_DIR: join(folder, "data"),
      GENMESH_DRAIN_MS: "500",
      ...env,
    },
  });
  const line = await child.firstLine;
  const operator = envToOperatorConfig({ GENMESH_ADMIN_TOKEN: adminToken });
  return {
    child,
    port: Number(new URL(/http:\S+/.exec(line)?.[0] ?? "").port),
    peers: operatorPeers(operator, `${host}:${grpcPort}`),
    [Symbol.asyncDispose]: () => child[Symbol.asyncDispose](),
  };
}

/** An account that the product makes: with funds, an answered request, a job that has ended and one that waits. */
async function makeTemplate({ port, peers }: GrowthProcess): Promise<Template> {
  const { account, secret } = await peers.auth.createAccount({ name: "copied" });
  const accountId = account?.accountId ?? "";
  for (const unit of [Unit.USD_MICROS, Unit.CREDITS]) {
    await peers.billing.grant({ accountId, unit, amount: 1_000_000_000n, operationId: "opening" });
  }
  const ask = async (path: string, body?: object) => {
    const answer = await fetch(`http://${host}:${port}/v1${path}`, {
      method: body ? "POST" : "GET",
      headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    const json = await answer.json();
    if (!answer.ok) throw new Error(`${path} was answered ${answer.status}`);
    return json;
  };
  await ask("/responses", { model: models.chat, input: "Hi" });
  const drawn = await ask("/images/generations", { model: models.drawn, prompt: "a boat" });
  while (!(await ask(`/images/generations/${drawn.id}`)).terminal) await delay(100);
  // The mock holds the first one for ever.
  await ask("/images/generations", { model: models.image, prompt: "a boat" });
  const waiting = await ask("/images/generations", { model: models.image, prompt: "a boat" });
  return { accountId, endedJob: drawn.id, waitingJob: waiting.id };
}

async function measure({
  folder,
  env = {},
  claim,
  keys,
  profileFolder,
  signal,
}: {
  folder: string;
  env?: Record<string, string>;
  /** Times a claim at the store itself. */
  claim?: () => Promise<number>;
  keys: readonly string[];
  profileFolder: string | undefined;
  signal: AbortSignal;
}): Promise<GrowthFigures> {
  const figures: GrowthFigures = {};
  {
    await using running = await startForGrowth(folder, { profileFolder, env });
    const { child, port } = running;
    figures.start = { cpuMicros: cpuMicrosOf([child.pid]) };
    const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
    const get = (path: string) => keys.map((key) => getRequest(path, bearer(key)));
    const kinds: Record<string, Buffer[]> = {
      "text request": keys.map((key) => postRequest("json", "/v1/responses", bearer(key))),
      "GET /billing": get("/v1/billing"),
      submission: keys.map((key) => postRequest("submit", "/v1/images/generations", bearer(key))),
      "GET /jobs": get("/v1/jobs?limit=20"),
    };
    for (const [name, requests] of Object.entries(kinds)) {
      signal.throwIfAborted();
      const load = { port, requests, inFlight, seconds: mostSeconds };
      await runLoad({ ...load, maxRequests: warmUp });
      const before = cpuMicrosOf([child.pid]);
      const { requests: done, latencyMs } = await runLoad({ ...load, maxRequests: counted });
      const cpuMicros = (cpuMicrosOf([child.pid]) - before) / done;
      figures[name] = { cpuMicros, medianMs: latencyMs.p50 };
    }
  }
  if (claim) figures.claim = { cpuMicros: await claim() };
  return figures;
}

/** The time of a claim without an obstacle, by this thread's clock. */
async function claimMicros(file: string): Promise<number> {
  using db = openSqlite(file);
  const store = createSqliteJobStore(db);
  const query = {
    kind: "image",
    owner: "bench",
    fullUpstreams: [],
    modelLimits: new Map(),
  } as const;
  const claim = async () => {
    const job = await store.claim({ ...query, now: Date.now() });
    if (!job) throw new Error("no job waits");
  };
  for (let i = 0; i < claims; i++) await claim();
  const from = process.threadCpuUsage();
  for (let i = 0; i < claims; i++) await claim();
  const { user, system } = process.threadCpuUsage(from);
  return (user + system) / claims;
}

/** A line each: the cost with an empty store, with the filled one, and their ratio. */
export function growthReport({ empty, filled, store }: Growth, size: GrowthSize): string {
  const words = Object.entries(size).map(([name, count]) => `${name} ${count}`);
  const rows = Object.entries(filled).map(([name, { cpuMicros, medianMs }]) => {
    const { cpuMicros: before = 0, medianMs: msBefore } = empty[name] ?? {};
    const times = (cpuMicros / before).toFixed(2);
    const cells = [before.toFixed(0), cpuMicros.toFixed(0), times];
    if (medianMs === undefined || msBefore === undefined) return [name, ...cells];
    return [
      name,
      ...cells,
      msBefore.toFixed(1),
      medianMs.toFixed(1),
      (medianMs / msBefore).toFixed(2),
    ];
  });
  const head = ["each", "µs of CPU", "filled", "times", "median ms", "filled", "times"];
  const lines = [head, ...rows].map(([name = "", ...cells]) =>
    `  ${name.padEnd(16)}${cells.map((cell) => cell.padStart(12)).join("")}`.trimEnd(),
  );
  return [`growth in ${store}: ${words.join(", ")}`, ...lines].join("\n");
}
