import { afterAll, beforeAll, expect, test } from "vitest";
import { openRaw } from "../edge/raw.ts";
import { type EdgeWorld, startEdge } from "../edge/world.ts";
import { until, untilStill } from "../support/until.ts";

const mib = 1024 * 1024;
let edge: EdgeWorld;
beforeAll(async () => {
  edge = await startEdge();
});
afterAll(() => edge[Symbol.asyncDispose]());

test("what comes behind an early refusal is read at a bounded pace, and ended", async () => {
  using caller = await openRaw(edge.port);
  const { socket } = caller;
  // More than the kernel's buffers hold.
  const size = 64 * mib;
  caller.send(
    `POST /v1/responses HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${size}\r\n\r\n`,
  );
  const chunk = Buffer.alloc(mib / 4);
  let given = 0;
  const giveMore = () => {
    while (given < size) {
      given += chunk.length;
      if (!socket.write(chunk)) return;
    }
  };
  socket.on("drain", giveMore);
  giveMore();
  expect(await caller.until((text) => text.includes("invalid_api_key"))).toMatch(/^HTTP\/1.1 401 /);
  // No time passes on the gateway's clock, so it reads no more than its first window.
  expect(await untilStill("what was taken", () => socket.bytesWritten)).toBeLessThan(size / 2);
  await until("the connection to be closed", async () => {
    await edge.clock.advance(100);
    return socket.destroyed;
  });
});
