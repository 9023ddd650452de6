import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { afterAll, describe, expect, test } from "vitest";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import { againWhereBusy } from "../support/again.ts";
import { promptly } from "../support/promptly.ts";
import { until } from "../support/until.ts";
import { type Asked, type Caller, refusalOf } from "./caller.ts";
import { ownWorldOnly, startWorld } from "./world.ts";

const world = await startWorld();
afterAll(() => world[Symbol.asyncDispose]());
ownWorldOnly();

const body = { model: "scripted", input: "Hi" };
const statusOf = async (who: Caller, path = "/models") => (await who.get(path)).status;
const invalid = "401 authentication_error invalid_api_key null";

describe("a key's scopes", () => {
  const routes: [path: string, scope: Scope, method: "GET" | "POST"][] = [
    ["/models", Scope.MODELS, "GET"],
    ["/models/scripted", Scope.MODELS, "GET"],
    ["/billing", Scope.BILLING, "GET"],
    ["/credits", Scope.BILLING, "GET"],
    ["/responses", Scope.TEXT, "POST"],
    ["/responses/compact", Scope.TEXT, "POST"],
    ["/chat/completions", Scope.TEXT, "POST"],
    ["/images/generations", Scope.IMAGES, "POST"],
    ["/videos/generations", Scope.VIDEOS, "POST"],
    ["/music/generations", Scope.MUSIC, "POST"],
    ["/speech/generations", Scope.SPEECH, "POST"],
    ["/files", Scope.FILES, "GET"],
  ];

  test.for([Scope.MODELS, Scope.BILLING, Scope.TEXT])(
    "open its own routes and no others (scope %i)",
    async (scope) => {
      const owner = await world.caller();
      const scoped = await world.withKey(owner, { scopes: [scope] });
      world.play();
      for (const [path, wanted, method] of routes) {
        const asked =
          method === "GET"
            ? await scoped.get(path)
            : await scoped.post(path, { ...body, messages: [{ role: "user", content: "Hi" }] });
        if (wanted === scope) expect(asked.status).toBe(200);
        else expect(refusalOf(asked)).toBe("403 permission_error permission_denied null");
      }
    },
  );

  test("are looked at behind the body's syntax, and behind the rate", async () => {
    const owner = await world.caller();
    const scoped = await world.withKey(owner, { scopes: [Scope.MODELS] });
    for (const [path, , method] of routes) {
      if (method === "GET") continue;
      const asked = await scoped.post(path, "{bad");
      expect(refusalOf(asked), path).toMatch(/^400 invalid_request_error invalid_json /);
    }
    const slow = await world.withKey(owner, { scopes: [Scope.MODELS], requestsPerMinute: 3 });
    const statuses = [];
    for (let at = 0; at < 5; at++) statuses.push((await slow.post("/responses", body)).status);
    expect(statuses).toEqual([403, 403, 403, 429, 429]);
    expect(await statusOf(slow, "/billing")).toBe(429);
  });

  test("are all where none were given", async () => {
    const owner = await world.caller();
    world.play();
    expect(await statusOf(owner)).toBe(200);
    expect(await statusOf(owner, "/billing")).toBe(200);
    expect((await owner.post("/responses", body)).status).toBe(200);
  });
});

test("a key's models: another one is refused before anything is sent or held", async () => {
  const owner = await world.caller();
  const bound = await world.withKey(owner, { allowedModels: ["plain"] });
  const seen = world.play();
  for (const [path, fields] of [
    ["/responses", {}],
    ["/responses/compact", {}],
    ["/chat/completions", { messages: [{ role: "user", content: "Hi" }] }],
  ] as const) {
    const asked = await bound.post(path, { ...body, ...fields });
    expect(refusalOf(asked)).toBe("403 permission_error permission_denied model");
    expect((await bound.post(path, { ...body, ...fields, model: "plain" })).status).toBe(200);
  }
  expect(seen.map(({ body: sent }) => sent.model)).toEqual(["plain", "plain", "plain"]);
});

describe("a key's monthly limit", () => {
  const refusal = "403 permission_error key_limit_exceeded null";

  test("counts what is held and what was spent, of this key alone", async () => {
    const owner = await world.caller();
    // One hold fits (it is above 4,000), and two at once do not. After a charge of 3,000 none fits.
    const limited = await world.withKey(owner, { monthlyUsdMicrosLimit: 6_000n });
    const seen = world.play({ kind: "ok", break: { how: "hang", after: 1 }, usage: null });
    const stream = await limited.open("/responses", body);
    expect(refusalOf(await limited.post("/responses", body))).toBe(refusal);
    expect(seen).toHaveLength(1);
    stream.leave();
    await until("the settlement", async () => (await owner.balance()).reserved === 0);
    const usage = { input_tokens: 1_000, output_tokens: 500, total_tokens: 1_500 };
    world.play({ kind: "ok", usage });
    expect((await limited.post("/responses", body)).status).toBe(200);
    expect(refusalOf(await limited.post("/responses", body))).toBe(refusal);
    // Less output needs less of a hold.
    expect((await limited.post("/responses", { ...body, max_output_tokens: 1 })).status).toBe(200);
    expect((await owner.post("/responses", body)).status).toBe(200);
  });

  test("is not overdrawn by many at once", async () => {
    const owner = await world.caller();
    const limited = await world.withKey(owner, { monthlyUsdMicrosLimit: 14_000n });
    // No answer comes before all requests were accepted or refused. The unused part of a hold would make room for another request.
    const judged = Promise.withResolvers<void>();
    const seen = world.play({ kind: "ok", firstByteAfter: judged.promise });
    const answered: number[] = [];
    const busy: string[] = [];
    const counts = () => ({
      sent: seen.length,
      refused: answered.filter((status) => status === 403).length,
      others: answered.filter((status) => status !== 403),
    });
    const beganMs = performance.now();
    const sinceMs = () => Math.round(performance.now() - beganMs);
    const asked = Array.from({ length: 30 }, async (_, n) => {
      const post = () => limited.post("/responses", body, { idempotencyKey: `many ${n}` });
      const onBusy = ({ json }: Asked) =>
        busy.push(`request ${n}: ${json?.error?.code} after ${sinceMs()} ms`);
      answered.push((await againWhereBusy(post, onBusy)).status);
    });
    const areJudged = () => seen.length + answered.length >= 30;
    await until("30 to be judged", areJudged).catch(() => {});
    // A hold whose request got no answer stays open until it is ended. Meanwhile it takes its part of the limit.
    const sent = busy.length === 0 ? 3 : Math.min(seen.length, 3);
    const refused = 30 - sent;
    const evidence = `${sinceMs()} ms; ${JSON.stringify(await owner.balance())}; busy: ${busy.join(", ") || "none"}`;
    expect(counts(), evidence).toEqual({ sent, refused, others: [] });
    judged.resolve();
    await Promise.all(asked);
    expect(counts(), evidence).toEqual({ sent, refused, others: Array(sent).fill(200) });
    expect((await owner.settled()).monthSpend, evidence).toBe(30 * sent);
  });
});

describe("a key's rate", () => {
  test("is told with every answer, and 429 says when to come back", async () => {
    const owner = await world.caller();
    const slow = await world.withKey(owner, { requestsPerMinute: 3 });
    for (const left of ["2", "1", "0"]) {
      const { status, headers } = await slow.get("/models");
      expect(status).toBe(200);
      expect(headers.get("x-ratelimit-limit-requests")).toBe("3");
      expect(headers.get("x-ratelimit-remaining-requests")).toBe(left);
      expect(headers.get("x-ratelimit-reset-requests")).toMatch(/s$/);
    }
    const asked = await slow.post("/responses", body);
    expect(refusalOf(asked)).toBe("429 rate_limit_error rate_limit_exceeded null");
    const seconds = Number(asked.headers.get("retry-after"));
    expect(seconds).toBeGreaterThan(15);
    expect(seconds).toBeLessThanOrEqual(20);
    expect(asked.headers.get("x-ratelimit-remaining-requests")).toBe("0");
    expect(await statusOf(owner)).toBe(200);
    await world.later(seconds * 1_000);
    expect(await statusOf(slow)).toBe(200);
    expect(await statusOf(slow)).toBe(429);
  });

  test("is generous where none was given", async () => {
    const owner = await world.caller();
    const { headers } = await owner.get("/models");
    expect(Number(headers.get("x-ratelimit-limit-requests"))).toBeGreaterThanOrEqual(600);
  });
});

describe("a key's end", () => {
  test("by revocation holds within a second, and streams that run are finished and charged", async () => {
    const owner = await world.caller();
    const doomed = await world.withKey(owner, {});
    world.play({ kind: "ok", deltaDelayMs: 300 });
    const stream = await doomed.open("/responses", body);
    await stream.until(({ name }) => name === "response.output_text.delta");
    await world.admin.auth.revokeKey({ keyId: doomed.keyId });
    await promptly(1_000, () =>
      until("the revocation", async () => (await statusOf(doomed)) === 401),
    );
    expect(refusalOf(await doomed.post("/responses", body))).toBe(invalid);
    const events = await stream.rest();
    expect(events.at(-2)?.name).toBe("response.completed");
    expect((await owner.balance()).monthSpend).toBe(30);
    // The account's other keys still work.
    expect(await statusOf(owner)).toBe(200);
  });

  test("by expiry is exact", async () => {
    const owner = await world.caller();
    const atMs = world.now() + 600_000;
    const brief = await world.withKey(owner, { expireTime: timestampFromMs(atMs) });
    expect(await statusOf(brief)).toBe(200);
    await world.later(590_000);
    expect(await statusOf(brief)).toBe(200);
    await world.later(10_000);
    expect(refusalOf(await brief.get("/models"))).toBe(invalid);
  });

  test("a secret that was rotated out is valid for its grace, the new one at once", async () => {
    const owner = await world.caller();
    const { secret } = await world.admin.auth.rotateKey({
      keyId: owner.keyId,
      graceSeconds: 3_600,
    });
    const renewed = world.holding(secret);
    expect([await statusOf(owner), await statusOf(renewed)]).toEqual([200, 200]);
    await world.later(3_590_000);
    expect([await statusOf(owner), await statusOf(renewed)]).toEqual([200, 200]);
    await world.later(10_000);
    expect([await statusOf(owner), await statusOf(renewed)]).toEqual([401, 200]);
  });

  test("without a grace the old secret ends within a second", async () => {
    const owner = await world.caller();
    expect(await statusOf(owner)).toBe(200);
    const { secret } = await world.admin.auth.rotateKey({ keyId: owner.keyId, graceSeconds: 0 });
    await until("the old secret's end", async () => (await statusOf(owner)) === 401, {
      withinMs: 60_000,
    });
    expect(await statusOf(world.holding(secret))).toBe(200);
  });

  test("a secret that was wrong a moment ago may be right now", async () => {
    const owner = await world.caller();
    const apiKey = `my_own_${owner.accountId}_secret`;
    const early = world.holding(apiKey);
    expect(await statusOf(early)).toBe(401);
    await world.admin.auth.createAccount({ name: "late", apiKey });
    await until("the new key", async () => (await statusOf(early)) === 200, { withinMs: 1_500 });
  });
});
