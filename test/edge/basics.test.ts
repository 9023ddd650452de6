import { levels } from "pino";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ErrorReason, knownReason, refuse } from "#kit/base/errors.ts";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import { admissionLimits } from "../../gateway/admission/index.ts";
import { type EdgeWorld, startEdge } from "./world.ts";

let edge: EdgeWorld;
let notReady: string | undefined;
/** The service's requests. */
let generated = 0;
beforeAll(async () => {
  edge = await startEdge({
    notReady: () => notReady,
    text: {
      generate: ({ admission, body }) => {
        generated++;
        const deferred = knownReason(admission?.refuseWith ?? ErrorReason.UNSPECIFIED);
        if (deferred) refuse(deferred);
        const { answer = {} } = JSON.parse(Buffer.from(body).toString());
        if (answer.refuse) refuse(answer.refuse, answer.details);
        if (answer.throw) throw new Error(answer.throw);
        return { body: Buffer.from('{"ok":true}') };
      },
    },
    billing: {
      getBalance: ({ accountId }) => {
        if (accountId !== edge.accountId) throw new Error("another account");
        return {
          usdMicros: { available: 5_000_000n, reserved: 7n, spendable: 4_999_993n, monthSpent: 9n },
          credits: { available: 10n, reserved: 3n, spendable: 7n, monthSpent: 1n },
        };
      },
    },
  });
});
afterAll(() => edge[Symbol.asyncDispose]());

const errorOf = async (response: Response) =>
  ((await response.json()) as { error: Record<string, unknown> }).error;

describe("without a key", () => {
  test.each([
    ["GET", "/v1/models"],
    ["POST", "/v1/responses"],
    ["GET", "/v1/nothing/here"],
    ["PATCH", "/v1/models"],
    ["DELETE", "/v1"],
    ["GET", "/v1/%zz"],
    ["GET", "/v1/models/%E0%A4%A"],
    ["GET", `/v1/models/${"m".repeat(2_000)}`],
    ["HEAD", "/v1/files/file_1/content"],
    ["OPTIONS", "/v1/models"],
    ["PROPFIND", "/v1/models"],
  ])("%s %s is 401", async (method, path) => {
    const response = await fetch(`http://127.0.0.1:${edge.port}${path}`, { method });
    expect(response.status).toBe(401);
    expect(response.headers.get("www-authenticate")).toBe("Bearer");
    expect(response.headers.get("x-request-id")).toMatch(/^req_/);
    if (method === "HEAD") return;
    expect(await errorOf(response)).toEqual({
      message: expect.any(String),
      type: "authentication_error",
      param: null,
      code: "invalid_api_key",
    });
  });

  test.each([
    ["/healthz", 200, "ok\n"],
    ["/livez", 200, "ok\n"],
    ["/readyz", 200, "ready\n"],
  ])("%s answers", async (path, status, body) => {
    const response = await fetch(`http://127.0.0.1:${edge.port}${path}`);
    expect(response.status).toBe(status);
    expect(await response.text()).toBe(body);
  });

  test("/readyz says why not, while requests are still served", async () => {
    notReady = "draining";
    const response = await fetch(`http://127.0.0.1:${edge.port}/readyz`);
    expect([response.status, await response.text()]).toEqual([503, "draining\n"]);
    expect((await edge.ask("/v1/models")).status).toBe(200);
    notReady = undefined;
  });

  test("the metrics have the requests by route", async () => {
    await edge.ask("/v1/models");
    const text = await edge.metrics.text();
    expect(text).toMatch(/http_request_duration_seconds_count\{.*route="\/v1\/models".*\} \d/);
  });

  test("no path of the public port shows metrics", async () => {
    for (const path of ["/metrics", "/metrics/", "//metrics", "/%6Detrics", "/v1/metrics"]) {
      const response = await edge.ask(path);
      expect([path, response.status]).toEqual([path, 404]);
      expect(await errorOf(response)).toMatchObject({ code: "unknown_route" });
    }
  });

  test("a path outside /v1 is an unknown route", async () => {
    const response = await fetch(`http://127.0.0.1:${edge.port}/nothing`);
    expect(response.status).toBe(404);
    expect(await errorOf(response)).toMatchObject({ code: "unknown_route" });
  });
});

describe("paths and methods", () => {
  test.each([
    ["GET", "/v1/nothing", 404, "unknown_route"],
    ["POST", "/v1/nothing", 404, "unknown_route"],
    ["GET", "/v1/models/", 404, "unknown_route"],
    ["GET", "/v1/%zz", 404, "unknown_route"],
    ["GET", "/v1/models/%E0%A4%A", 400, "model_not_found"],
    ["GET", "/v1/responses", 405, "method_not_allowed"],
    ["HEAD", "/v1/responses", 405, "method_not_allowed"],
    ["HEAD", "/v1/nothing", 404, "unknown_route"],
    ["OPTIONS", "/v1/models", 405, "method_not_allowed"],
    ["PROPFIND", "/v1/jobs", 405, "method_not_allowed"],
    ["POST", "/v1/%6Dodels", 405, "method_not_allowed"],
    ["POST", "/v1/models/a%2Fb", 405, "method_not_allowed"],
    ["POST", "/v1/models%2Fa", 404, "unknown_route"],
    ["POST", "/v1/models/%E0%A4%A", 405, "method_not_allowed"],
    ["PATCH", "/v1/images/generations/job_1", 405, "method_not_allowed"],
    ["PUT", "/v1/files/file_1", 405, "method_not_allowed"],
  ])("%s %s is %d %s", async (method, path, status, code) => {
    const response = await edge.ask(path, { method });
    expect(response.status).toBe(status);
    if (method !== "HEAD") expect((await errorOf(response)).code).toBe(code);
  });

  test("405 names the methods", async () => {
    const response = await edge.ask("/v1/files/file_1", { method: "PUT" });
    expect(response.headers.get("allow")).toBe("DELETE, GET, HEAD");
  });
});

describe("request ids", () => {
  const ours = /^req_[a-z0-9]{24}$/;
  const idsOf = async (headers: Record<string, string>) => {
    const answer = await edge.ask("/v1/models", { headers });
    return ["x-request-id", "x-client-request-id"].map((name) => answer.headers.get(name));
  };

  test.each(["abc-123_X.y:z", "a".repeat(128)])("%s is kept beside ours", async (id) => {
    const answers = [
      await idsOf({ "x-request-id": id }),
      await idsOf({ "x-client-request-id": id }),
      await idsOf({ "x-request-id": id, "x-client-request-id": "other" }),
    ];
    expect(answers).toEqual(Array(3).fill([expect.stringMatching(ours), id]));
    expect(new Set(answers.map(([own]) => own)).size).toBe(3);
  });

  test.each(["a b", "a".repeat(129), "ä", '"><script>'])("%j is passed over", async (id) => {
    const sent = Buffer.from(id).toString("latin1");
    expect(await idsOf({ "x-request-id": sent })).toEqual([expect.stringMatching(ours), null]);
  });
});

describe("errors of services", () => {
  const answer = (what: unknown) => edge.post("/v1/responses", { answer: what });

  test("a refusal keeps its text, param and hints, inside error", async () => {
    const options = [{ durationSeconds: 6, resolution: "480p", modes: ["t2v"], credits: 45 }];
    const response = await answer({
      refuse: ErrorReason.UNSUPPORTED_DURATION,
      details: { param: "seconds", metadata: { available_options: JSON.stringify(options) } },
    });
    expect(response.status).toBe(400);
    expect(await response.json()).toEqual({
      error: {
        message: "The model does not offer this duration.",
        type: "invalid_request_error",
        param: "seconds",
        code: "unsupported_duration",
        availableOptions: options,
      },
    });
  });

  test.each([
    [ErrorReason.INSUFFICIENT_BALANCE, 402, "insufficient_balance"],
    [ErrorReason.IDEMPOTENCY_KEY_REUSED, 422, "idempotency_key_reused"],
  ])("reason %d tells clients not to retry", async (reason, status, code) => {
    const response = await answer({ refuse: reason });
    expect(response.status).toBe(status);
    expect(response.headers.get("x-should-retry")).toBe("false");
    expect((await errorOf(response)).code).toBe(code);
  });

  test("503 says when to come back", async () => {
    const response = await answer({
      refuse: ErrorReason.SERVICE_UNAVAILABLE,
      details: { metadata: { retry_after_ms: "2400" } },
    });
    expect(response.status).toBe(503);
    expect(response.headers.get("retry-after")).toBe("3");
  });

  test("a reason of internal calls is a fault of ours, without its text", async () => {
    const response = await answer({ refuse: ErrorReason.OPERATION_MISMATCH });
    expect(response.status).toBe(500);
    expect(await errorOf(response)).toMatchObject({
      code: "internal_error",
      message: expect.stringMatching(/^Something went wrong on our side\. Tell the operator/),
    });
  });

  test("an unknown error leaks nothing", async () => {
    const response = await answer({ throw: "the secret is swordfish" });
    expect(response.status).toBe(500);
    expect(await response.text()).not.toContain("swordfish");
  });
});

describe("keys", () => {
  test("a key outside its scope is 403, and no service is asked", async () => {
    const key = await edge.makeKey({ scopes: [Scope.MODELS] });
    const headers = { authorization: `Bearer ${key}` };
    expect((await edge.ask("/v1/models", { headers })).status).toBe(200);
    const response = await edge.ask("/v1/billing", { headers });
    expect(response.status).toBe(403);
    expect(await errorOf(response)).toMatchObject({ code: "permission_denied" });
  });

  test("over the rate: 429 with its headers, deferred where a recorded answer may exist", async () => {
    const key = await edge.makeKey({ requestsPerMinute: 1 });
    const headers = { authorization: `Bearer ${key}` };
    let response = await edge.ask("/v1/models", { headers });
    expect(response.headers.get("x-ratelimit-limit-requests")).toBe("1");
    for (let i = 0; i < 20 && response.status === 200; i++) {
      response = await edge.ask("/v1/models", { headers });
    }
    expect(response.status).toBe(429);
    expect(Number(response.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(response.headers.get("x-ratelimit-remaining-requests")).toBe("0");
    expect(await errorOf(response)).toMatchObject({ code: "rate_limit_exceeded" });
    // The service gets the refusal with the request, and answers with it. The gateway sets the times.
    const deferred = await edge.post("/v1/responses", {}, { ...headers, "idempotency-key": "k" });
    expect(deferred.status).toBe(429);
    expect(deferred.headers.get("retry-after")).toBe(response.headers.get("retry-after"));
    // Some are looked up. Further ones are refused before their body is read, and so look the same.
    const before = generated;
    for (let n = 0; n < 20; n++) {
      const more = await edge.post("/v1/responses", {}, { ...headers, "idempotency-key": "k" });
      expect(more.status).toBe(429);
      expect(await errorOf(more)).toMatchObject({ code: "rate_limit_exceeded" });
    }
    expect(generated - before).toBe(admissionLimits.fewestLookUps - 1);
  });

  test("a key of certain models sees those alone", async () => {
    const key = await edge.makeKey({ allowedModels: ["svc-video-1-5", "image-1"] });
    const headers = { authorization: `Bearer ${key}` };
    const { data } = (await (await edge.ask("/v1/models", { headers })).json()) as {
      data: { id: string }[];
    };
    expect(data.map((model) => model.id).sort()).toEqual(["image-1", "svc-video-1-5"]);
    expect((await edge.ask("/v1/models/image-1", { headers })).status).toBe(200);
    const other = await edge.ask("/v1/models/music-1", { headers });
    expect(other.status).toBe(400);
    expect(await errorOf(other)).toMatchObject({ code: "model_not_found", param: "model" });
  });
});

test("GET /models lists the catalog", async () => {
  const response = await edge.ask("/v1/models");
  const { object, data } = (await response.json()) as { object: string; data: { id: string }[] };
  expect(object).toBe("list");
  expect(data.length).toBeGreaterThan(10);
  const one = await (await edge.ask("/v1/models/svc-video-1-5")).json();
  expect(one).toEqual(data.find((model) => model.id === "svc-video-1-5"));
});

test("GET /billing has both wallets of the key's account", async () => {
  expect(await (await edge.ask("/v1/billing")).json()).toEqual({
    object: "billing.balance",
    availableUsdMicros: 5_000_000,
    reservedUsdMicros: 7,
    spendableUsdMicros: 4_999_993,
    monthSpendUsdMicros: 9,
    credits: { available: 10, reserved: 3, spendable: 7, monthSpent: 1 },
  });
});

test("one line of log a request: no key, no query, no path", async () => {
  const before = edge.log.length;
  const answer = await edge.ask("/v1/models/svc-video-1-5?secret=swordfish", {
    headers: { "x-request-id": "the-one" },
  });
  await expect.poll(() => edge.log.length).toBe(before + 1);
  const line = edge.log.at(-1);
  expect(line).toMatchObject({
    level: levels.values.info,
    requestId: answer.headers.get("x-request-id"),
    clientRequestId: "the-one",
    method: "GET",
    route: "/v1/models/:model",
    status: 200,
    durationMs: expect.any(Number),
    accountId: edge.accountId,
  });
  expect(JSON.stringify(line)).not.toMatch(/swordfish|gm_|svc-video/);
});

test.each(["/healthz", "/livez", "/readyz"])("%s is in the log at debug alone", async (path) => {
  const requestId = `probe-${path.slice(1)}`;
  await edge.ask(path, { headers: { "x-request-id": requestId } });
  const line = () => edge.log.find((one) => one.clientRequestId === requestId);
  await expect.poll(line).toMatchObject({ route: path, level: levels.values.debug });
});
