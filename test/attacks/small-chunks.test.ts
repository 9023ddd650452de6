import { IncomingMessage } from "node:http";
import { afterAll, beforeAll, expect, test } from "vitest";
import { chunkBounds } from "#kit/edge/connection-bounds.ts";
import { openRaw, parseAnswer } from "../edge/raw.ts";
import { type EdgeWorld, startEdge } from "../edge/world.ts";

const mib = 1024 * 1024;
let edge: EdgeWorld;
beforeAll(async () => {
  edge = await startEdge({
    text: {
      generate: ({ body }) => ({ body: Buffer.from(`{"bytes":${body.length}}`) }),
      async *streamGenerate({ body }) {
        yield { part: { case: "complete", value: Buffer.from(`{"bytes":${body.length}}`) } };
      },
    },
  });
});
afterAll(() => edge[Symbol.asyncDispose]());

const head = (path: string, key: string, type: string) =>
  `POST ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\nContent-Type: ${type}\r\n` +
  "Transfer-Encoding: chunked\r\n\r\n";
const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`;
const ofOneByte = Buffer.from(chunk("x").repeat(200_000));
const file = 'content-disposition: form-data; name="file"; filename="a.png"';

/** The number of chunks that the process looked at during `work`. */
async function lookedAt(work: () => Promise<void>): Promise<number> {
  const { push } = IncomingMessage.prototype;
  let count = 0;
  IncomingMessage.prototype.push = function (...given) {
    if (this.url?.startsWith("/v1/")) count++;
    return push.apply(this, given);
  };
  try {
    await work();
  } finally {
    IncomingMessage.prototype.push = push;
  }
  return count;
}

test.each([
  ["JSON", "/v1/responses", "application/json", '{"input":"'],
  ["an upload", "/v1/files", "multipart/form-data; boundary=b", `--b\r\n${file}\r\n\r\n`],
  [
    "a sound",
    "/v1/audio/transcriptions",
    "multipart/form-data; boundary=b",
    `--b\r\n${file}\r\n\r\n`,
  ],
  ["a picture", "/v1/images/edits", "multipart/form-data; boundary=b", `--b\r\n${file}\r\n\r\n`],
])(
  "%s in chunks of one byte is refused, and no more of it is looked at",
  async (_, path, type, begin) => {
    const looked = await lookedAt(async () => {
      using raw = await openRaw(edge.port);
      raw.send(head(path, edge.key, type) + chunk(begin));
      raw.send(ofOneByte);
      const answer = parseAnswer(await raw.until((text) => text.includes("}}")));
      expect([answer.status, answer.headers.connection]).toEqual([413, "close"]);
      expect(answer.body).toContain("payload_too_large");
      await raw.closed();
    });
    expect(looked).toBeLessThanOrEqual(chunkBounds.spare + 8);
  },
);

test("without a key the rest of such a body is not looked at, and the connection closes at once", async () => {
  const looked = await lookedAt(async () => {
    using raw = await openRaw(edge.port);
    raw.send(head("/v1/responses", "nobody", "application/json"));
    await raw.until((text) => text.includes("HTTP/1.1 401"));
    raw.send(ofOneByte);
    await raw.closed();
  });
  expect(looked).toBeLessThanOrEqual(chunkBounds.spare + 8);
});

test("a small body in tiny chunks, and a large one in common ones, are bodies", async () => {
  for (const body of [chunk("x").repeat(1_000), chunk("x".repeat(1_024)).repeat(5 * 1024)]) {
    using raw = await openRaw(edge.port);
    raw.send(`${head("/v1/responses", edge.key, "application/json")}${body}0\r\n\r\n`);
    const { status } = parseAnswer(await raw.until((text) => text.includes('"bytes"')));
    expect(status).toBe(200);
  }
  // Another connection gets the parser of a refused one.
  const whole = await edge.post("/v1/responses", "x".repeat(mib));
  expect(await whole.json()).toEqual({ bytes: mib });
});
