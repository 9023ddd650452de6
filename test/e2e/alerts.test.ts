import { afterAll, describe, expect, test } from "vitest";
import { deliverWaiting } from "#common/agreements/alert-delivery.ts";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import { until } from "../support/until.ts";
import { type Received, startWebhookReceiver, verified } from "../support/webhook-receiver.ts";
import { type Caller, refusalOf } from "./caller.ts";
import { keyManagers, send } from "./key-owners.ts";
import { ownWorldOnly, startWorld } from "./world.ts";

const world = await startWorld({ env: { GENMESH_ALLOW_PRIVATE_REFERENCES: "1" } });
const receiver = await startWebhookReceiver();
afterAll(async () => {
  await receiver[Symbol.asyncDispose]();
  await world[Symbol.asyncDispose]();
});
ownWorldOnly();
const { newOwner, make } = keyManagers(world);

const scopes = [Scope.KEYS, Scope.TEXT, Scope.BILLING, Scope.WEBHOOKS];
const body = { model: "scripted", input: "Hi", max_output_tokens: 16 };
let paths = 0;
const newPath = () => `/alerts/${++paths}?token=url-secret-${paths}`;
const dayMs = 86_400_000;

/** Is charged 30 micros. */
async function spend(who: Caller) {
  world.play();
  expect((await who.post("/responses", body)).status).toBe(200);
}

async function grant(owner: Caller, amount: bigint) {
  const { accountId } = owner;
  const operationId = `more-${++paths}`;
  await world.admin.billing.grant({ accountId, unit: 1, amount, operationId });
}

const secretOf = async (owner: Caller) => (await owner.get("/webhooks/secret")).json.secret;
const at = (path: string) => receiver.received.filter((one) => one.path === path);

/** Waits until all charges are counted and all alerts are handed over. */
async function allTold(owner: Caller) {
  await owner.settled();
  // A read of the entries counts them first.
  expect((await owner.get("/billing/entries")).status).toBe(200);
  await deliverWaiting(world.admin as never);
  await until("every delivery", async () => {
    const { data } = (await owner.get("/webhooks")).json;
    return data.every(({ status }: { status: string }) => status === "delivered");
  });
}

describe("a low balance", () => {
  test("of an account is told once a fall, signed, and again after it rose", async () => {
    const owner = await newOwner({ usdMicros: 100_000n }, { scopes });
    const path = newPath();
    const none = { object: "billing.alerts", lowBalanceUsdMicros: null, webhookUrl: null };
    expect((await owner.get("/billing/alerts")).json).toEqual(none);
    const wanted = { lowBalanceUsdMicros: 99_950, webhookUrl: receiver.url + path };
    const set = await send(owner, "PATCH", "/billing/alerts", wanted);
    expect(set.json).toEqual({ object: "billing.alerts", ...wanted });
    const reader = await world.withKey(owner, { scopes: [Scope.BILLING] });
    const seen = (await reader.get("/billing/alerts")).json;
    expect(seen).toEqual({ ...set.json, webhookUrl: null });
    await spend(owner);
    await allTold(owner);
    expect(at(path)).toEqual([]);
    for (let i = 0; i < 4; i++) await spend(owner);
    const [came] = (await receiver.took(path, 1)) as [Received];
    await allTold(owner);
    expect(at(path)).toHaveLength(1);
    const told = verified(came, await secretOf(owner));
    expect(told).toEqual({
      type: "balance.low",
      timestamp: expect.stringMatching(/Z$/),
      data: {
        accountId: owner.accountId,
        keyId: null,
        availableUsdMicros: 99_940,
        lowBalanceUsdMicros: 99_950,
      },
    });
    const [logged] = (await owner.get("/webhooks")).json.data;
    expect(logged).toMatchObject({ id: came.id, type: "balance.low", jobId: null, attempts: 1 });
    // The balance rises above the limit, and falls again.
    await grant(owner, 105n);
    for (let i = 0; i < 3; i++) await spend(owner);
    await receiver.took(path, 2);
    await allTold(owner);
    const ids = at(path).map(({ id }) => id);
    expect(new Set(ids).size).toBe(2);
    // A limit of the account's own makes no alert while the balance is below it already.
    await send(owner, "PATCH", "/billing/alerts", { lowBalanceUsdMicros: 200_000 });
    await spend(owner);
    await allTold(owner);
    expect(at(path)).toHaveLength(2);
    expect((await send(owner, "PATCH", "/billing/alerts", none_(none))).json).toEqual(none);
  });

  test("of a key is told to its webhook, whichever key of the account was charged", async () => {
    const owner = await newOwner({ usdMicros: 100_000n }, { scopes });
    const path = newPath();
    const { data } = await make(owner, { webhookUrl: receiver.url + path });
    expect(data.lowBalanceUsdMicros).toBeNull();
    const change = { lowBalanceUsdMicros: 99_980 };
    const changed = await send(owner, "PATCH", `/keys/${data.id}`, change);
    expect(changed.json.data).toMatchObject(change);
    expect((await owner.get(`/keys/${data.id}`)).json.data).toMatchObject(change);
    await spend(owner);
    const [came] = (await receiver.took(path, 1)) as [Received];
    expect(JSON.parse(came.body).data).toMatchObject({ keyId: data.id, ...change });
    // The key is deleted, so its address gets no webhook.
    await grant(owner, 1_000n);
    await send(owner, "DELETE", `/keys/${data.id}`);
    for (let i = 0; i < 40; i++) await spend(owner);
    await allTold(owner);
    expect(at(path)).toHaveLength(1);
  });

  test("is changed by a key that manages, and never to an address with credentials", async () => {
    const owner = await newOwner({}, { scopes });
    const { caller } = await make(owner, { scopes: ["text", "billing"] });
    const change = { lowBalanceUsdMicros: 1 };
    const refused = await send(caller, "PATCH", "/billing/alerts", change);
    expect(refusalOf(refused)).toBe("403 permission_error permission_denied null");
    expect((await caller.get("/billing/alerts")).status).toBe(200);
    for (const [fields, told] of [
      [{ webhookUrl: "https://u:p@example.com" }, "invalid_value webhookUrl"],
      [{ webhookUrl: 7 }, "invalid_type webhookUrl"],
      [{ lowBalanceUsdMicros: -1 }, "invalid_value lowBalanceUsdMicros"],
      [{ lowBalanceUsdMicros: 0.5 }, "invalid_type lowBalanceUsdMicros"],
      [{ lowbalance: 1 }, "unsupported_parameter lowbalance"],
    ] as const) {
      const answer = await send(owner, "PATCH", "/billing/alerts", fields);
      expect(refusalOf(answer)).toBe(`400 invalid_request_error ${told}`);
    }
  });
});

describe("a key's limit", () => {
  test("is told once a period, to the key's webhook", async () => {
    const owner = await newOwner({}, { scopes });
    const path = newPath();
    const fields = { limitUsdMicros: 0, limit_reset: "daily", webhookUrl: receiver.url + path };
    const { data, caller } = await make(owner, fields);
    const refused = async () =>
      expect(refusalOf(await caller.post("/responses", body))).toMatch("key_limit_exceeded");
    await Promise.all(Array.from({ length: 10 }, refused));
    const [came] = (await receiver.took(path, 1)) as [Received];
    expect(verified(came, await secretOf(owner))).toEqual({
      type: "key.limit_reached",
      timestamp: expect.stringMatching(/Z$/),
      data: {
        accountId: owner.accountId,
        keyId: data.id,
        limitUsdMicros: 0,
        limit_reset: "daily",
      },
    });
    await refused();
    await allTold(owner);
    expect(at(path)).toHaveLength(1);
    // The webhook is in the key's own log, and in no other key's.
    const { json: own } = await caller.get("/webhooks");
    expect(own.data).toMatchObject([{ type: "key.limit_reached", status: "delivered" }]);
    const another = await world.withKey(owner, {});
    expect((await another.get("/webhooks")).json.data).toEqual([]);
    expect((await caller.post(`/webhooks/${own.data[0].id}/retry`, {})).status).toBe(200);
    await receiver.took(path, 2);
    await world.later(dayMs);
    await refused();
    await receiver.took(path, 3);
  });

  test("is told to the account's where the key has none", async () => {
    const owner = await newOwner({}, { scopes });
    const path = newPath();
    await send(owner, "PATCH", "/billing/alerts", { webhookUrl: receiver.url + path });
    const { caller } = await make(owner, { limitUsdMicros: 0, limit_reset: null });
    expect((await caller.post("/responses", body)).status).toBe(403);
    const [came] = (await receiver.took(path, 1)) as [Received];
    expect(JSON.parse(came.body)).toMatchObject({ type: "key.limit_reached" });
  });
});

test("an alert that is handed over twice is one webhook", async () => {
  const owner = await newOwner({ usdMicros: 100_000n }, { scopes });
  const path = newPath();
  const wanted = { lowBalanceUsdMicros: 99_980, webhookUrl: receiver.url + path };
  await send(owner, "PATCH", "/billing/alerts", wanted);
  await spend(owner);
  await receiver.took(path, 1);
  await allTold(owner);
  // Like after a crash between the webhook and the record that it is written.
  const [{ id }] = (await owner.get("/webhooks")).json.data;
  const event = { webhookId: id, accountId: owner.accountId, type: "balance.low" };
  await world.admin.media.announceEvent({ ...event, url: receiver.url + path, body: "{}" });
  expect((await owner.get("/webhooks")).json.data).toHaveLength(1);
  expect(at(path)).toHaveLength(1);
});

/** The change that removes all settings. */
function none_({ object: _, ...fields }: { object: string }) {
  return fields;
}
