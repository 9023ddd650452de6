import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { until } from "../support/until.ts";
import { exchange, openRaw, parseAnswer } from "./raw.ts";
import { type EdgeWorld, startEdge } from "./world.ts";

const mib = 1024 * 1024;

let edge: EdgeWorld;
let bodies: number[];
beforeAll(async () => {
  edge = await startEdge({
    settings: { maxBytesInFlight: 80 * mib },
    text: {
      generate: ({ body }) => {
        bodies.push(body.length);
        return { body: Buffer.from(`{"bytes":${body.length}}`) };
      },
      // The gateway does not search a large body for `stream`.
      async *streamGenerate({ body }) {
        bodies.push(body.length);
        yield { part: { case: "complete", value: Buffer.from(`{"bytes":${body.length}}`) } };
      },
    },
  });
});
afterAll(() => edge[Symbol.asyncDispose]());
beforeEach(() => {
  bodies = [];
});

/** A request to POST /v1/responses with these further header lines. */
const post = (lines: string[], body = "", path = "/v1/responses", version = "1.1") =>
  [
    `POST ${path} HTTP/${version}`,
    "Host: example.test",
    `Authorization: Bearer ${edge.key}`,
    ...lines,
    "",
    body,
  ].join("\r\n");
const json = "Content-Type: application/json";

const codeOf = (body: string) => {
  const { error } = JSON.parse(body) as { error: { code: string; type: string } };
  return error.code;
};

describe("malformed HTTP gets the contract's envelope, and the process lives", () => {
  test.each<[name: string, bytes: () => string, status: number, code: string]>([
    ["no HTTP at all", () => "hello\r\n\r\n", 400, "invalid_value"],
    ["an unknown method", () => "FROB / HTTP/1.1\r\nHost: a\r\n\r\n", 400, "invalid_value"],
    ["an HTTP/2 preface", () => "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400, "invalid_value"],
    [
      "a coding that is none",
      () => "GET /v1/billing HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n",
      400,
      "invalid_value",
    ],
    [
      "the identity as a coding, with a body",
      () => post([json, "Transfer-Encoding: identity"], "{}"),
      400,
      "invalid_value",
    ],
    ["a bad version", () => "GET / HTTP/9.9\r\nHost: a\r\n\r\n", 400, "invalid_value"],
    ["a header without a name", () => "GET / HTTP/1.1\r\n: x\r\n\r\n", 400, "invalid_value"],
    [
      "a control character",
      () => "GET / HTTP/1.1\r\nHost: a\r\nX: \x01\r\n\r\n",
      400,
      "invalid_value",
    ],
    ["a length that is no number", () => post([json, "Content-Length: x"]), 400, "invalid_value"],
    ["a negative length", () => post([json, "Content-Length: -1"]), 400, "invalid_value"],
    [
      "two lengths",
      () => post([json, "Content-Length: 2", "Content-Length: 3"], "{}"),
      400,
      "invalid_value",
    ],
    [
      "a length and chunks",
      () => post([json, "Content-Length: 2", "Transfer-Encoding: chunked"], "0\r\n\r\n"),
      400,
      "invalid_value",
    ],
    [
      "garbage for a chunk",
      () => post([json, "Transfer-Encoding: chunked"], "zz\r\n{}\r\n"),
      400,
      "invalid_value",
    ],
    [
      "headers of 20 KiB",
      () => `GET /v1/models HTTP/1.1\r\nHost: a\r\nX: ${"x".repeat(20_000)}\r\n\r\n`,
      413,
      "payload_too_large",
    ],
    [
      "a path of 20 KiB",
      () => `GET /v1/${"x".repeat(20_000)} HTTP/1.1\r\nHost: a\r\n\r\n`,
      413,
      "payload_too_large",
    ],
    ["no Host", () => `GET /v1/models HTTP/1.1\r\nConnection: close\r\n\r\n`, 400, "invalid_value"],
    [
      "two Hosts",
      () => "GET /v1/models HTTP/1.1\r\nHost: a\r\nHost: b\r\nConnection: close\r\n\r\n",
      400,
      "invalid_value",
    ],
    [
      "a Host that is none",
      () => "GET /v1/models HTTP/1.1\r\nHost: a/b?c\r\nConnection: close\r\n\r\n",
      400,
      "invalid_value",
    ],
    [
      "an expectation of its own",
      () => post([json, "Expect: miracles", "Content-Length: 2", "Connection: close"], "{}"),
      400,
      "invalid_value",
    ],
  ])("%s", async (_name, bytes, status, code) => {
    const answer = await exchange(edge.port, bytes());
    expect(answer.status).toBe(status);
    expect(answer.headers["x-request-id"]).toMatch(/^req_/);
    expect(answer.headers["content-type"]).toMatch(/^application\/json/);
    expect(codeOf(answer.body)).toBe(code);
    expect(bodies).toEqual([]);
    expect((await edge.ask("/v1/models")).status).toBe(200);
  });

  test("CONNECT is closed", async () => {
    using raw = await openRaw(edge.port);
    raw.send("CONNECT example.test:443 HTTP/1.1\r\nHost: example.test:443\r\n\r\n");
    await raw.closed();
    expect((await edge.ask("/v1/models")).status).toBe(200);
  });
});

describe("what is unusual and right is served", () => {
  test("HTTP/1.0 without a Host", async () => {
    const request = `GET /v1/models HTTP/1.0\r\nAuthorization: Bearer ${edge.key}\r\n\r\n`;
    const answer = await exchange(edge.port, request);
    expect(answer.status).toBe(200);
    expect(JSON.parse(answer.body).object).toBe("list");
  });

  test("an absolute URL", async () => {
    const answer = await exchange(
      edge.port,
      `GET http://example.test/v1/models HTTP/1.1\r\nHost: example.test\r\nAuthorization: Bearer ${edge.key}\r\nConnection: close\r\n\r\n`,
    );
    expect(answer.status).toBe(200);
  });

  test("pipelined requests are answered in order", async () => {
    using raw = await openRaw(edge.port);
    const bodies = ["{}", '{"a":1}', '{"bb":22}'];
    raw.send(bodies.map((body) => post([json, `Content-Length: ${body.length}`], body)).join(""));
    const text = await raw.until((received) => received.split('"bytes"').length === 4);
    expect([...text.matchAll(/"bytes":(\d+)/g)].map((match) => match[1])).toEqual(["2", "7", "9"]);
  });

  test.each([
    ["small", 20, (n: number) => n + 2],
    ["of half a read", 20, (n: number) => 30_000 + n],
    ["of several reads", 12, (n: number) => 200_000 + n],
  ])(
    "pipelined requests beyond the bound are answered in order: bodies %s",
    async (_, count, size) => {
      using raw = await openRaw(edge.port);
      const sizes = Array.from({ length: count }, (_, n) => size(n));
      const bodyOf = (bytes: number) => `{${" ".repeat(bytes - 2)}}`;
      raw.send(
        sizes.map((bytes) => post([json, `Content-Length: ${bytes}`], bodyOf(bytes))).join(""),
      );
      const text = await raw.until((received) => received.split('"bytes"').length === count + 1);
      expect([...text.matchAll(/"bytes":(\d+)/g)].map((match) => Number(match[1]))).toEqual(sizes);
      // The connection stays usable.
      raw.send(post([json, "Content-Length: 2"], "{}"));
      await raw.until((received) => received.split('"bytes"').length === count + 2);
    },
  );

  test("what is no HTTP behind them is refused after their answers", async () => {
    using raw = await openRaw(edge.port);
    const one = post([json, "Content-Length: 2"], "{}");
    raw.send(`${one.repeat(20)}nonsense\r\n\r\n`);
    const text = await raw.closed();
    expect(text.match(/HTTP\/1\.1 200/g)).toHaveLength(20);
    expect(text.lastIndexOf("HTTP/1.1 400")).toBeGreaterThan(text.lastIndexOf("HTTP/1.1 200"));
  });

  test("a body in many small chunks", async () => {
    using raw = await openRaw(edge.port);
    raw.send(post([json, "Transfer-Encoding: chunked"]));
    for (const one of '{"a":"bcd"}') raw.send(`1\r\n${one}\r\n`);
    raw.send("0\r\n\r\n");
    await raw.until((received) => received.includes('{"bytes":11}'));
  });

  test("a body that waits for 100 (Continue) is asked for once the key was admitted", async () => {
    using raw = await openRaw(edge.port);
    raw.send(post([json, "Expect: 100-continue", "Content-Length: 2"]));
    await raw.until((received) => received.startsWith("HTTP/1.1 100 Continue\r\n\r\n"));
    raw.send("{}");
    await raw.until((received) => received.includes('{"bytes":2}'));
  });

  test("without a key, or above the limit, it is never asked for", async () => {
    for (const [bytes, status] of [
      [
        "POST /v1/responses HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n",
        401,
      ],
      [post([json, "Expect: 100-continue", `Content-Length: ${65 * mib}`]), 413],
    ] as const) {
      using raw = await openRaw(edge.port);
      raw.send(bytes);
      const answer = parseAnswer(await raw.until((received) => received.includes('"error"')));
      expect(answer.status).toBe(status);
      expect(answer.headers.connection).toBe("close");
    }
  });
});

describe("bodies", () => {
  test.each([
    ["text/plain", 415],
    ["application/jsonp", 415],
    ["multipart/form-data; boundary=x", 415],
    ["application/x-www-form-urlencoded", 415],
    [";;;", 415],
    ["application/json", 200],
    ["Application/JSON; charset=utf-8", 200],
    ['application/json;profile="a;b"', 200],
  ])("Content-Type %s is %d", async (type, status) => {
    const response = await edge.post("/v1/responses", "{}", { "content-type": type });
    expect(response.status).toBe(status);
    if (status === 415) expect(codeOf(await response.text())).toBe("unsupported_media_type");
  });

  test("no Content-Type, or a coded body, is 415", async () => {
    const bare = await exchange(edge.port, post(["Content-Length: 2", "Connection: close"], "{}"));
    expect(bare.status).toBe(415);
    const coded = await edge.post("/v1/responses", "{}", { "content-encoding": "gzip" });
    expect(coded.status).toBe(415);
  });

  test("broken JSON is the service's to refuse: its bytes arrive as they are", async () => {
    expect((await edge.post("/v1/responses", '{"a":')).status).toBe(200);
    expect((await edge.post("/v1/responses", "")).status).toBe(200);
    expect(bodies).toEqual([5, 0]);
  });

  test.each([
    ["/v1/responses", 64],
    ["/v1/chat/completions", 64],
    ["/v1/responses/compact", 64],
    ["/v1/images/generations", 32],
    ["/v1/videos/generations", 32],
    ["/v1/music/generations", 1],
    ["/v1/speech/generations", 1],
  ])("%s takes %d MiB: one byte more is 413, before it was read", async (path, limit) => {
    using raw = await openRaw(edge.port);
    raw.send(post([json, `Content-Length: ${limit * mib + 1}`], "{", path));
    const text = await raw.until((received) => received.includes("payload_too_large"));
    expect(parseAnswer(text).status).toBe(413);
    expect(parseAnswer(text).headers.connection).toBe("close");
  });

  test("the largest body goes through", async () => {
    const response = await edge.post("/v1/responses", "x".repeat(64 * mib));
    expect(await response.json()).toEqual({ bytes: 64 * mib });
  });

  test("a chunked body above the limit is 413 while it is still coming", async () => {
    const chunk = `100000\r\n${"x".repeat(mib)}\r\n`;
    using raw = await openRaw(edge.port);
    raw.send(post([json, "Transfer-Encoding: chunked"], "", "/v1/music/generations"));
    raw.send(chunk + chunk);
    const text = await raw.until((received) => received.includes("payload_too_large"));
    expect(parseAnswer(text).status).toBe(413);
    // The rest is read and dropped for a moment, so that the answer is not lost in a reset.
    raw.send(chunk);
    await edge.clock.advance(2_000);
    await raw.closed();
  });

  test("what is held for all requests is bounded: 503, and free again when they are over", async () => {
    using first = await openRaw(edge.port);
    first.send(post([json, `Content-Length: ${50 * mib}`], "x".repeat(49 * mib)));
    await expect.poll(heldBytes).toBe(49 * mib);
    const late = edge.post("/v1/responses", "x".repeat(40 * mib));
    // The late request waits with its body unread. A test cannot see when that begins.
    const second = await until("its end", async () => {
      await edge.clock.advance(1_000);
      return Promise.race([late, undefined]);
    });
    expect(second.status).toBe(503);
    expect(second.headers.get("retry-after")).toBe("1");
    expect(codeOf(await second.text())).toBe("service_unavailable");
    first.socket.destroy();
    await expect.poll(heldBytes).toBe(0);
    expect((await edge.post("/v1/responses", "x".repeat(40 * mib))).status).toBe(200);
  });

  test("a body that stalls is refused after 30 s", async () => {
    using raw = await openRaw(edge.port);
    raw.send(post([json, "Content-Length: 100000"], "{"));
    await expect.poll(heldBytes).toBe(1);
    await edge.clock.advance(29_000);
    expect(raw.received()).toBe("");
    await edge.clock.advance(2_000);
    const text = await raw.until((received) => received.includes("did not arrive in time"));
    expect(parseAnswer(text).status).toBe(400);
    await edge.clock.advance(2_000);
    await raw.closed();
  });

  test("a body that drips is refused after 10 minutes", async () => {
    using raw = await openRaw(edge.port);
    raw.send(post([json, "Content-Length: 100000"], "{"));
    await expect.poll(heldBytes).toBe(1);
    for (let drop = 1; drop <= 29; drop++) {
      raw.send("x");
      await expect.poll(heldBytes).toBe(1 + drop);
      await edge.clock.advance(20_000);
    }
    expect(raw.received()).toBe("");
    await edge.clock.advance(20_000);
    await raw.until((received) => received.includes("did not arrive in time"));
  });

  test("a caller that leaves while it sends is forgotten, and logged as gone", async () => {
    const raw = await openRaw(edge.port);
    raw.send(post([json, "Content-Length: 1000", "X-Request-Id: gone"], "{"));
    await expect.poll(heldBytes).toBe(1);
    raw.socket.destroy();
    await expect
      .poll(() => edge.log.find((line) => line.clientRequestId === "gone"))
      .toMatchObject({ status: 499 });
    expect(await heldBytes()).toBe(0);
    expect(edge.log.filter((line) => line.msg === "unexpected error")).toEqual([]);
  });
});

async function heldBytes(): Promise<number> {
  const text = await edge.metrics.text();
  return Number(/^genmesh_http_body_bytes (\d+)$/m.exec(text)?.[1] ?? -1);
}

test("while it closes, what arrives on an open connection is still served", async () => {
  const calls = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const held = Promise.withResolvers<void>();
  let called = 0;
  await using world = await startEdge({
    text: {
      generate: async ({ body }) => {
        calls[called++]?.resolve();
        await held.promise;
        return { body };
      },
    },
  });
  using raw = await openRaw(world.port);
  const send = (body: string) =>
    raw.send(
      `POST /v1/responses HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${world.key}\r\n` +
        `${json}\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
  send('{"first":1}');
  await calls[0]?.promise;
  const closing = world.app.close();
  send('{"second":2}');
  await calls[1]?.promise;
  held.resolve();
  const answers = (await raw.closed()).split("HTTP/1.1 ").slice(1);
  expect(answers.map((answer) => answer.slice(0, 3))).toEqual(["200", "200"]);
  expect(answers[1]).toContain('{"second":2}');
  await closing;
});
