import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { until } from "../support/until.ts";
import type { Document } from "./media-world.ts";
import { adminToken, operatorSession } from "./operator-session.ts";
import { isOwnWorld, ownWorldOnly, startWorld } from "./world.ts";

const world = await startWorld({ env: { GENMESH_ADMIN_TOKEN: adminToken } });
afterAll(() => world[Symbol.asyncDispose]());
ownWorldOnly();

const operator = operatorSession(world);
const { get } = operator;
const body = { model: "scripted", input: "Hi" };

beforeAll(async () => {
  if (isOwnWorld) await operator.signIn();
});

describe("an operator's routes of requests and upstreams", () => {
  test("list requests of all accounts, and say why one failed, to operators alone", async () => {
    const [caller, other] = [await world.caller(), await world.caller()];
    world.play();
    const hush = { ...body, input: "hush hush" };
    expect((await other.post("/responses", hush)).status).toBe(200);
    world.upstream.next({ kind: "status", status: 500 });
    const failed = await caller.post("/responses", hush);
    expect(failed.status).toBe(502);
    const requestId = failed.headers.get("x-request-id") ?? "";
    // Accounts that are not named are counted in the background.
    const found = await until("the request to be counted", async () => {
      const { json } = await get(`/requests?id=${requestId}`);
      return json.data[0] as Document | undefined;
    });
    expect(found).toMatchObject({
      ...{ object: "request", requestId, accountId: caller.accountId, model: "scripted" },
      ...{ status: "failed", upstream: null, costUsdMicros: 0, keyId: caller.keyId },
      upstreamFailure: { kind: "server_error", status: 500 },
      error: { code: "model_request_failed" },
    });
    expect(found.failedTries[0]).toEqual({
      ...{ upstream: "main", failure: "server_error", status: 500 },
    });
    const idsOf = async (query: string) =>
      (await get(`/requests?${query}`)).json.data.map((one: Document) => one.id);
    const mine = [`account=${caller.accountId}`, `key=${caller.keyId}`];
    for (const query of [...mine, ...mine.map((of) => `${of}&status=failed&upstream=main`)]) {
      expect(await idsOf(query), query).toEqual([found.id]);
    }
    const second = Math.floor(Date.parse(found.endedAt) / 1_000);
    const failures = await idsOf(
      `status=failed&model=scripted&kind=text&start_time=${second - 60}`,
    );
    expect(failures).toContain(found.id);
    for (const query of [
      ...[`${mine[0]}&upstream=backup`, `${mine[0]}&kind=image`, `${mine[0]}&status=completed`],
      ...[`${mine[0]}&end_time=${second - 3_600}`, `${mine[0]}&start_time=${second + 3_600}`],
    ]) {
      expect(await idsOf(query), query).toEqual([]);
    }
    // Pages go on from one to the next, newest first.
    const seen: Document[] = [];
    for (let after = ""; ; ) {
      const { json } = await get(`/requests?limit=3${after}`);
      expect(JSON.stringify(json)).not.toContain("hush");
      seen.push(...json.data);
      if (json.next === null) break;
      after = `&after=${encodeURIComponent(json.next)}`;
    }
    expect(new Set(seen.map(({ accountId }) => accountId)).size).toBeGreaterThan(1);
    const ended = seen.map(({ accountId, unit, entry }) => `${accountId} ${unit} ${entry}`);
    expect(new Set(ended).size).toBe(ended.length);
    for (const [query, code] of [
      ["status=nothing", "invalid_value"],
      ["kind=grant", "invalid_value"],
      ["after=1.u.2", "invalid_value"],
      ["start_time=soon", "invalid_type"],
      ["account=acct_none", "object_not_found"],
      ["key=key_none", "object_not_found"],
    ]) {
      expect((await get(`/requests?${query}`)).code, query).toBe(code);
    }
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
