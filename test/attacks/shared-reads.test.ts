import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Unit } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import type { Caller } from "../e2e/caller.ts";
import { oneProcessOnly, startWorld, type World } from "../e2e/world.ts";
import { slowness } from "../support/reference-machine.ts";

/** Simultaneous reads of one account. */
const atOnce = 200;
/**
 * Milliseconds of CPU time while another account's request waits. This thread is the server and all callers. On a machine with other work a
 * request waits longer, and no read causes that.
 */
const graceMs = 2_000;
const entries = 3_000;
const keys = 400;

let world: World;
let hostile: Caller;
let other: Caller;
oneProcessOnly();
beforeAll(async () => {
  world = await startWorld();
  const owner = await world.caller();
  hostile = await world.withKey(owner, {
    scopes: [Scope.KEYS, Scope.USAGE_READ_ALL, Scope.BILLING, Scope.WEBHOOKS, Scope.FILES],
  });
  other = await world.caller();
  const { accountId } = owner;
  const grants = Array.from({ length: entries }, (_, at) => ({
    ...{ accountId, unit: Unit.USD_MICROS, amount: 1n, operationId: `entry-${at}` },
  }));
  await Promise.all(grants.map((grant) => world.admin.billing.grant(grant)));
  const models = Array.from({ length: 100 }, (_, at) => `model-${at}-${"x".repeat(40)}`);
  const makes = Array.from({ length: keys }, (_, at) => ({ name: `key ${at}`, models }));
  for (const body of makes) await hostile.post("/keys", body);
});
afterAll(() => world?.[Symbol.asyncDispose]());

/** The most CPU time while one of the other account's requests waited. They are sent one after the other. */
async function slowest(meanwhile: () => Promise<unknown>): Promise<number> {
  let [worst, isOver] = [0, false];
  const work = meanwhile().finally(() => {
    isOver = true;
  });
  do {
    const from = computedMs();
    expect((await other.get("/models")).status).toBe(200);
    worst = Math.max(worst, computedMs() - from);
  } while (!isOver);
  await work;
  return worst;
}

function computedMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}

describe("another account is served while one reads", {
  timeout: 240_000,
}, () => {
  test.each([
    ["its entries, as CSV", "/billing/entries?format=csv"],
    ["its entries, a thousand a page", "/billing/entries?limit=1000"],
    ["requests that there are none of", "/requests?model=none&kind=speech"],
    ["its keys", "/keys"],
    ["its usage", "/usage?start_time=0&bucket_width=1h&limit=168&group_by[]=model"],
    ["its webhooks", "/webhooks?limit=100"],
    ["its jobs", "/jobs?limit=100"],
    ["its files", "/files?limit=1000"],
    ["its holds", "/billing/holds?limit=1000"],
  ])("%s", async (_, path) => {
    const quiet = await slowest(() => other.get("/models"));
    let statuses: number[] = [];
    const harmed = await slowest(async () => {
      const all = Array.from({ length: atOnce }, () => hostile.get(path));
      statuses = (await Promise.all(all)).map(({ status }) => status);
    });
    expect(harmed).toBeLessThan(quiet + graceMs * slowness());
    // Reads without room are refused, and none fails.
    expect(statuses.filter((status) => status !== 200 && status !== 429)).toEqual([]);
    expect(statuses.filter((status) => status === 200).length).toBeGreaterThanOrEqual(60);
  });
});
