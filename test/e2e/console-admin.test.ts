import { readFile } from "node:fs/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import { until } from "../support/until.ts";
import { upstreamKeys } from "./catalog.ts";
import { type Document, ended, startMediaWorld, submit } from "./media-world.ts";
import { adminToken, operatorSession } from "./operator-session.ts";
import { isOwnWorld, ownWorldOnly } from "./world.ts";

const { world, media, ...owned } = await startMediaWorld({
  env: { GENMESH_ADMIN_TOKEN: adminToken },
});
afterAll(() => owned[Symbol.asyncDispose]());
ownWorldOnly();

const operator = operatorSession(world);
const { ask, get, post } = operator;
const body = { model: "scripted", input: "Hi" };

beforeAll(async () => {
  if (isOwnWorld) await operator.signIn();
});

describe("the operator's routes", () => {
  test("let operators' sessions in alone", async () => {
    const routes = [
      ...["accounts", "keys", "jobs", "holds", "reviews", "ledger/audit", "catalog", "upstreams"],
      ...["upstreams/history", "audit"],
    ];
    for (const route of routes) {
      expect((await get(`/${route}`)).status, route).toBe(200);
      expect((await ask("GET", `/admin/${route}`, undefined, { as: "no=1" })).status).toBe(401);
    }
    const caller = await world.caller();
    const own = operator.cookie;
    await ask("POST", "/session", { secret: caller.key }, { as: "" });
    const member = operator.cookie;
    operator.cookie = own;
    for (const route of routes) {
      expect((await ask("GET", `/admin/${route}`, undefined, { as: member })).status).toBe(403);
    }
    expect((await get("/nothing")).status).toBe(404);
  });

  test("make an account, fund it once, give back a charge, suspend, resume and close it", async () => {
    const order = { name: "Zeta Works", usdMicros: 1_000_000, credits: 3, operationId: "op-1" };
    expect((await post("/accounts", order, { secret: "" })).code).toBe("secret_required");
    const made = await post("/accounts", order);
    expect(made).toMatchObject({ status: 201, json: { object: "account", state: "active" } });
    const { id, firstKey } = made.json;
    expect(made.json.usdMicros).toMatchObject({ available: 1_000_000, reserved: 0 });
    const again = await post("/accounts", order);
    expect(again.json).toMatchObject({ id, replayed: true, firstKey: { secret: null } });
    expect((await post("/accounts", { ...order, name: "Other" })).code).toBe("state_conflict");
    for (const query of ["zeta", id.slice(0, 12)]) {
      const { json } = await get(`/accounts?query=${query}`);
      expect(json.data.map((one: Document) => one.id)).toContain(id);
    }
    const top = { usdMicros: 500, operationId: "op-2" };
    expect((await post(`/accounts/${id}/top-up`, top)).json.usdMicros.available).toBe(1_000_500);
    expect((await post(`/accounts/${id}/top-up`, top)).json).toMatchObject({ replayed: true });
    const more = await post(`/accounts/${id}/top-up`, { ...top, usdMicros: 501 });
    expect([more.status, more.code]).toEqual([409, "state_conflict"]);

    world.play();
    const caller = world.holding(firstKey.secret, { accountId: id, keyId: firstKey.id });
    expect((await caller.post("/responses", body)).status).toBe(200);
    // The charge may be made after the answer.
    const charge: Document = await until("the charge", async () => {
      const { json } = await get(`/accounts/${id}/entries`);
      return json.data.find((one: Document) => one.spentDelta > 0);
    });
    const path = `/accounts/${id}/refund`;
    const refund = { unit: "usd_micros", entry: charge.number, operationId: "op-3" };
    const given = await post(path, refund);
    expect(given.json).toMatchObject({ object: "refund", amount: charge.spentDelta });
    expect((await post(path, refund)).json).toMatchObject({ replayed: true });
    const twice = await post(path, { ...refund, operationId: "op-4" });
    expect([twice.status, twice.code]).toEqual([409, "state_conflict"]);
    const nowhere = await post(path, { ...refund, entry: 99, operationId: "op-5" });
    expect([nowhere.status, nowhere.code]).toEqual([404, "object_not_found"]);
    const { data } = (await get(`/accounts/${id}/entries?limit=1`)).json;
    expect(data).toMatchObject([{ kind: "refund", refundOf: charge.number }]);
    expect((await get(`/accounts/${id}`)).json.usdMicros).toMatchObject({ spent: 0 });
    expect((await get(`/ledger/audit?account=${id}`)).json).toMatchObject({
      ...{ ok: true, differences: [], more: false, wallets: 2 },
    });

    expect((await post(`/accounts/${id}/suspend`, {})).json.state).toBe("suspended");
    expect((await post(`/accounts/${id}/resume`, {})).json.state).toBe("active");
    expect((await post(`/accounts/${id}/close`, { confirm: "acct_x" })).status).toBe(400);
    const closed = await post(`/accounts/${id}/close`, { confirm: id });
    expect(closed).toMatchObject({ status: 202, json: { name: "", state: "closing" } });
    await until("the end of its key", async () => (await caller.get("/models")).status === 401, {
      withinMs: 60_000,
    });
    expect((await post(`/accounts/${id}/top-up`, { ...top, operationId: "x" })).status).toBe(409);

    // The log has each change, and no text that people wrote as a name.
    const { json: log } = await get(`/audit?account=${id}&limit=100`);
    expect(log.data.map((one: Document) => `${one.action} ${one.outcome}`).toReversed()).toEqual([
      "account.create done",
      "account.create done",
      "account.top_up done",
      "account.top_up done",
      "account.top_up refused",
      "account.refund done",
      "account.refund done",
      "account.refund refused",
      "account.refund refused",
      "account.suspend done",
      "account.resume done",
      "account.close done",
    ]);
    expect(log.data[0]).toMatchObject({ actor: "admin token", endedAt: expect.any(String) });
    expect(JSON.stringify(log)).not.toMatch(/Zeta|gm_/);
  });

  test("list, make, rotate and revoke keys of all accounts", async () => {
    const { accountId, ...caller } = await world.caller();
    const models = ["scripted"];
    const wanted = { accountId, name: "App", scopes: ["text"], models, limitUsdMicros: 500 };
    const made = await post("/keys", { ...wanted, expiresAt: "2099-01-01T00:00:00Z" });
    expect(made).toMatchObject({
      status: 201,
      json: { object: "key", state: "active", scopes: ["text"], limitUsdMicros: 500 },
    });
    const { id, secret } = made.json;
    // Fields that the API has too have the same names and form there.
    const owner = await world.withKey({ ...caller, accountId }, { scopes: [Scope.KEYS] });
    const { data } = (await owner.get(`/keys/${id}`)).json;
    const shared = Object.entries(made.json).filter(([name]) => Object.hasOwn(data, name));
    expect(data).toMatchObject(Object.fromEntries(shared));
    expect(Object.keys(made.json).filter((name) => !Object.hasOwn(data, name))).toEqual([
      ...["object", "state", "revokedAt", "secret"],
    ]);
    const rotated = await post(`/keys/${id}/rotate`, { graceSeconds: 0 });
    expect(rotated.json.secret).not.toBe(secret);
    expect((await post(`/keys/${id}/revoke`, {})).json.state).toBe("revoked");
    const one = await get(`/keys?query=${id}`);
    expect(one.json.data).toMatchObject([{ id, accountId, name: "App", state: "revoked" }]);
    expect(JSON.stringify(one.json)).not.toContain("gm_");
    const named = await get(`/keys?account=${accountId}&query=app`);
    expect(named.json.data).toMatchObject([{ id }]);
    const seen: string[] = [];
    for (let after = ""; ; ) {
      const { json } = await get(`/keys?limit=2${after}`);
      seen.push(...json.data.map((key: Document) => key.id));
      if (json.next === null) break;
      after = `&after=${encodeURIComponent(json.next)}`;
    }
    expect(new Set(seen).size).toBe(seen.length);
    expect(seen).toContain(id);
    expect((await post("/keys", { accountId: "acct_none" })).code).toBe("object_not_found");
  });

  test("write down what limit a new key was given, and no word of a property that is none", async () => {
    const { accountId, keyId } = await world.caller();
    const limits = [
      { asked: { limitUsdMicros: 500 }, told: { limitUsdMicros: 500, limit_reset: "monthly" } },
      { asked: { limit: 0.25, limit_reset: null }, told: { limit: 0.25, limit_reset: null } },
      { asked: { limit: 2, limit_reset: "daily" }, told: { limit: 2, limit_reset: "daily" } },
      { asked: { limit: null }, told: { limitUsdMicros: null, limit_reset: "monthly" } },
      { asked: {}, told: { limitUsdMicros: null, limit_reset: "monthly" } },
    ];
    for (const { asked } of limits) {
      expect((await post("/keys", { accountId, ...asked })).status).toBe(201);
    }
    for (const asked of [{ limit: 1, limit_reset: "hush" }, { hush: 1 }]) {
      expect((await post("/keys", { accountId, ...asked })).status).toBe(400);
      expect((await operator.patch(`/keys/${keyId}`, { limit: 1, ...asked })).status).toBe(400);
    }
    const { json: log } = await get(`/audit?account=${accountId}&limit=100`);
    const made = log.data.filter((one: Document) => one.outcome === "done").toReversed();
    expect(made.map((one: Document) => one.details)).toEqual(limits.map(({ told }) => told));
    const { json: all } = await get("/audit?limit=10");
    expect(all.data.filter((one: Document) => one.action === "key.update")).toMatchObject([
      { target: keyId, details: { changed: "limit" }, outcome: "refused" },
      { target: keyId, details: { changed: "limit, limit_reset" }, outcome: "refused" },
    ]);
    expect(JSON.stringify(all)).not.toContain("hush");
  });

  test("show jobs of all accounts without what their callers wrote, and holds", async () => {
    const caller = await world.caller({ credits: 9n });
    const job = await submit(caller, "images", { model: "small-image", prompt: "hush hush" });
    await ended(caller, job);
    const { json } = await get("/jobs?status=completed&limit=5");
    expect(json.data[0]).toMatchObject({ id: job.id, accountId: caller.accountId, kind: "image" });
    const one = await get(`/jobs/${job.id}`);
    expect(one.json).toMatchObject({ status: "completed", attempts: 1, wait: null });
    expect(one.json.entries.length).toBeGreaterThan(1);
    expect(JSON.stringify([json, one.json])).not.toContain("hush");
    const retried = await post(`/jobs/${job.id}/retry`, { operationId: "again" });
    expect([retried.status, retried.code]).toEqual([409, "state_conflict"]);
    expect((await get("/jobs?status=lost")).status).toBe(400);
    expect(
      (
        await post("/holds/hold_nowhere/release", {
          ...{ accountId: caller.accountId, unit: "credits" },
        })
      ).code,
    ).toBe("object_not_found");
  });

  test("judge a draft of the catalog, and say what it would change", async () => {
    const inForce = (await get("/catalog")).json;
    expect(inForce.models.map((one: Document) => one.id)).toContain("scripted");
    const broken = await post("/catalog/check", { yaml: "models: 7" });
    expect(broken.json).toMatchObject({ ok: false, models: 0, changes: [] });
    expect(broken.json.faults.length).toBeGreaterThan(0);
    const shipped = await readFile(new URL("../../deploy/catalog.yaml", import.meta.url), "utf8");
    const draft = await post("/catalog/check", { yaml: shipped });
    expect(draft.json.ok).toBe(true);
    const kinds = new Map(draft.json.changes.map((one: Document) => [one.model, one.change]));
    expect(kinds.get("scripted")).toBe("removed");
    expect(JSON.stringify(draft.json)).not.toContain('developerPrompt","before":"');
  });

  test("ask an upstream whether its key works and which models it has", async () => {
    const list = (ids: string[]) =>
      ({ kind: "json", body: { object: "list", data: ids.map((id) => ({ id })) } }) as const;
    const probe = async (name: string) =>
      (await post(`/upstreams/${encodeURIComponent(name)}/probe`, {})).json;
    const key = upstreamKeys.UP_KEY ?? "";
    world.play(list(["up-model", "zeta", `echo of ${key}`]));
    const seen = world.upstream.requests;
    const told = await probe("main");
    expect(seen[0]).toMatchObject({ method: "GET", path: "/v1/models" });
    expect(seen[0]?.headers.authorization).toBe(`Bearer ${key}`);
    // Each document is read once, however many models it is about.
    expect(seen).toHaveLength(1);
    expect(told.list).toEqual({ fault: null, models: ["up-model", "zeta"], count: 3 });
    expect(told.faults.length).toBeGreaterThan(0);
    expect(told.faults.map(({ model }: Document) => model)).not.toContain("scripted");
    expect(JSON.stringify(told)).not.toContain(key);
    world.play({ kind: "status", status: 401, message: "the words of the upstream" });
    const refused = await probe("main");
    expect(refused).toMatchObject({ ok: false, list: { fault: "its list of models answers 401" } });
    expect(JSON.stringify(refused)).not.toContain("the words of the upstream");
    world.play({ kind: "garbage" });
    expect((await probe("main")).list.fault).toBe(
      "its list of models answers with what is no JSON",
    );
    world.play();
    expect((await probe("nowhere")).list.fault).toMatch(/^its list of models cannot be read/);
    expect((await post("/upstreams/no-such/probe", {})).code).toBe("object_not_found");
    expect((await probe("studio")).list).toBeNull();
  });

  test("show how upstreams do, by the sum of what all processes export", {
    timeout: 240_000,
  }, async () => {
    const caller = await world.caller({ credits: 100n });
    const fails = { kind: "status", status: 500 } as const;
    world.play();
    media.next("POST /embeddings", {
      kind: "json",
      body: {
        object: "list",
        model: "m",
        data: [{ object: "embedding", index: 0, embedding: [0.5] }],
        usage: { prompt_tokens: 1, total_tokens: 1 },
      },
    });
    const vectors = { model: "scripted-vectors", input: "Hi" };
    expect((await caller.post("/embeddings", vectors)).status).toBe(200);
    for (const model of ["scripted", "chat-1"]) {
      expect((await caller.post("/responses", { model, input: "Hi" })).status).toBe(200);
    }
    world.upstream.next(fails, fails, fails);
    for (const _ of [1, 2, 3]) await caller.post("/responses", body);
    const said = { model: "scripted-speech", voice: "alloy", input: "Hi" };
    expect((await caller.post("/speech/generations", said)).status).toBe(200);
    // A refusal of the content is no fault of the upstream.
    media.next("POST /images/generations", {
      kind: "json",
      status: 400,
      body: { error: { code: "content_policy_violation", message: "no" } },
    });
    const image = { model: "scripted-image", prompt: "a" };
    for (const _ of [1, 2]) await ended(caller, await submit(caller, "images", image));
    const clip = { model: "text-only", prompt: "a", durationSeconds: 6, resolution: "480p" };
    await ended(caller, await submit(caller, "videos", clip));
    media.next("POST /audio/speech", { kind: "status", status: 402 });
    expect((await caller.post("/speech/generations", { ...said, input: "Ho" })).status).toBe(503);

    // A process reports its figures within ten seconds.
    const shown = await until(
      "the console to show what /metrics shows",
      async () => {
        const { json } = await get("/upstreams");
        const exported = await exportedFigures();
        const shown = new Map(json.data.map((one: Document) => [one.name, one]));
        const isSame = [...exported].every(([name, figures]) => {
          const { requests, errors, inFlight } = (shown.get(name) ?? {}) as Document;
          return JSON.stringify({ requests, errors, inFlight }) === JSON.stringify(figures);
        });
        return isSame && exported.size > 2 ? json : undefined;
      },
      { withinMs: 60_000, everyMs: 250 },
    );
    const named = (name: string) => shown.data.find((one: Document) => one.name === name);
    expect(named("main")).toMatchObject({ object: "upstream", lastError: "server_error" });
    expect(named("main").errors).toBeGreaterThanOrEqual(3);
    expect(named("main").latencyMs.p50).toBeGreaterThan(0);
    // Text, speech, images and a video. One of them failed, because the operator's account there is empty.
    expect(named("scripted")).toMatchObject({
      ...{ requests: 6, errors: 1, inFlight: 0, busiest: 0, slots: null },
      ...{ state: "account_empty", lastError: "account_empty" },
      accountEmptyAt: expect.stringMatching(/Z$/),
    });
    // Text, media and their workers report, each of their replicas. A mesh may have more gateways beside the seven roles.
    const reporting = world.opsUrls.length === 1 ? 1 : 3 * Math.floor(world.opsUrls.length / 7);
    expect(shown.processes).toBe(reporting);
  });

  test("show the day and the week of upstreams, with each try, also one that failed", {
    timeout: 240_000,
  }, async () => {
    const historyOf = async (range: string) => {
      const { json } = await get(`/upstreams/history?range=${range}`);
      return json.data.find(({ name }: Document) => name === "main");
    };
    const caller = await world.caller();
    const before = (await historyOf("day")) ?? { requests: 0, errors: 0, errorKinds: {} };
    world.play();
    world.upstream.next({ kind: "status", status: 500 });
    for (const _ of [1, 2]) await caller.post("/responses", body);
    // Another replica writes its counts each minute.
    const shown = await until(
      "the tries to be counted",
      async () => {
        const now = await historyOf("day");
        return now?.requests >= before.requests + 2 ? now : undefined;
      },
      { withinMs: 90_000, everyMs: 500 },
    );
    expect(shown).toMatchObject({
      ...{ object: "upstream.history", requests: before.requests + 2, errors: before.errors + 1 },
      errorKinds: { server_error: (before.errorKinds.server_error ?? 0) + 1 },
      latencyMs: { p50: expect.any(Number), p95: expect.any(Number) },
    });
    expect(shown.errorRate).toBeCloseTo(shown.errors / shown.requests);
    expect(shown.models.map(({ id }: Document) => id)).toContain("scripted");
    expect(shown.hours).toHaveLength(24);
    const sum = shown.hours.reduce((all: number, { requests }: Document) => all + requests, 0);
    expect(sum).toBe(shown.requests);
    expect((await historyOf("week")).hours).toHaveLength(7 * 24);
    const wrong = await get("/upstreams/history?range=year");
    expect(wrong).toMatchObject({ status: 400, code: "invalid_value" });
  });
});

/** The metrics of each upstream from all processes, with the labels of the alert. */
async function exportedFigures() {
  const figures = new Map<string, { requests: number; errors: number; inFlight: number }>();
  const of = (name: string) => {
    const known = figures.get(name) ?? { requests: 0, errors: 0, inFlight: 0 };
    figures.set(name, known);
    return known;
  };
  const notCounted = /^(|cancelled|content_policy|context_length|invalid_request|policy)$/;
  for (const url of world.opsUrls) {
    const text = await (await fetch(new URL("/metrics", url))).text();
    for (const [, labels = "", value] of text.matchAll(
      /^genmesh_inference_duration_seconds_count\{(.*)\} (\d+)$/gm,
    )) {
      const figure = of(/provider="([^"]*)"/.exec(labels)?.[1] ?? "");
      figure.requests += Number(value);
      const error = /error="([^"]*)"/.exec(labels)?.[1] ?? "";
      if (!notCounted.test(error)) figure.errors += Number(value);
    }
    for (const [, name = "", value] of text.matchAll(
      /^genmesh_inference_active\{provider="([^"]*)",.*\} (\d+)$/gm,
    )) {
      of(name).inFlight += Number(value);
    }
  }
  return figures;
}
