import { statSync } from "node:fs";
import { statfs, writeFile } from "node:fs/promises";
import { request as httpRequest } from "node:http";
import { join } from "node:path";
import type { Peers } from "#common/agreements/peers.ts";
import type { Database } from "#kit/store/database.ts";
import { openMongo } from "#kit/store/mongo/connect.ts";
import { openSqlite } from "#kit/store/sqlite.ts";
import { Unit } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import { type ServerUrls, storesAt } from "../test/support/stores.ts";
import { catalogFor } from "./accounts.ts";
import { scratchFolder } from "./genmesh.ts";
import { type GrowthProcess, startForGrowth } from "./growth.ts";
import { answerIdOf, fillLedger, firstTime, requestIdOf } from "./growth-ledger.ts";
import { runLoad } from "./load.ts";
import { host } from "./ports.ts";
import { cpuMicrosOf, loadCore, startProgram } from "./processes.ts";
import { getRequest } from "./requests.ts";

/** Entries of the small ledger, with which a large one is compared. It fills all hours of 31 days, and every page. */
const fewEntries = 50_000;
/** Bytes on disk for an entry and its counts, at most. */
const mostBytesOfEntry = 1_500;
/** Calls of a page that are not counted, those that are counted, and how many are open at once. */
const [warmUp, counted, inFlight] = [40, 120, 2];
/** CSV files whose first bytes are measured. */
const csvFiles = 20;
const keyCount = 4;
const mostSeconds = 120;

/** The cost of one call of a page: CPU time of the process in microseconds, and milliseconds until its answer. */
interface PageCost {
  cpuMicros: number;
  medianMs: number;
}
type PageCosts = Record<string, PageCost>;

/** The costs of pages with a small and with a large ledger. */
export interface PageGrowth {
  few: PageCosts;
  many: PageCosts;
  entries: number;
  store: string;
}

/**
 * Measures the costs of an account's pages of its ledger, with few entries and with many. The ledger is in a SQLite file, or at a MongoDB
 * server.
 */
export async function growPages(
  entries: number,
  { servers, signal }: { servers: ServerUrls | undefined; signal: AbortSignal },
): Promise<PageGrowth> {
  const few = await measureLedger(Math.min(fewEntries, entries), { servers, signal });
  const many = await measureLedger(entries, { servers, signal });
  const store = servers ? "MongoDB" : `SQLite, a file of ${many.mib.toFixed(0)} MiB`;
  return { few: few.costs, many: many.costs, entries, store };
}

async function measureLedger(
  entries: number,
  { servers, signal }: { servers: ServerUrls | undefined; signal: AbortSignal },
): Promise<{ costs: PageCosts; mib: number }> {
  await using stack = new AsyncDisposableStack();
  const folder = await scratchFolder(stack);
  const { bavail, bsize } = await statfs(folder);
  if (bavail * bsize < entries * mostBytesOfEntry) {
    throw new Error(`${folder} has no room for ${entries} entries`);
  }
  const upstream = stack.use(startProgram("./upstream.ts", { core: loadCore }));
  await writeFile(
    join(folder, "catalog.json"),
    JSON.stringify(catalogFor(Number(await upstream.firstLine))),
  );
  const stores = servers && storesAt(stack, servers, "bench-pages");
  const env: Record<string, string> = stores ? { GENMESH_DATABASE_URL: stores.urls.mongodb } : {};
  let owner: Owner;
  {
    await using first = await startForGrowth(folder, { env });
    owner = await makeOwner(first.peers);
  }
  const file = join(folder, "data", "genmesh.sqlite");
  const now = Date.now();
  {
    await using filling = new AsyncDisposableStack();
    const database: Database = stores
      ? { kind: "mongodb", mongo: filling.use(openMongo({ url: stores.urls.mongodb })) }
      : { kind: "sqlite", sqlite: filling.use(openSqlite(file)) };
    await fillLedger(database, { ...owner, entries }, { now, signal });
  }
  await using running = await startForGrowth(folder, { env });
  const costs = await measurePages(running, owner, { now, requests: entries / 2, signal });
  return { costs, mib: stores ? 0 : statSync(file).size / 2 ** 20 };
}

/** An account, and a key that sees all of it. */
interface Owner {
  accountId: string;
  keyIds: string[];
  secret: string;
}

async function makeOwner({ auth, billing }: Peers): Promise<Owner> {
  const { account } = await auth.createAccount({ name: "pages" });
  const accountId = account?.accountId ?? "";
  const amount = 1_000_000_000_000n;
  await billing.grant({ accountId, unit: Unit.USD_MICROS, amount, operationId: "pages" });
  const keyIds: string[] = [];
  for (let i = 0; i < keyCount; i++) {
    keyIds.push((await auth.createKey({ accountId })).key?.keyId ?? "");
  }
  const scopes = [Scope.BILLING, Scope.USAGE_READ_ALL];
  const { secret } = await auth.createKey({ accountId, scopes, requestsPerMinute: 1_000_000 });
  return { accountId, keyIds, secret };
}

function pagesOf(owner: Owner, { now, requests }: { now: number; requests: number }) {
  const [day, begin] = [86_400, Math.floor(firstTime(now) / 1_000)];
  const month = `/usage?start_time=${begin}&end_time=${begin + 31 * day}&limit=31`;
  const week = `/usage?start_time=${begin + 24 * day}&end_time=${begin + 31 * day}&bucket_width=1h&limit=168`;
  // A place two days after the first request. There a page is full even in a small ledger and with any filter.
  const deep = `after=${firstTime(now) + 2 * 86_400_000}.u.1`;
  const key = owner.keyIds[1];
  const middle = Math.floor(requests / 2);
  return {
    "/usage, 31 days": month,
    "/usage, 31 days by model": `${month}&group_by[]=model`,
    "/usage, 31 days by key and kind": `${month}&group_by[]=api_key_id&group_by[]=kind`,
    "/usage, 168 hours by model": `${week}&group_by[]=model`,
    "/usage, 31 days of one key": `${month}&api_key_ids[]=${key}`,
    "/usage as CSV": `${month}&group_by[]=model&format=csv`,
    "/requests": "/requests?limit=25",
    "/requests, a deep page": `/requests?limit=25&${deep}`,
    "/requests of a key, deep": `/requests?limit=25&key=${key}&${deep}`,
    "/requests of a model, deep": `/requests?limit=25&model=seldom&${deep}`,
    "/requests that failed, deep": `/requests?limit=25&status=failed&${deep}`,
    "/requests of a key and model": `/requests?limit=25&key=${key}&model=sometimes`,
    "/requests of a key that failed": `/requests?limit=25&key=${owner.keyIds[0]}&status=failed`,
    "/requests of no such model": "/requests?limit=25&model=never",
    "/requests of a key, no such model": `/requests?limit=25&key=${key}&model=never`,
    "/generation of an answer": `/generation?id=${answerIdOf(middle)}`,
    "/generation of a request id": `/generation?id=${requestIdOf(middle)}`,
    "/billing/entries": "/billing/entries",
    "/billing/entries, deep": `/billing/entries?${deep}`,
    "/billing/entries of grants": "/billing/entries?kind=grant",
    "/billing/holds": "/billing/holds",
    "/billing": "/billing",
    "/key": "/key",
  };
}

async function measurePages(
  { child, port, peers }: GrowthProcess,
  owner: Owner,
  { now, requests, signal }: { now: number; requests: number; signal: AbortSignal },
): Promise<PageCosts> {
  const costs: PageCosts = {};
  const cpu = () => cpuMicrosOf([child.pid]);
  const authorization = { authorization: `Bearer ${owner.secret}` };
  for (const [name, path] of Object.entries(pagesOf(owner, { now, requests }))) {
    signal.throwIfAborted();
    const load = {
      ...{ port, inFlight, seconds: mostSeconds },
      requests: [getRequest(`/v1${path}`, authorization)],
    };
    const before = await runLoad({ ...load, maxRequests: warmUp });
    if (before.failures > 0) throw new Error(`${name} was not answered: ${before.firstFailure}`);
    const from = cpu();
    const { requests: done, latencyMs } = await runLoad({ ...load, maxRequests: counted });
    costs[name] = { cpuMicros: (cpu() - from) / done, medianMs: latencyMs.p50 };
  }
  const csv = `/v1/billing/entries?format=csv`;
  const begin = () => firstBytes(port, csv, authorization);
  for (let i = 0; i < csvFiles; i++) await begin();
  const times: number[] = [];
  const from = cpu();
  for (let i = 0; i < csvFiles; i++) times.push(await begin());
  costs["/billing/entries as CSV, its begin"] = {
    cpuMicros: (cpu() - from) / csvFiles,
    medianMs: times.sort((a, b) => a - b)[csvFiles / 2] ?? 0,
  };
  const [auditFrom, auditAt] = [cpu(), performance.now()];
  let entries = 0;
  for await (const { finding } of peers.billing.auditLedger(
    { accountId: owner.accountId },
    { timeoutMs: 0 },
  )) {
    if (finding.case === "difference") throw new Error("the ledger does not audit");
    if (finding.case === "summary") entries = Number(finding.value.entries);
  }
  costs["ledger audit, an entry"] = {
    cpuMicros: (cpu() - auditFrom) / entries,
    medianMs: (performance.now() - auditAt) / entries,
  };
  return costs;
}

/** Requests a file and leaves after its first bytes. Answers the milliseconds until they came. */
function firstBytes(port: number, path: string, headers: Record<string, string>): Promise<number> {
  const beganAt = performance.now();
  return new Promise((resolve, reject) => {
    const request = httpRequest({ host, port, path, headers, agent: false }, (response) => {
      response.once("data", () => {
        resolve(performance.now() - beganAt);
        request.destroy();
      });
      response.on("error", () => {});
    });
    request.on("error", reject);
    request.end();
  });
}

/** A line for each page: its cost with few entries, with many, and their ratio. */
export function pagesReport({ few, many, entries, store }: PageGrowth): string {
  const lines = Object.entries(many).map(([name, cost]) => {
    const before = few[name] ?? cost;
    const cells = [
      before.cpuMicros.toFixed(1),
      cost.cpuMicros.toFixed(1),
      (cost.cpuMicros / before.cpuMicros).toFixed(2),
      before.medianMs.toFixed(2),
      cost.medianMs.toFixed(2),
    ];
    return `  ${name.padEnd(36)}${cells.map((cell) => cell.padStart(12)).join("")}`;
  });
  const heads = ["µs CPU, few", "many", "times", "ms, few", "many"];
  return [
    `pages of one account's ledger: few is ${fewEntries} entries, many ${entries}; ${store}`,
    `  ${"".padEnd(36)}${heads.map((head) => head.padStart(12)).join("")}`,
    ...lines,
  ].join("\n");
}
