import type { HandlerContext } from "@connectrpc/connect";
import { afterEach, expect, test } from "vitest";
import { stalledReaderMs } from "../../gateway/limits.ts";
import { untilStill } from "../support/until.ts";
import { openRaw, type RawConnection } from "./raw.ts";
import { type EdgeWorld, startEdge } from "./world.ts";

let edge: EdgeWorld | undefined;
afterEach(async () => {
  await edge?.[Symbol.asyncDispose]();
  edge = undefined;
});

const piece = Buffer.from(`event: x\ndata: {"type":"x","pad":"${"x".repeat(60_000)}"}\n\n`);

/** A gateway whose text service streams as fast as it is read, and a caller that stops reading. */
async function startFlood() {
  const left = Promise.withResolvers<void>();
  let sent = 0;
  const world = await startEdge({
    text: {
      async *streamGenerate(_: unknown, context: HandlerContext) {
        context.signal.addEventListener("abort", () => left.resolve());
        while (!context.signal.aborted) {
          sent += piece.length;
          yield { part: { case: "events", value: piece } };
        }
      },
    },
  });
  edge = world;
  const raw = await openRaw(world.port);
  ask(raw, world, JSON.stringify({ model: "chat-1", input: "hi", stream: true }));
  await raw.until((text) => text.includes("event: x"));
  raw.socket.pause();
  return { world, raw, left: left.promise, sent: () => sent };
}

function ask(raw: RawConnection, { key }: EdgeWorld, body: string): void {
  raw.send(
    `POST /v1/responses HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${key}\r\n` +
      `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
}

test("a caller that takes nothing for 60 s has left", async () => {
  const { world, raw, left, sent } = await startFlood();
  await untilStill("the stream", sent);
  await world.clock.advance(stalledReaderMs - 5_000);
  expect(raw.socket.destroyed).toBe(false);
  let hasLeft = false;
  void left.then(() => {
    hasLeft = true;
  });
  expect(hasLeft).toBe(false);
  await world.clock.advance(10_000);
  await left;
  raw.socket.resume();
  await raw.closed();
});

test("one that takes something now and then stays", async () => {
  const { world, raw, left, sent } = await startFlood();
  let hasLeft = false;
  void left.then(() => {
    hasLeft = true;
  });
  for (let minute = 0; minute < 3; minute++) {
    const before = await untilStill("the stream", sent);
    await world.clock.advance(stalledReaderMs - 10_000);
    raw.socket.resume();
    await expect.poll(sent).toBeGreaterThan(before + 5e6);
    raw.socket.pause();
    await world.clock.advance(4_000);
  }
  expect(hasLeft).toBe(false);
  expect(raw.socket.destroyed).toBe(false);
});
