import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import { until } from "../support/until.ts";
import { type Caller, refusalOf } from "./caller.ts";
import { keyManagers, send } from "./key-owners.ts";
import { isOwnWorld, ownWorldOnly, startWorld } from "./world.ts";

const world = await startWorld();
afterAll(() => world[Symbol.asyncDispose]());
ownWorldOnly();
const { newOwner, make } = keyManagers(world);

const body = { model: "scripted", input: "Hi" };
const notFound = "404 not_found_error key_not_found null";
const forbidden = (param: string) => `403 permission_error permission_denied ${param}`;

describe("a made key", () => {
  test("is OpenRouter's with ours beside it, and its secret is shown once", async () => {
    const owner = await newOwner();
    const expiresAt = new Date(world.now() + 86_400_000).toISOString();
    const asked = await owner.post("/keys", {
      name: "worker",
      limit: 12.5,
      limit_reset: "monthly",
      scopes: ["text", "models"],
      models: ["scripted"],
      requestsPerMinute: 60,
      expiresAt,
      include_byok_in_limit: true,
    });
    expect(asked.status).toBe(201);
    expect(asked.headers.get("x-genmesh-ignored-parameters")).toBe("include_byok_in_limit");
    const { data, key } = asked.json;
    expect(key).toMatch(/^gm_[A-Za-z0-9]{40}$/);
    expect(data).toEqual({
      id: expect.stringMatching(/^key_/),
      hash: data.id,
      name: "worker",
      label: `...${key.slice(-4)}`,
      disabled: false,
      webhookUrl: null,
      lowBalanceUsdMicros: null,
      limit: 12.5,
      limit_remaining: 12.5,
      limit_reset: "monthly",
      include_byok_in_limit: false,
      usage: 0,
      usage_daily: 0,
      usage_weekly: 0,
      usage_monthly: 0,
      byok_usage: 0,
      byok_usage_daily: 0,
      byok_usage_weekly: 0,
      byok_usage_monthly: 0,
      creator_user_id: null,
      created_at: expect.stringMatching(/Z$/),
      updated_at: null,
      expires_at: expiresAt,
      accountId: owner.accountId,
      scopes: ["text", "models"],
      models: ["scripted"],
      requestsPerMinute: 60,
      spentUsdMicros: 0,
      spentMonthUsdMicros: 0,
      limitUsdMicros: 12_500_000,
      limitRemainingUsdMicros: 12_500_000,
      lastUsedAt: null,
      formerSecretExpiresAt: null,
    });
    const got = await owner.get(`/keys/${data.id}`);
    expect(got.json).toEqual({ data });
    const listed = await owner.get("/keys");
    expect(listed.json.data[0]).toEqual(data);
    expect(got.text + listed.text).not.toContain(key);
  });

  test("works with the official SDK, and is charged to the account", async () => {
    const owner = await newOwner();
    const { caller } = await make(owner);
    world.play();
    const client = new OpenAI({ baseURL: world.baseUrl, apiKey: caller.key, maxRetries: 0 });
    const response = await client.responses.create(body);
    expect(response.status).toBe("completed");
    expect((await client.models.list()).data.length).toBeGreaterThan(0);
    expect((await owner.settled()).monthSpend).toBe(30);
    const { json } = await owner.get(`/keys/${caller.keyId}`);
    expect(json.data).toMatchObject({ usage: 0.00003, usage_monthly: 0.00003, limit: null });
  });

  test("inherits what is not named, but for scopes that are never implied", async () => {
    const expireTime = { seconds: BigInt(Math.floor(world.now() / 1_000) + 9_000), nanos: 0 };
    const owner = await newOwner(
      {},
      {
        allowedModels: ["scripted", "plain"],
        monthlyUsdMicrosLimit: 5_000_000n,
        requestsPerMinute: 90,
        expireTime,
      },
    );
    const { data } = await make(owner);
    expect(data).toMatchObject({
      scopes: ["text", "models", "billing"],
      models: ["scripted", "plain"],
      limit: 5,
      limit_reset: "monthly",
      requestsPerMinute: 90,
      expires_at: new Date(Number(expireTime.seconds) * 1_000).toISOString(),
    });
    // A limit for ever is at most the owner's limit of one month.
    const forEver = await make(owner, { limit_reset: null });
    expect(forEver.data).toMatchObject({ limit: 5, limit_reset: null });
    for (const limit_reset of ["daily", "weekly"]) {
      const beyond = await owner.post("/keys", { name: "n", limit: 1, limit_reset });
      expect(refusalOf(beyond)).toBe("403 permission_error permission_denied limit_reset");
    }
    const manager = await make(owner, { scopes: ["keys", "text"] });
    expect(manager.data.scopes).toEqual(["keys", "text"]);
    expect((await manager.caller.get("/keys")).status).toBe(200);
  });
});

describe("a key cannot give what it lacks", () => {
  let owner: Caller;
  const atMs = world.now() + 3_600_000;
  const later = new Date(atMs + 1_000).toISOString();
  beforeAll(async () => {
    if (!isOwnWorld) return;
    owner = await newOwner(
      {},
      {
        allowedModels: ["scripted"],
        monthlyUsdMicrosLimit: 5_000_000n,
        requestsPerMinute: 90,
        expireTime: { seconds: BigInt(Math.floor(atMs / 1_000)), nanos: 0 },
      },
    );
  });

  const beyond: [param: string, fields: object][] = [
    ["scopes", { scopes: ["text", "images"] }],
    ["scopes", { scopes: ["usage:read-all"] }],
    ["models", { models: ["scripted", "plain"] }],
    ["models", { models: null }],
    ["limit", { limit: 5.000001 }],
    ["limit", { limitUsdMicros: 5_000_001 }],
    ["limit", { limit: null }],
    ["requestsPerMinute", { requestsPerMinute: 91 }],
    ["expiresAt", { expiresAt: later }],
    ["expiresAt", { expires_at: null }],
  ];

  test.for(beyond)("neither made nor changed: %s %j", async ([param, fields]) => {
    const refused = await owner.post("/keys", { name: "n", ...fields });
    expect(refusalOf(refused)).toBe(forbidden(param));
    expect(refused.json.error.message).toMatch(
      /^The API key of this request .+\. .+: ask for less, or use a key that has more\.$/,
    );
    const { data } = await make(owner);
    const changed = await send(owner, "PATCH", `/keys/${data.id}`, fields);
    expect(refusalOf(changed)).toBe(forbidden(param));
    expect((await owner.get(`/keys/${data.id}`)).json.data).toEqual(data);
  });

  test("nor by taking a key that can do more: no rotation, no enabling, no raising", async () => {
    const { data } = (await owner.get(`/keys/${owner.keyId}`)).json;
    const strong = await world.withKey(owner, { scopes: [Scope.IMAGES] });
    const path = `/keys/${strong.keyId}`;
    expect(refusalOf(await owner.post(`${path}/rotate`, {}))).toBe(forbidden("scopes"));
    expect((await strong.get("/key")).status).toBe(200);
    expect(refusalOf(await send(owner, "PATCH", path, { limit: 6 }))).toBe(forbidden("limit"));
    // A reduction of rights needs only the scope.
    expect((await send(owner, "PATCH", path, { disabled: true })).status).toBe(200);
    expect(refusalOf(await send(owner, "PATCH", path, { disabled: false }))).toBe(
      forbidden("scopes"),
    );
    expect(refusalOf(await send(owner, "PATCH", `/keys/${owner.keyId}`, { limit: 6 }))).toBe(
      forbidden("limit"),
    );
    expect((await owner.get(`/keys/${owner.keyId}`)).json.data.limit).toBe(data.limit);
    expect((await send(owner, "DELETE", path)).status).toBe(200);
  });

  test("a key that has nothing but 'keys' gives that alone, by name", async () => {
    const bare = await newOwner({}, { scopes: [Scope.KEYS] });
    expect(refusalOf(await bare.post("/keys", { name: "n" }))).toBe(forbidden("scopes"));
    expect((await make(bare, { scopes: ["keys"] })).data.scopes).toEqual(["keys"]);
  });
});

describe("isolation", () => {
  const calls: [method: string, suffix: string, sent?: object][] = [
    ["GET", ""],
    ["PATCH", "", { name: "n" }],
    ["DELETE", ""],
    ["POST", "/rotate", {}],
  ];

  test("another account's key, a deleted one and one that never was are the same 404", async () => {
    const owner = await newOwner();
    const other = await newOwner();
    const { data } = await make(other);
    const gone = await make(owner);
    expect((await send(owner, "DELETE", `/keys/${gone.data.id}`)).json).toEqual({
      deleted: true,
      id: gone.data.id,
    });
    for (const [method, suffix, sent] of calls) {
      const told = await Promise.all(
        [data.id, gone.data.id, "key_none", "%20"].map(async (id) => {
          const { status, json } = await send(owner, method, `/keys/${id}${suffix}`, sent);
          return { status, ...json };
        }),
      );
      expect(refusalOf({ status: told[0]?.status, json: told[0] })).toBe(notFound);
      expect(new Set(told.map((one) => JSON.stringify(one))).size).toBe(1);
    }
    expect((await other.get(`/keys/${data.id}`)).json.data).toEqual(data);
    expect((await owner.get("/keys")).text).not.toContain(data.id);
  });

  test("without the scope, which is never implied, every route but its own key's is 403", async () => {
    const owner = await newOwner();
    const all = await world.withKey(owner, {});
    for (const [method, suffix, sent] of calls) {
      const asked = await send(all, method, `/keys/${owner.keyId}${suffix}`, sent);
      expect(refusalOf(asked)).toBe(forbidden("null"));
    }
    expect(refusalOf(await all.get("/keys"))).toBe(forbidden("null"));
    expect(refusalOf(await all.post("/keys", { name: "n" }))).toBe(forbidden("null"));
    expect((await all.get("/key")).status).toBe(200);
    expect((await world.holding("x".repeat(30)).get("/keys")).status).toBe(401);
  });
});

describe("the list", () => {
  test("is newest first, a page at a time, without what is disabled unless that is asked for", async () => {
    const owner = await newOwner();
    const made: string[] = [];
    for (const name of ["a", "b", "c"]) made.unshift((await make(owner, { name })).data.id);
    await send(owner, "PATCH", `/keys/${made[1]}`, { disabled: true });
    const ids = async (query: string) =>
      (await owner.get(`/keys${query}`)).json.data.map((key: { id: string }) => key.id);
    const [newest, middle, oldest] = made;
    const rest = (await ids("")).slice(2);
    expect(rest).toContain(owner.keyId);
    expect(await ids("")).toEqual([newest, oldest, ...rest]);
    expect(await ids("?include_disabled=true")).toEqual([newest, middle, oldest, ...rest]);
    expect(await ids("?offset=1")).toEqual([oldest, ...rest]);
    expect(await ids("?offset=1&limit=1")).toEqual([oldest]);
    expect(await ids("?offset=99")).toEqual([]);
    for (const query of ["?offset=-1", "?offset=x", "?include_disabled=maybe", "?limit=0"]) {
      expect((await owner.get(`/keys${query}`)).status, query).toBe(400);
    }
  });
});

describe("a change", () => {
  test("keeps what is not named, and is in force within a second", async () => {
    const owner = await newOwner();
    const { data, caller } = await make(owner, { limit: 3 });
    expect((await caller.get("/models")).status).toBe(200);
    const path = `/keys/${data.id}`;
    const { json } = await send(owner, "PATCH", path, { name: "renamed", scopes: ["text"] });
    expect(json.data).toEqual({
      ...{ ...data, name: "renamed", scopes: ["text"] },
      updated_at: expect.stringMatching(/Z$/),
      lastUsedAt: json.data.lastUsedAt,
    });
    await until("the narrower scope", async () => (await caller.get("/models")).status === 403);
    const freed = await send(owner, "PATCH", path, { limit: null, limit_reset: null });
    expect(freed.json.data).toMatchObject({
      limit: null,
      limit_remaining: null,
      limit_reset: null,
    });
    const none = await send(owner, "PATCH", path, {});
    expect(none.json.data).toEqual({ ...freed.json.data, lastUsedAt: none.json.data.lastUsedAt });
  });

  test("of the balance that a key is told of is refused where it is none", async () => {
    const owner = await newOwner();
    for (const [low, told] of [
      ["5", "invalid_type"],
      [-1, "invalid_value"],
    ] as const) {
      const fields = { lowBalanceUsdMicros: low };
      const refused = await send(owner, "PATCH", `/keys/${owner.keyId}`, fields);
      expect(refusalOf(refused)).toBe(`400 invalid_request_error ${told} lowBalanceUsdMicros`);
    }
  });

  test.for<[refusal: string, fields: object | string]>([
    ["invalid_value limit_reset", { limit: 1, limit_reset: "yearly" }],
    ["invalid_value limit_reset", { limit: 1, limit_reset: "toString" }],
    ["invalid_type limit_reset", { limit: 1, limit_reset: 7 }],
    ["invalid_value limit", { limit: -1 }],
    ["invalid_value limit", { limit: 0.0000001 }],
    ["invalid_value limit", { limit: 1e10 }],
    ["invalid_type limit", { limit: "5" }],
    ["invalid_value limitUsdMicros", { limit: 1, limitUsdMicros: 1 }],
    ["invalid_value scopes", { scopes: [] }],
    ["invalid_value scopes[1]", { scopes: ["text", "toString"] }],
    ["invalid_type scopes", { scopes: "text" }],
    ["invalid_value models", { models: [] }],
    ["invalid_type models[0]", { models: [1] }],
    ["invalid_value requestsPerMinute", { requestsPerMinute: 0 }],
    ["invalid_value expiresAt", { expiresAt: "2020-01-01T00:00:00Z" }],
    ["invalid_value expiresAt", { expiresAt: "tomorrow" }],
    ["invalid_value expiresAt", { expiresAt: "2099-02-29T00:00:00Z" }],
    ["invalid_value expiresAt", { expiresAt: "9999-12-31T23:59:59-23:59" }],
    ["invalid_value expiresAt", { expiresAt: "2099-01-31" }],
    ["invalid_value name", { name: "  " }],
    ["invalid_value name", { name: "n".repeat(201) }],
    ["unsupported_parameter model", { model: "scripted" }],
    ["unsupported_parameter __proto__", '{"name": "n", "__proto__": {}}'],
  ])("is refused with 400 %s, and so is a creation", async ([refusal, fields]) => {
    const owner = await newOwner();
    const sent = typeof fields === "string" ? JSON.parse(fields) : fields;
    const raw = typeof fields === "string" ? fields : { name: "n", ...fields };
    const wanted = `400 invalid_request_error ${refusal}`;
    expect(refusalOf(await owner.post("/keys", raw))).toBe(wanted);
    expect(refusalOf(await send(owner, "PATCH", `/keys/${owner.keyId}`, sent))).toBe(wanted);
  });

  test("a name is required of a new key", async () => {
    const owner = await newOwner();
    expect(refusalOf(await owner.post("/keys", {}))).toBe(
      "400 invalid_request_error missing_required_parameter name",
    );
  });
});
