import { afterAll, describe, expect, test } from "vitest";
import { openRaw, parseAnswer } from "../edge/raw.ts";
import { type Asked, refusalOf } from "./caller.ts";
import { isOwnWorld, ownWorldOnly, startWorld } from "./world.ts";

const world = await startWorld();
afterAll(() => world[Symbol.asyncDispose]());
const caller = await world.caller();
const body = { model: "chat-1", input: "Say hi." };
const posts = ["/responses", "/responses/compact", "/chat/completions"];

/** Checks the contract's envelope of an error. */
function expectEnvelope({ headers, json }: Asked): void {
  expect(Object.keys(json)).toEqual(["error"]);
  const { message, type, param, code } = json.error;
  expect([typeof message, typeof type, typeof code]).toEqual(["string", "string", "string"]);
  expect(param === null || typeof param === "string").toBe(true);
  expect(headers.get("x-request-id")).toMatch(/./);
  expect(headers.get("content-type")).toMatch(/^application\/json/);
}

async function askWith(authorization: string | undefined, path: string, init: RequestInit = {}) {
  const response = await fetch(`${world.baseUrl}${path}`, {
    ...init,
    headers: {
      ...(init.body ? { "content-type": "application/json" } : {}),
      ...(authorization === undefined ? {} : { authorization }),
    },
  });
  const text = await response.text();
  const { status, headers } = response;
  return { status, headers, text, json: JSON.parse(text) };
}

describe("401: without a valid key", () => {
  const unauthorized = "401 authentication_error invalid_api_key null";
  const unknown = "gm_0000000000000000000000000000000000000000";

  test.for<[name: string, authorization: string | undefined]>([
    ["no header", undefined],
    ["an empty one", ""],
    ["a bare word", "Bearer"],
    ["no secret", "Bearer  "],
    ["another scheme", `Basic ${Buffer.from(`x:${caller.key}`).toString("base64")}`],
    ["the key without its scheme", caller.key],
    ["an unknown key", `Bearer ${unknown}`],
    ["wrong characters", "Bearer not a key at all, is it?"],
    ["a key that is too short", "Bearer abc"],
    ["a key that is too long", `Bearer ${"a".repeat(500)}`],
    ["half a key", `Bearer ${caller.key.slice(0, -1)}`],
    ["a key with something behind it", `Bearer ${caller.key}x`],
    ["two keys", `Bearer ${caller.key} ${caller.key}`],
    ["a list of keys", `Bearer ${caller.key},${caller.key}`],
  ])("%s", async ([, authorization]) => {
    for (const path of ["/models", "/billing", "/models/chat-1"]) {
      const asked = await askWith(authorization, path);
      expect(refusalOf(asked)).toBe(unauthorized);
      expect(asked.headers.get("www-authenticate")).toMatch(/^Bearer/);
      expectEnvelope(asked);
    }
    const init = { method: "POST", body: JSON.stringify({ ...body, messages: [] }) };
    for (const path of posts) {
      expect(refusalOf(await askWith(authorization, path, init))).toBe(unauthorized);
    }
  });

  test("on every path under /v1, also on those that do not exist", async () => {
    for (const path of ["/", "/nope", "/models/none", "/videos/generations/x", "/responses/x"]) {
      for (const method of ["GET", "POST", "DELETE", "PATCH"]) {
        expect(refusalOf(await askWith(undefined, path, { method }))).toBe(unauthorized);
      }
    }
  });

  test("nothing else is looked at", async () => {
    const broken = { method: "POST", body: "{no json" };
    expect(refusalOf(await askWith(undefined, "/responses", broken))).toBe(unauthorized);
    const asked = await askWith(undefined, `/models?key=${caller.key}&api_key=${caller.key}`);
    expect(refusalOf(asked)).toBe(unauthorized);
  });

  test("a secret's case counts, the scheme's does not", async () => {
    const flipped = caller.key.replace(/[a-z]/g, (letter) => letter.toUpperCase());
    expect(refusalOf(await askWith(`Bearer ${flipped}`, "/models"))).toBe(unauthorized);
    for (const scheme of ["bearer", "BEARER"]) {
      expect((await askWith(`${scheme} ${caller.key}`, "/models")).status).toBe(200);
    }
  });
});

describe("with a key", () => {
  test("404: a path that does not exist", async () => {
    for (const path of ["/nope", "/responses/x/y", "/Models", "/models/a/b"]) {
      const asked = await caller.get(path);
      expect(refusalOf(asked)).toBe("404 not_found_error unknown_route null");
      expectEnvelope(asked);
    }
  });

  test("405: a method that a path does not take, naming those that it does", async () => {
    for (const path of posts) {
      const asked = await caller.get(path);
      expect(refusalOf(asked)).toBe("405 invalid_request_error method_not_allowed null");
      expect(asked.headers.get("allow")).toBe("POST");
      expectEnvelope(asked);
    }
    const asked = await caller.post("/models", {});
    expect(refusalOf(asked)).toBe("405 invalid_request_error method_not_allowed null");
    expect(asked.headers.get("allow")).toBe("GET, HEAD");
  });

  test("415: a body that does not say that it is JSON", async () => {
    for (const headers of [
      { "content-type": "text/plain" },
      { "content-type": "application/x-www-form-urlencoded" },
      { "content-type": "application/jsonp" },
      { "content-type": "" },
      { "content-encoding": "gzip" },
    ]) {
      const asked = await caller.post("/responses", body, { headers });
      expect(refusalOf(asked)).toBe("415 invalid_request_error unsupported_media_type null");
      expectEnvelope(asked);
    }
    for (const type of ["application/json; charset=utf-8", "Application/JSON"]) {
      const headers = { "content-type": type };
      expect((await caller.post("/responses", body, { headers })).status).toBe(200);
    }
  });

  test("413: a body above 64 MiB is refused for its length alone", async () => {
    const { hostname, port } = new URL(world.baseUrl);
    for (const [path, bytes] of [
      ["responses", 64 * 1024 * 1024 + 1],
      ["responses/compact", 64 * 1024 * 1024 + 1],
      ["chat/completions", 64 * 1024 * 1024 + 1],
      ["music/generations", 1024 * 1024 + 1],
      ["images/generations", 32 * 1024 * 1024 + 1],
    ] as const) {
      using raw = await openRaw(Number(port || 80), hostname);
      raw.send(
        `POST /v1/${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${caller.key}\r\n` +
          `content-type: application/json\r\ncontent-length: ${bytes}\r\n\r\n{`,
      );
      const { status, body: text } = parseAnswer(await raw.until((all) => all.endsWith("}}")));
      expect(status).toBe(413);
      expect(JSON.parse(text).error.code).toBe("payload_too_large");
    }
  });

  test("a large body that fits is read", async () => {
    const input = "word ".repeat(1_200_000);
    const asked = await caller.post("/responses", { model: "chat-mini", input });
    expect(refusalOf(asked)).toBe("400 invalid_request_error context_length_exceeded input");
  });

  test("402: the wallet does not cover the hold, and there is nothing to retry", async ({
    skip,
  }) => {
    skip(!isOwnWorld, "needs an account without funds");
    const poor = await world.caller({ usdMicros: 3n });
    for (const path of posts) {
      const asked = await poor.post(path, {
        ...body,
        messages: [{ role: "user", content: "Hi" }],
        model: "scripted",
      });
      expect(refusalOf(asked)).toBe("402 insufficient_quota insufficient_balance null");
      expect(asked.headers.get("x-should-retry")).toBe("false");
      expectEnvelope(asked);
    }
    expect(await poor.balance()).toMatchObject({ available: 3, reserved: 0 });
  });
});

describe("what an upstream says", () => {
  ownWorldOnly();
  const paths = [
    ["scripted", "/responses", { input: "Hi" }],
    ["scripted", "/chat/completions", { messages: [{ role: "user", content: "Hi" }] }],
    ["legacy", "/chat/completions", { messages: [{ role: "user", content: "Hi" }] }],
    ["peer", "/responses", { input: "Hi" }],
  ] as const;
  const expectAll = (expected: string, fields: object = {}, model?: string) => {
    const check = async ([usual, path, rest]: (typeof paths)[number], stream: boolean) => {
      const request = { model: model ?? usual, stream, ...rest, ...fields };
      const asked = await caller.post(path, request);
      expect(refusalOf(asked)).toBe(expected);
      expect(asked.text).not.toContain("UPSTREAM SECRET WORDS");
      expectEnvelope(asked);
    };
    return Promise.all(paths.flatMap((one) => [check(one, false), check(one, true)]));
  };

  test.for([401, 402, 403, 404, 429, 500, 502, 503, 529])("%i is our 502", async (status) => {
    world.play({ kind: "status", status, code: "model_not_found", param: "model" });
    await expectAll("502 server_error model_request_failed null");
  });

  test.for([400, 422])("%i is our 400, in our words", async (status) => {
    world.play({ kind: "status", status, code: "weird", message: "UPSTREAM SECRET WORDS" });
    await expectAll("400 invalid_request_error invalid_value null");
    world.play({ kind: "status", status, param: "temperature" });
    await expectAll("400 invalid_request_error invalid_value temperature", { temperature: 9 });
    // A value that the caller did not send must not be named to it.
    await expectAll("400 invalid_request_error invalid_value null");
  });

  test("a refusal for the content is told as one", async () => {
    world.play({ kind: "status", status: 400, code: "content_policy_violation" });
    await expectAll("400 invalid_request_error content_policy_violation null");
  });

  test.for([
    ["no JSON", { kind: "garbage" }],
    ["JSON that is no answer", { kind: "json", body: [1, 2] }],
    ["an error with status 200", { kind: "json", body: { error: { message: "x" } } }],
    ["no answer", { kind: "drop" }],
  ] as const)("%s is our 502", async ([, behaviour]) => {
    world.play(behaviour);
    await expectAll("502 server_error model_request_failed null");
  });

  test("silence is our 504", async () => {
    world.play({ kind: "hang" });
    await expectAll("504 server_error upstream_timeout null", {}, "hasty");
  });

  test("nothing listening, or no key to send, is our 502", async () => {
    await expectAll("502 server_error model_request_failed null", {}, "nowhere");
    const seen = world.play();
    await expectAll("502 server_error model_request_failed null", {}, "keyless");
    expect(seen).toHaveLength(0);
  });
});
