import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, expect, test } from "vitest";
import { HoldKind, Unit } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { until } from "../support/until.ts";
import { refusalOf } from "./caller.ts";
import { adminToken, operatorSession } from "./operator-session.ts";
import { isOwnWorld, ownWorldOnly, startWorld } from "./world.ts";

const world = await startWorld({ env: { GENMESH_ADMIN_TOKEN: adminToken } });
afterAll(() => world[Symbol.asyncDispose]());
ownWorldOnly();
const { get, patch, post, signIn } = operatorSession(world);
beforeAll(async () => {
  if (isOwnWorld) await signIn();
});

test("an account's rate bounds all of its keys together within a second, and can be lifted", async () => {
  const caller = await world.caller();
  const { accountId } = caller;
  const other = await world.withKey(caller, {});
  const path = `/accounts/${accountId}`;
  expect((await patch(path, { requestsPerMinute: 3 }, { secret: "" })).code).toBe(
    "secret_required",
  );
  const set = await patch(path, { requestsPerMinute: 3 });
  expect(set.json).toMatchObject({ id: accountId, requestsPerMinute: 3, rateIsSet: true });
  const overRate = "429 rate_limit_error rate_limit_exceeded null";
  for (const one of [caller, other]) {
    await until("the rate", async () => refusalOf(await one.get("/models")) === overRate, {
      withinMs: 60_000,
    });
  }
  expect((await patch(path, { requestsPerMinute: null })).json).toMatchObject({
    ...{ requestsPerMinute: 6_000, rateIsSet: false },
  });
  await until("the default", async () => (await other.get("/models")).status === 200, {
    withinMs: 60_000,
  });
});

test("a name and notes: every list has the name, none has the notes, and the log has neither", async () => {
  const caller = await world.caller({ credits: 5n });
  const { accountId, keyId } = caller;
  const path = `/accounts/${accountId}`;
  const texts = { name: "Ninth Fleet", notes: "pays\nby invoice" };
  expect((await patch(path, texts)).json).toMatchObject({ id: accountId, ...texts });
  expect((await get(path)).json).toMatchObject(texts);
  const found = (await get("/accounts?query=ninth")).json.data;
  expect(found).toMatchObject([{ id: accountId, name: texts.name }]);
  await world.admin.billing.reserve({
    ...{ accountId, unit: Unit.CREDITS, holdId: "hold_named", keyId, amount: 1n },
    ...{ kind: HoldKind.JOB, ref: "job_named" },
    checkTime: timestampFromMs(world.now() + 86_400_000),
  });
  expect((await caller.post("/responses", { model: "scripted", input: "Hi" })).status).toBe(200);
  const of = `?account=${accountId}`;
  for (const list of [`/keys${of}`, `/keys?query=${keyId}`, `/holds${of}`, `/audit${of}`]) {
    const { data } = (await get(list)).json;
    expect(data.length, list).toBeGreaterThan(0);
    for (const row of data) expect(row).toMatchObject({ accountId, accountName: texts.name });
  }
  await until("the request", async () => {
    const { data } = (await get(`/requests${of}`)).json;
    return data[0]?.accountName === texts.name;
  });
  const { json: log } = await get(`/audit${of}`);
  expect(log.data[0].details).toEqual({ changed: "name, notes" });
  for (const list of ["/accounts", `/keys${of}`, `/audit${of}`]) {
    expect(JSON.stringify((await get(list)).json)).not.toContain("invoice");
  }
});

test("a monthly grant is set with the rest, shown, logged by its figures, and cleared", async () => {
  const { accountId } = await world.caller();
  const path = `/accounts/${accountId}`;
  expect((await get(path)).json.monthlyGrant).toBeNull();
  const set = { monthlyGrantUsdMicros: 25_000_000, monthlyGrantCredits: 40 };
  const now = new Date(world.now());
  const nextAt = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1)).toISOString();
  const monthlyGrant = { usdMicros: 25_000_000, credits: 40, nextAt };
  expect((await patch(path, { ...set, name: "Funded" })).json).toMatchObject({
    ...{ name: "Funded", monthlyGrant },
  });
  expect((await get(path)).json).toMatchObject({ monthlyGrant });
  const { json: log } = await get(`/audit?account=${accountId}&limit=1`);
  expect(log.data[0].details).toEqual({
    ...{ changed: "monthlyGrantUsdMicros, monthlyGrantCredits, name", ...set },
  });
  const wrong = { monthlyGrantUsdMicros: -1, monthlyGrantCredits: 5 };
  expect((await patch(path, wrong)).json.error.param).toBe("monthlyGrantUsdMicros");
  expect((await patch(path, { monthlyGrantCredits: 0.5 })).code).toBe("invalid_type");
  expect((await get(path)).json).toMatchObject({ monthlyGrant });
  const credits = { usdMicros: 0, credits: 40, nextAt };
  const without = await patch(path, { monthlyGrantUsdMicros: null });
  expect(without.json.monthlyGrant).toEqual(credits);
  expect((await patch(path, { monthlyGrantCredits: 0 })).json.monthlyGrant).toBeNull();
  // Setting it moved no money.
  const { entries } = await world.admin.billing.listEntries({ accountId });
  expect(entries).toHaveLength(1);
});

test("a wrong change is refused with its field, and changes nothing", async () => {
  const { accountId } = await world.caller();
  const path = `/accounts/${accountId}`;
  const before = (await get(path)).json;
  const wrong = async (body: object) => {
    const { status, json } = await patch(path, body);
    return [status, json.error.code, json.error.param];
  };
  expect(await wrong({ requestsPerMinute: 0 })).toEqual([
    ...[400, "invalid_value", "requestsPerMinute"],
  ]);
  expect(await wrong({ requestsPerMinute: "9" })).toEqual([
    ...[400, "invalid_type", "requestsPerMinute"],
  ]);
  expect(await wrong({ requestsPerMinute: 9, suspended: true })).toEqual([
    ...[400, "unsupported_parameter", "suspended"],
  ]);
  expect((await get(path)).json).toEqual(before);
  expect((await patch("/accounts/acct_none", { requestsPerMinute: 9 })).code).toBe(
    "object_not_found",
  );
  await post(`${path}/close`, { confirm: accountId });
  expect((await patch(path, { requestsPerMinute: 9 })).code).toBe("state_conflict");
});
