import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { exchange, openRaw, parseAnswer, type RawAnswer } from "../edge/raw.ts";
import { type EdgeWorld, startEdge } from "../edge/world.ts";

let edge: EdgeWorld;
/** Opens the gate that holds back answers of text. */
let gate: PromiseWithResolvers<void>;
let asked = 0;
beforeAll(async () => {
  gate = Promise.withResolvers();
  edge = await startEdge({
    text: {
      async generate() {
        asked++;
        await gate.promise;
        return { body: Buffer.from('{"id":"the paid answer"}'), replayed: false };
      },
    },
  });
});
afterAll(() => edge[Symbol.asyncDispose]());

const lines = (...all: string[]) => `${all.join("\r\n")}\r\n\r\n`;
const key = () => `Authorization: Bearer ${edge.key}`;
const model = "GET /v1/models/chat-1 HTTP/1.1";
const body = '{"model":"chat-1","input":"hi"}';
const text = (...more: string[]) =>
  `${lines(
    "POST /v1/responses HTTP/1.1",
    "Host: h",
    key(),
    "Content-Type: application/json",
    `Content-Length: ${body.length}`,
    ...more,
  )}${body}`;

const errorOf = ({ body: bytes }: RawAnswer) => JSON.parse(bytes).error;
const ask = (...all: string[]) => exchange(edge.port, lines(...all, "Connection: close"));

describe("what is no HTTP, behind a request that is", () => {
  test("does not take the place of that request's answer", async () => {
    gate = Promise.withResolvers();
    const before = asked;
    using raw = await openRaw(edge.port);
    raw.send(`${text()}NONSENSE\r\n\r\nmore of it`);
    await expect.poll(() => asked).toBe(before + 1);
    raw.send("and more");
    expect(raw.received()).toBe("");
    gate.resolve();
    const received = await raw.closed();
    expect(parseAnswer(received)).toMatchObject({ status: 200 });
    expect(received).toContain("the paid answer");
    const second = parseAnswer(received.slice(received.indexOf("HTTP/1.1 400")));
    expect(second).toMatchObject({ status: 400, headers: { connection: "close" } });
    expect(second.headers["x-request-id"]).toMatch(/^req_/);
  });

  test("waits for all of them", async () => {
    gate = Promise.withResolvers();
    using raw = await openRaw(edge.port);
    raw.send(`${text()}${lines(model, "Host: h", key())}${text()}NONSENSE\r\n\r\n`);
    gate.resolve();
    const received = await raw.closed();
    expect(received.match(/HTTP\/1\.1 \d+/g)).toEqual([
      "HTTP/1.1 200",
      "HTTP/1.1 200",
      "HTTP/1.1 200",
      "HTTP/1.1 400",
    ]);
  });

  test("is the answer of the request whose own body it is in", async () => {
    const chunked = ["Transfer-Encoding: chunked", "Content-Type: application/json"];
    const head = lines("POST /v1/responses HTTP/1.1", "Host: h", key(), ...chunked);
    const answer = await exchange(edge.port, `${head}zz\r\n`);
    expect(answer.status).toBe(400);
    expect(errorOf(answer)).toMatchObject({ code: "invalid_value" });
  });
});

describe("a header of one value that is sent twice", () => {
  test.each([
    ["the same twice", (good: string) => [good, good]],
    ["the good one first", (good: string) => [good, "Authorization: Bearer gm_other"]],
    ["the good one last", (good: string) => ["authorization: Bearer gm_other", good]],
  ])("Authorization, %s, is 401", async (_, both) => {
    const answer = await ask(model, "Host: h", ...both(key()));
    expect(answer.status).toBe(401);
    expect(answer.headers["www-authenticate"]).toBe("Bearer");
    expect(errorOf(answer).code).toBe("invalid_api_key");
  });

  test("Idempotency-Key is 400, and no third key is made of the two", async () => {
    const answer = await exchange(
      edge.port,
      text("Idempotency-Key: a", "Idempotency-Key: b", "Connection: close"),
    );
    expect(answer.status).toBe(400);
    expect(errorOf(answer)).toMatchObject({
      code: "invalid_idempotency_key",
      param: "Idempotency-Key",
    });
  });

  test("Content-Type is 415", async () => {
    const answer = await exchange(edge.port, text("Content-Type: text/plain", "Connection: close"));
    expect([answer.status, errorOf(answer).code]).toEqual([415, "unsupported_media_type"]);
  });

  test("without a key it is 401 all the same", async () => {
    const twice = ["Idempotency-Key: a", "Idempotency-Key: b"];
    expect((await ask("POST /v1/responses HTTP/1.1", "Host: h", ...twice)).status).toBe(401);
  });
});

describe("framing", () => {
  const chunks = `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
  const post = (version: string, coding: string) =>
    `${lines(
      `POST /v1/responses HTTP/${version}`,
      "Host: h",
      key(),
      "Content-Type: application/json",
      "Connection: keep-alive",
      `Transfer-Encoding: ${coding}`,
    )}${chunks}`;

  test.each([
    ["1.1", "gzip, chunked"],
    ["1.1", "identity, chunked"],
    ["1.0", "chunked"],
  ])(
    "HTTP/%s with Transfer-Encoding: %s is refused, and the connection closed",
    async (version, coding) => {
      const answer = await exchange(edge.port, post(version, coding));
      expect(answer.status).toBe(400);
      expect(errorOf(answer).code).toBe("invalid_value");
      expect(answer.headers.connection).toBe("close");
    },
  );

  test("a chunked body with trailers is a body, with any names in them", async () => {
    gate.resolve();
    const trailers = "Authorization: Bearer gm_other\r\nHost: evil\r\nIdempotency-Key: x\r\n";
    const sent = post("1.1", "Chunked").replace(/0\r\n\r\n$/, `0\r\n${trailers}\r\n`);
    using raw = await openRaw(edge.port);
    raw.send(sent);
    expect(await raw.until((all) => all.includes("the paid answer"))).toMatch(/^HTTP\/1\.1 200/);
  });

  test("HTTP/2.0 as text is refused", async () => {
    expect((await ask("GET /v1/models/chat-1 HTTP/2.0", "Host: h", key())).status).toBe(400);
  });
});

test("CONNECT is answered as any method that a path does not take", async () => {
  const answer = await ask("CONNECT example.com:443 HTTP/1.1", "Host: example.com:443", key());
  expect([answer.status, errorOf(answer).code]).toEqual([405, "method_not_allowed"]);
  expect(answer.headers["x-request-id"]).toMatch(/^req_/);
});

test.each(["h:99999", "1.2.3.4.5", "[::1]:65536", "h:"])("Host: %s makes no URL", async (host) => {
  const answer = await ask(model, `Host: ${host}`, key());
  expect(answer.status).toBe(400);
});
