import type { Socket } from "node:net";
import { afterAll, expect, test } from "vitest";
import { type CallerSocket, openSocket } from "../support/caller-socket.ts";
import { until, untilStill } from "../support/until.ts";
import { scriptText } from "./scripted-text.ts";
import { startEdge } from "./world.ts";

const { port } = scriptText();
const edge = await startEdge({ port });
afterAll(() => edge[Symbol.asyncDispose]());
const base = `http://127.0.0.1:${edge.port}/v1`;
const mib = 1024 * 1024;

/** A caller's socket, and the server's end of its connection. */
async function openBoth(options = {}): Promise<{ socket: CallerSocket; raw: Socket }> {
  const { promise, resolve } = Promise.withResolvers<Socket>();
  edge.app.server.once("connection", resolve);
  const key = await edge.makeAccount();
  const socket = await openSocket(base, key, options);
  return { socket, raw: await promise };
}

test("a socket whose caller reads none of its refusals is not read on", async () => {
  const both = await openBoth();
  using socket = both.socket;
  socket.ws.pause();
  const lane = "a".repeat(256);
  // So long that few of them come at once.
  const refused = JSON.stringify({ type: "none", stream_id: lane, note: "x".repeat(4_000) });
  for (let n = 0; n < 11_000; n++) socket.send(refused);
  await untilStill("the refusals", () => edge.log.length);
  expect(both.raw.writableLength).toBeLessThan(2 * mib);
  expect(socket.ws.readyState).toBe(socket.ws.OPEN);
  // The others are read when the caller reads on.
  socket.ws.resume();
  await until("all are refused", () => socket.frames.length === 11_000);
});

test("a caller that sends a long message slowly is there, although its pongs stand behind it", async () => {
  const both = await openBoth({ autoPong: false });
  using socket = both.socket;
  const message = Buffer.from(JSON.stringify({ type: "none" }).padEnd(1_000));
  const head = Buffer.from([0x81, 0xfe, message.length >> 8, message.length & 0xff, 0, 0, 0, 0]);
  const wire = Buffer.concat([head, message]);
  const { _socket: own } = socket.ws as unknown as { _socket: Socket };
  const sent = (bytes: Uint8Array) => {
    const before = both.raw.bytesRead;
    own.write(bytes);
    return until("its bytes come", () => both.raw.bytesRead === before + bytes.length);
  };
  for (let at = 0; at < 500; at += 100) {
    await sent(wire.subarray(at, at + 100));
    await edge.clock.advance(15_000);
  }
  await sent(wire.subarray(500));
  expect((await socket.turn())[0]?.error?.code).toBe("unsupported_parameter");
});

test("a caller that sends nothing, and answers no ping, has left", async () => {
  const { socket } = await openBoth({ autoPong: false });
  for (let n = 0; n < 4; n++) await edge.clock.advance(15_000);
  expect(await socket.closed).toBe(1006);
});
