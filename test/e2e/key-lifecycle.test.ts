import { afterAll, describe, expect, test } from "vitest";
import { until } from "../support/until.ts";
import { refusalOf } from "./caller.ts";
import { keyManagers, send } from "./key-owners.ts";
import { ownWorldOnly, startWorld } from "./world.ts";

const world = await startWorld();
afterAll(() => world[Symbol.asyncDispose]());
ownWorldOnly();
const { newOwner, make } = keyManagers(world);

const body = { model: "scripted", input: "Hi" };

describe("ends", () => {
  test("a deleted key is refused within a second, and what runs is finished and charged", async () => {
    const owner = await newOwner();
    const { data, caller } = await make(owner);
    world.play({ kind: "ok", deltaDelayMs: 300 });
    const stream = await caller.open("/responses", body);
    await stream.until(({ name }) => name === "response.output_text.delta");
    await send(owner, "DELETE", `/keys/${data.id}`);
    await until("the end", async () => (await caller.get("/models")).status === 401, {
      withinMs: 60_000,
    });
    expect((await stream.rest()).at(-2)?.name).toBe("response.completed");
    expect((await owner.settled()).monthSpend).toBe(30);
  });

  test("a disabled key is refused within a second, and works again once it is enabled", async () => {
    const owner = await newOwner();
    const { data, caller } = await make(owner);
    expect((await caller.get("/models")).status).toBe(200);
    await send(owner, "PATCH", `/keys/${data.id}`, { disabled: true });
    await until("the refusal", async () => (await caller.get("/models")).status === 401, {
      withinMs: 60_000,
    });
    await send(owner, "PATCH", `/keys/${data.id}`, { disabled: false });
    await until("the end of it", async () => (await caller.get("/models")).status === 200, {
      withinMs: 60_000,
    });
  });

  test("a suspended account only reads, what runs is finished and charged, and it can be resumed", async () => {
    const owner = await newOwner();
    const { caller } = await make(owner);
    world.play({ kind: "ok", deltaDelayMs: 300 });
    const stream = await caller.open("/responses", body);
    await stream.until(({ name }) => name === "response.output_text.delta");
    const { accountId } = owner;
    await world.admin.auth.setAccountState({ accountId, suspended: true });
    const suspended = "403 permission_error account_suspended null";
    await until(
      "the suspension of both keys",
      async () =>
        refusalOf(await caller.post("/responses", "{")) === suspended &&
        refusalOf(await send(owner, "DELETE", "/keys/unknown")) === suspended,
      { withinMs: 60_000 },
    );
    expect(refusalOf(await owner.post("/keys", { name: "n" }))).toBe(suspended);
    expect(refusalOf(await send(owner, "DELETE", `/keys/${caller.keyId}`))).toBe(suspended);
    const idempotent = { idempotencyKey: "k" };
    expect(refusalOf(await caller.post("/responses", body, idempotent))).toBe(suspended);
    for (const path of ["/models", "/billing", "/keys", "/key", `/keys/${caller.keyId}`]) {
      expect((await owner.get(path)).status, path).toBe(200);
    }
    expect((await stream.rest()).at(-2)?.name).toBe("response.completed");
    expect((await owner.settled()).monthSpend).toBe(30);
    const other = await world.caller();
    world.play();
    expect((await other.post("/responses", body)).status).toBe(200);
    await world.admin.auth.setAccountState({ accountId, suspended: false });
    await until(
      "the end of it",
      async () => (await caller.post("/responses", body)).status === 200,
      {
        withinMs: 60_000,
      },
    );
  });
});

describe("a rotation", () => {
  test("shows a new secret once; the former is valid for its grace", async () => {
    const owner = await newOwner();
    const { data, caller } = await make(owner);
    const path = `/keys/${data.id}/rotate`;
    const rotated = await owner.post(path, { graceSeconds: 3_600 });
    expect(rotated.status).toBe(200);
    expect(rotated.json.data).toMatchObject({
      id: data.id,
      label: `...${rotated.json.key.slice(-4)}`,
    });
    expect(Date.parse(rotated.json.data.formerSecretExpiresAt)).toBeGreaterThan(world.now());
    const renewed = world.holding(rotated.json.key);
    const statuses = async () =>
      Promise.all([caller, renewed].map(async (who) => (await who.get("/models")).status));
    expect(await statuses()).toEqual([200, 200]);
    await world.later(3_600_000);
    expect(await statuses()).toEqual([401, 200]);
    // Without a body the grace has its default.
    const again = await send(owner, "POST", path);
    expect(again.status).toBe(200);
    expect(await statuses()).toEqual([401, 200]);
    expect((await world.holding(again.json.key).get("/key")).json.data.id).toBe(data.id);
    for (const graceSeconds of [-1, 2_592_001]) {
      expect(refusalOf(await owner.post(path, { graceSeconds }))).toBe(
        "400 invalid_request_error invalid_value graceSeconds",
      );
    }
  });
});

describe("an Idempotency-Key", () => {
  test("makes one key, at once or later, whose secret is shown once", async () => {
    const owner = await newOwner();
    const options = { idempotencyKey: "key-1" };
    const asked = await Promise.all(
      Array.from({ length: 5 }, () => owner.post("/keys", { name: "n" }, options)),
    );
    expect(asked.map(({ status }) => status)).toEqual([201, 201, 201, 201, 201]);
    expect(new Set(asked.map(({ json }) => json.data.id)).size).toBe(1);
    expect(asked.filter(({ json }) => json.key !== null)).toHaveLength(1);
    for (const { json, headers } of asked) {
      expect(headers.get("idempotency-replayed")).toBe(json.key === null ? "true" : null);
    }
    expect(refusalOf(await owner.post("/keys", { name: "m" }, options))).toMatch(
      /^422 idempotency_error idempotency_key_reused/,
    );
    expect(refusalOf(await owner.post("/keys", { name: "n" }, { idempotencyKey: "" }))).toMatch(
      /^400 invalid_request_error invalid_idempotency_key/,
    );
  });

  test("rotates once", async () => {
    const owner = await newOwner();
    const { data } = await make(owner);
    const path = `/keys/${data.id}/rotate`;
    const options = { idempotencyKey: "rotate-1" };
    const first = await owner.post(path, { graceSeconds: 0 }, options);
    const again = await owner.post(path, { graceSeconds: 0 }, options);
    expect([first.status, again.status]).toEqual([200, 200]);
    expect(again.json).toMatchObject({ key: null, data: { label: first.json.data.label } });
    expect((await world.holding(first.json.key).get("/key")).status).toBe(200);
    expect(refusalOf(await owner.post(path, {}, options))).toMatch(/^422 /);
  });
});

describe("money", () => {
  test("a limit is the ledger's, and what is told of it is exact", async () => {
    const owner = await newOwner();
    const { caller } = await make(owner, { limitUsdMicros: 6_000 });
    world.play();
    expect((await caller.post("/responses", body)).status).toBe(200);
    await caller.settled();
    const { json } = await caller.get("/key");
    expect(json.data).toMatchObject({
      id: caller.keyId,
      accountId: owner.accountId,
      is_free_tier: false,
      is_management_key: false,
      limit: 0.006,
      limit_remaining: 0.00597,
      limit_reset: "monthly",
      usage: 0.00003,
      usage_daily: 0.00003,
      usage_weekly: 0.00003,
      usage_monthly: 0.00003,
      spentUsdMicros: 30,
      spentMonthUsdMicros: 30,
      limitUsdMicros: 6_000,
      limitRemainingUsdMicros: 5_970,
      expires_at: null,
    });
    await send(owner, "PATCH", `/keys/${caller.keyId}`, { limitUsdMicros: 30 });
    await until(
      "the lower limit",
      async () =>
        refusalOf(await caller.post("/responses", body)) ===
        "403 permission_error key_limit_exceeded null",
    );
    expect((await caller.get("/key")).json.data.limitRemainingUsdMicros).toBe(0);
    expect((await owner.get("/key")).json.data.spentUsdMicros).toBe(0);
  });

  test("keys are managed at a balance of zero", async () => {
    const owner = await newOwner({ usdMicros: 0n });
    const { data, caller } = await make(owner);
    expect((await caller.get("/key")).status).toBe(200);
    expect((await owner.post(`/keys/${data.id}/rotate`, {})).status).toBe(200);
    expect((await send(owner, "PATCH", `/keys/${data.id}`, { name: "m" })).status).toBe(200);
    expect((await owner.get("/keys")).status).toBe(200);
    expect((await send(owner, "DELETE", `/keys/${data.id}`)).status).toBe(200);
  });

  test("days, weeks from Monday and months end, the whole does not", async () => {
    const owner = await newOwner();
    const spend = async () => {
      world.play();
      expect((await owner.post("/responses", body)).status).toBe(200);
      await owner.settled();
    };
    const usage = async () => {
      const { data } = (await owner.get("/key")).json;
      return [data.usage_daily, data.usage_weekly, data.usage_monthly, data.usage].map((dollars) =>
        Math.round(dollars * 1e6),
      );
    };
    const dayMs = 86_400_000;
    const weekday = () => new Date(world.now()).getUTCDay();
    while (weekday() !== 6) await world.later(dayMs);
    await spend();
    expect(await usage()).toEqual([30, 30, 30, 30]);
    // To a Tuesday, then the next day, then the next Monday.
    do await world.later(dayMs);
    while (weekday() !== 2);
    await spend();
    expect((await usage()).slice(0, 2)).toEqual([30, 30]);
    await world.later(dayMs);
    expect((await usage()).slice(0, 2)).toEqual([0, 30]);
    await spend();
    expect((await usage()).slice(0, 2)).toEqual([30, 60]);
    await world.later(5 * dayMs);
    expect(weekday()).toBe(1);
    expect((await usage()).slice(0, 2)).toEqual([0, 0]);
    await world.later(32 * dayMs);
    expect(await usage()).toEqual([0, 0, 0, 90]);
  });
});

test("a key's last use is told to the minute, some seconds later", async () => {
  const owner = await newOwner();
  const { data, caller } = await make(owner);
  const fromMs = world.now();
  await caller.get("/models");
  const lastUsedAt = await until("the use", async () => {
    return (await owner.get(`/keys/${data.id}`)).json.data.lastUsedAt ?? undefined;
  });
  expect(lastUsedAt).toMatch(/:00\.000Z$/);
  const usedMs = Date.parse(lastUsedAt);
  expect(usedMs).toBeGreaterThan(fromMs - 130_000);
  expect(usedMs).toBeLessThan(world.now() + 130_000);
  expect((await owner.get(`/keys/${data.id}`)).json.data.updated_at).toBeNull();
});
