import { connect, type Socket } from "node:net";
import { afterAll, expect, test } from "vitest";
import { repeatedShare } from "../../gateway/limits.ts";
import type { Caller } from "../e2e/caller.ts";
import { chat } from "../e2e/catalog.ts";
import { ownWorldOnly, startWorld } from "../e2e/world.ts";
import { until } from "../support/until.ts";

const wordy = { maxInputTokens: 10_000_000, maxOutputTokens: 9_000_000 };
const world = await startWorld({
  catalog: (usual) => ({
    ...usual,
    models: [...usual.models, chat("wordy", { ...wordy, upstreamModel: "up-model" })],
  }),
});
afterAll(() => world[Symbol.asyncDispose]());
ownWorldOnly();

/** Below the 8 MiB that are kept, in deltas of a quarter MiB. */
const deltas = Array.from({ length: 28 }, () => "sea ".repeat(65_536));
const body = JSON.stringify({ model: "wordy", input: "Hi" });
const idempotencyKey = "one";

/** A request whose caller reads only the beginning of its answer. */
interface SlowReader {
  socket: Socket;
  /** 0 before there is an answer. */
  status: number;
}

function readSlowly(caller: Caller): SlowReader {
  const { hostname, port } = new URL(caller.baseUrl);
  const socket = connect(Number(port), hostname);
  const reader: SlowReader = { socket, status: 0 };
  socket.on("error", () => undefined);
  socket.once("data", (chunk: Buffer) => {
    socket.pause();
    reader.status = Number(/^HTTP\/1.1 (\d+)/.exec(chunk.toString("latin1"))?.[1]);
  });
  socket.write(
    `POST /v1/responses HTTP/1.1\r\nhost: ${hostname}\r\nauthorization: Bearer ${caller.key}\r\n` +
      `idempotency-key: ${idempotencyKey}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
  return reader;
}

test("a kept answer goes to so many slow readers at once as its account has room for", async () => {
  const payer = await world.caller({ usdMicros: 100_000_000n });
  const other = await world.caller({ usdMicros: 100_000_000n });
  const seen = world.play({ kind: "ok", deltas });
  const ask = (caller: Caller) => caller.post("/responses", body, { idempotencyKey });
  const [first] = [await ask(payer), await ask(other)];
  const fit = Math.floor(repeatedShare.each.places / Buffer.byteLength(first.text));
  expect(fit).toBeGreaterThan(1);
  const many = fit + repeatedShare.each.waiting + 12;
  const readers = Array.from({ length: many }, () => readSlowly(payer));
  const count = (status: number) => readers.filter((reader) => reader.status === status).length;
  const allButWaiting = many - repeatedShare.each.waiting;
  await until("all but those that wait", async () => count(0) <= many - allButWaiting);
  expect([count(200), count(429)]).toEqual([fit, 12]);
  // Another account has a share of its own.
  expect((await ask(other)).status).toBe(200);
  // A caller that leaves makes room.
  const served = readers.filter(({ status }) => status === 200);
  for (const { socket } of served) socket.destroy();
  await until("those that waited", async () => count(0) === 0);
  expect(count(503)).toBe(0);
  for (const { socket } of readers) socket.destroy();
  expect((await ask(payer)).headers.get("idempotency-replayed")).toBe("true");
  expect(seen).toHaveLength(2);
});
