import { expect, test } from "vitest";
import { oneWriteBytes } from "../../gateway/limits.ts";
import { openRaw } from "./raw.ts";
import { startEdge } from "./world.ts";

const request = JSON.stringify({ model: "chat-1", input: "hi", stream: true });
const frame = (bytes: number) => `data: ${"x".repeat(bytes - "data: \n\n".length)}\n\n`;
/** Sizes below, at and above the bound for one copied write, in changing order. */
const sizes = [20, oneWriteBytes, 200, oneWriteBytes + 1, oneWriteBytes - 1, 9 * oneWriteBytes, 21];
// A message without bytes is ignored. The stream goes on.
const all = [...sizes.map(frame), "", 'data: "ä€😀"\n\n'];

test("events of any size come as they were: as chunks, and to callers that know none", async () => {
  await using world = await startEdge({
    text: {
      async *streamGenerate() {
        for (const one of all) yield { part: { case: "events", value: Buffer.from(one) } };
      },
    },
  });
  const chunked = await world.post("/v1/responses", request);
  expect(await chunked.text()).toBe(all.join(""));
  using raw = await openRaw(world.port);
  raw.send(
    `POST /v1/responses HTTP/1.0\r\nAuthorization: Bearer ${world.key}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${request.length}\r\n\r\n${request}`,
  );
  const [, body = ""] = (await raw.closed()).split(/\r\n\r\n/);
  expect(Buffer.from(body, "latin1").toString()).toBe(all.join(""));
});
