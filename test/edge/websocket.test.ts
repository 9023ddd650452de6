import { afterAll, beforeAll, expect, test } from "vitest";
import { exchange, openRaw, parseAnswer } from "./raw.ts";
import { type EdgeWorld, startEdge } from "./world.ts";

let edge: EdgeWorld;
let asked = 0;
beforeAll(async () => {
  edge = await startEdge({
    settings: { webSockets: false },
    text: {
      generate: () => {
        asked++;
        return { body: Buffer.from("{}") };
      },
    },
  });
});
afterAll(() => edge[Symbol.asyncDispose]());

/** The lines of a handshake (RFC 6455, 4.1), in the order in which clients write them. */
const handshake = [
  "Connection: Upgrade",
  "Upgrade: websocket",
  "Sec-WebSocket-Version: 13",
  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
  "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits",
];

/** A request without a body. */
const request = (lines: readonly string[], { path = "/v1/responses", method = "GET" } = {}) =>
  [`${method} ${path} HTTP/1.1`, "Host: example.test", ...lines, "", ""].join("\r\n");

/** The bytes of a text frame of a client, masked. */
const frame = Buffer.from("818412345678abcdef01", "hex");

test("a handshake is answered 426 at once, without a key, and the connection closes", async () => {
  const answer = await exchange(edge.port, request(handshake));
  expect(answer.status).toBe(426);
  expect(answer.headers).toMatchObject({
    connection: "close",
    "content-type": "application/json; charset=utf-8",
    "content-length": String(Buffer.byteLength(answer.body)),
    "x-request-id": expect.stringMatching(/^req_/),
  });
  // The header would name a protocol to change to, and there is none.
  expect(answer.headers).not.toHaveProperty("upgrade");
  expect(JSON.parse(answer.body)).toEqual({
    error: {
      message: expect.any(String),
      type: "invalid_request_error",
      param: null,
      code: "websocket_unsupported",
    },
  });
});

test.each([
  ["with a query", request(handshake, { path: "/v1/responses?api-version=1" })],
  ["in other letters", request(["connection: keep-alive, upgrade", "upgrade: WebSocket"])],
  ["whose header Upgrade a proxy took out", request(handshake.slice(2))],
  ["to an absolute URL", request(handshake, { path: "http://example.test/v1/responses" })],
])("a handshake %s is answered 426", async (_, bytes) => {
  expect((await exchange(edge.port, bytes)).status).toBe(426);
});

test.each([
  ["frames", frame],
  [
    "a request",
    Buffer.from(`POST /v1/responses HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}`),
  ],
])("%s behind a handshake are not read as requests", async (_, behind) => {
  using raw = await openRaw(edge.port);
  raw.send(Buffer.concat([Buffer.from(request(handshake)), behind]));
  const text = await raw.closed();
  expect(text.match(/^HTTP\/1\.1 /gm)).toHaveLength(1);
  expect(parseAnswer(text).status).toBe(426);
});

test.each<[name: string, lines: readonly string[], path: string, method: string, status: number]>([
  ["GET without a handshake", [], "/v1/responses", "GET", 405],
  ["another protocol", ["Connection: Upgrade", "Upgrade: h2c"], "/v1/responses", "GET", 405],
  ["a handshake for another path", handshake, "/v1/models", "GET", 200],
  ["a handshake for a path below", handshake, "/v1/responses/resp_1", "GET", 404],
  ["a handshake by HEAD", handshake, "/v1/responses", "HEAD", 405],
])("%s is answered as without this rule", async (_, lines, path, method, status) => {
  using raw = await openRaw(edge.port);
  raw.send(request([`Authorization: Bearer ${edge.key}`, ...lines], { path, method }));
  const text = await raw.until((received) => received.includes("\r\n\r\n"));
  expect(parseAnswer(text).status).toBe(status);
});

test("POST with the lines of a handshake is a request as ever", async () => {
  using raw = await openRaw(edge.port);
  const lines = [
    `Authorization: Bearer ${edge.key}`,
    "Content-Type: application/json",
    "Content-Length: 2",
  ];
  raw.send(`${request([...handshake, ...lines], { method: "POST" })}{}`);
  expect(parseAnswer(await raw.until((received) => received.endsWith("{}"))).status).toBe(200);
  expect(asked).toBe(1);
});
