import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { committedDescription } from "../../gateway/openapi.ts";
import { exposedHeaders } from "../../gateway/plugins/cors.ts";
import { type EdgeWorld, startEdge } from "./world.ts";

const page = "https://app.example.com";
let edge: EdgeWorld;
let open: EdgeWorld;
let closed: EdgeWorld;
beforeAll(async () => {
  edge = await startEdge({ settings: { corsOrigins: [page, "http://localhost:3000"] } });
  open = await startEdge({ settings: { corsOrigins: ["*"] } });
  closed = await startEdge({ settings: { corsOrigins: [] } });
});
afterAll(async () => {
  for (const world of [edge, open, closed]) await world[Symbol.asyncDispose]();
});

/** A browser's preflight, which has no key. */
function preflight(
  { port }: EdgeWorld,
  path: string,
  { origin = page, method = "POST", headers = "authorization,content-type" } = {},
): Promise<Response> {
  return fetch(`http://127.0.0.1:${port}${path}`, {
    method: "OPTIONS",
    headers: {
      origin,
      "access-control-request-method": method,
      "access-control-request-headers": headers,
    },
  });
}

const corsOf = ({ headers }: Response) =>
  Object.fromEntries([...headers].filter(([name]) => /^access-control-|^vary$/.test(name)));

describe("a preflight", () => {
  test.each(["/v1/responses", "/v1/models", "/v1/jobs/job_1/events", "/openapi.json"])(
    "of %s needs no key",
    async (path) => {
      const response = await preflight(edge, path);
      expect([response.status, await response.text()]).toEqual([204, ""]);
      expect(corsOf(response)).toEqual({
        vary: "Origin, Access-Control-Request-Headers",
        "access-control-allow-origin": page,
        "access-control-allow-methods": "GET, HEAD, POST, PATCH, DELETE",
        "access-control-allow-headers": "authorization, content-type",
        "access-control-max-age": "7200",
      });
    },
  );

  test.each([
    "https://evil.example.com",
    "https://app.example.com.evil.com",
    "https://APP.example.com",
    "http://app.example.com",
    "https://app.example.com:8443",
    "null",
    "*",
  ])("from %s learns nothing", async (origin) => {
    const response = await preflight(edge, "/v1/models", { origin });
    expect(response.status).toBe(401);
    expect(corsOf(response)).toEqual({ vary: "Origin" });
  });

  test("allows the headers that the API and its clients use, and no others", async () => {
    const known = ["authorization", "idempotency-key", "if-range", "range", "traceparent"];
    const others = ["x-forwarded-for", "x-forwarded-host", "forwarded", "cookie", "x-real-ip"];
    const odd = ["x-stainless-", "openai-\u00e4", "x-stainless-os:", "genmesh-principal"];
    const headers = [...known, ...others, ...odd, "X-Stainless-OS", "x-stainless-os"];
    const response = await preflight(edge, "/v1/models", {
      headers: Buffer.from(headers.join(", ")).toString("latin1"),
    });
    expect(response.headers.get("access-control-allow-headers")).toBe(
      [...known, "x-stainless-os"].join(", "),
    );
  });

  test("an OPTIONS that is none is a method like any other", async () => {
    const init = { method: "OPTIONS", headers: { origin: page } };
    const response = await edge.ask("/v1/models", init);
    expect(response.status).toBe(405);
    expect(response.headers.get("access-control-allow-origin")).toBe(page);
  });

  test("counts for no rate limit", async () => {
    const key = await edge.makeKey({ requestsPerMinute: 1 });
    for (let i = 0; i < 3; i++) {
      const response = await fetch(`http://127.0.0.1:${edge.port}/v1/models`, {
        method: "OPTIONS",
        headers: {
          authorization: `Bearer ${key}`,
          origin: page,
          "access-control-request-method": "GET",
        },
      });
      expect(response.status).toBe(204);
    }
  });
});

describe("an answer", () => {
  const shown = {
    vary: "Origin",
    "access-control-allow-origin": page,
    "access-control-expose-headers": exposedHeaders.join(", "),
  };

  test.each([
    ["GET", "/v1/models", 200],
    ["HEAD", "/v1/models", 200],
    ["GET", "/v1/models/none", 400],
    ["GET", "/v1/nothing", 404],
    ["PUT", "/v1/models", 405],
    ["GET", "/nothing", 404],
  ])("to %s %s (%d) can be read", async (method, path, status) => {
    const response = await edge.ask(path, { method, headers: { origin: page } });
    expect(response.status).toBe(status);
    expect(corsOf(response)).toEqual(shown);
  });

  test("the API's description can be read from anywhere: its page has no origin of its own", async () => {
    const response = await edge.ask("/openapi.json", { headers: { origin: page } });
    expect(response.status).toBe(200);
    expect(corsOf(response)).toEqual({ ...shown, "access-control-allow-origin": "*" });
  });

  test("refusals can be read: of a key, of a media type, of a body that is too large", async () => {
    const origin = { origin: page };
    const refused = [
      await edge.ask("/v1/models", { headers: { ...origin, authorization: "Bearer x" } }),
      await edge.post("/v1/responses", "{}", { ...origin, "content-type": "text/plain" }),
      await edge.post("/v1/music/generations", "x".repeat(1_100_000), origin),
    ];
    expect(refused.map(({ status }) => status)).toEqual([401, 415, 413]);
    for (const response of refused) expect(corsOf(response)).toEqual(shown);
  });

  test("to another page, or to none, has no leave", async () => {
    for (const headers of [{ origin: "https://evil.example.com" }, {}]) {
      const response = await edge.ask("/v1/models", { headers });
      expect(response.status).toBe(200);
      expect(corsOf(response)).toEqual({ vary: "Origin" });
    }
  });

  test("never allows credentials, also where all origins may call", async () => {
    const response = await open.ask("/v1/models", { headers: { origin: "null" } });
    expect(corsOf(response)).toEqual({ ...shown, "access-control-allow-origin": "*" });
    const before = await preflight(open, "/v1/models", { origin: "https://any.example" });
    expect(before.status).toBe(204);
    expect(before.headers.get("access-control-allow-origin")).toBe("*");
    expect(before.headers.get("access-control-allow-credentials")).toBeNull();
  });

  test("without origins has none of these headers", async () => {
    expect((await preflight(closed, "/v1/models")).status).toBe(401);
    const response = await closed.ask("/v1/models", { headers: { origin: page } });
    expect([response.status, corsOf(response)]).toEqual([200, {}]);
  });
});

test("every documented header of an answer is exposed", async () => {
  const description = await committedDescription();
  const named = [...description.matchAll(/`((?:x-|retry-)[a-z-]+|Idempotency-Replayed)[`:]/gi)];
  const names = new Set(named.map(([, name = ""]) => name.toLowerCase()));
  expect(names.size).toBeGreaterThan(2);
  // A header of requests.
  names.delete("x-api-key");
  for (const name of names) expect(exposedHeaders).toContain(name);
});

test("the OpenAI SDK in a browser may send what it sends", async () => {
  // Chromium and Firefox allow these without a preflight (https://fetch.spec.whatwg.org/#cors-safelisted-request-header).
  const safelisted = ["accept", "accept-language", "content-language"];
  const sent = new Set<string>();
  const client = new OpenAI({
    apiKey: edge.key,
    organization: "org",
    project: "proj",
    baseURL: `http://127.0.0.1:${edge.port}/v1`,
    dangerouslyAllowBrowser: true,
    fetch: (url, init) => {
      for (const [name] of new Headers(init?.headers)) sent.add(name);
      return fetch(url, {
        ...init,
        headers: { ...Object.fromEntries(new Headers(init?.headers)), origin: page },
      });
    },
  });
  await client.models.list();
  await client.responses.create({ model: "chat-1", input: "Hi" }).catch(() => {});
  expect([...sent].filter((name) => name.startsWith("x-stainless-")).length).toBeGreaterThan(3);
  const wanted = [...sent].filter((name) => !safelisted.includes(name));
  const response = await preflight(edge, "/v1/responses", { headers: wanted.join(",") });
  expect(response.headers.get("access-control-allow-headers")?.split(", ").sort()).toEqual(
    wanted.sort(),
  );
});
