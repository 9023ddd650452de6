import type { ServerResponse } from "node:http";
import { afterAll, describe, expect, test } from "vitest";
import type { Caller } from "../e2e/caller.ts";
import { ownWorldOnly, startWorld } from "../e2e/world.ts";
import { type CallerSocket, openSocket } from "../support/caller-socket.ts";
import { until, untilStill } from "../support/until.ts";
import {
  at,
  completed,
  created,
  event,
  least,
  ofResponses,
  outputPrice,
  said,
  words,
} from "./output-places.ts";

// The attacks on the metering, over a WebSocket whose lanes run side by side. No upstream here reports its usage.

ownWorldOnly();
const world = await startWorld({ env: { GENMESH_WS_IN_FLIGHT: "16" } });
afterAll(() => world[Symbol.asyncDispose]());

const open = (caller: Caller) => openSocket(caller.baseUrl, caller.key);
const create = (fields: object) => ({
  ...{ type: "response.create", model: "scripted", input: "Hi", max_output_tokens: 900 },
  ...fields,
});
const delta = event("response.output_text.delta", { ...at, delta: words });
const wordsIn = (socket: CallerSocket, lane: string) =>
  until(`the words of ${lane}`, () =>
    socket.frames.some((frame) => frame.stream_id === lane && frame.delta === words),
  );
/** The last frames of as many answers. */
async function endsOf(socket: CallerSocket, count: number) {
  const ends = [];
  while (ends.length < count) ends.push((await socket.turn()).at(-1));
  return ends;
}

/** Answers each request with these bytes, and ends the answer with `rest`. */
function play(parts: readonly string[], rest?: Promise<unknown>) {
  return world.play({
    kind: "custom",
    async handle(_seen: unknown, answer: ServerResponse) {
      answer.writeHead(200, { "content-type": "text/event-stream" });
      answer.write(parts.join(""));
      if (rest) await rest;
      answer.end();
    },
  });
}

describe("two lanes at once both pay for output in any place", () => {
  const places = { ...ofResponses, "the last event alone": [] };
  test.for(Object.entries(places))("%s", async ([, parts]) => {
    const output = parts.length === 0 ? { output: [said(words)] } : {};
    play([created, ...parts, completed(output)]);
    const caller = await world.caller();
    using socket = await open(caller);
    for (const stream_id of ["a", "b"]) socket.send(create({ stream_id }));
    for (const end of await endsOf(socket, 2)) expect(end?.type).toBe("response.completed");
    expect((await caller.settled()).monthSpend).toBeGreaterThanOrEqual(2 * least);
  });
});

test("a bound that is ignored cuts the answer of each lane, and is paid for", async () => {
  const each = Array(300).fill(event("response.output_text.delta", { ...at, delta: "sea " }));
  play([created, ...each, completed()]);
  const caller = await world.caller();
  using socket = await open(caller);
  for (const stream_id of ["a", "b"]) socket.send(create({ stream_id, max_output_tokens: 100 }));
  for (const end of await endsOf(socket, 2)) expect(end?.type).toBe("response.incomplete");
  for (const lane of ["a", "b"]) {
    const got = socket.frames.filter((frame) => frame.stream_id === lane && frame.delta);
    expect(got.length).toBeLessThan(300);
  }
  expect((await caller.settled()).monthSpend).toBeGreaterThanOrEqual(2 * 100 * outputPrice);
});

test("forks of one response pay for its words again, each as its own input", async () => {
  play([created, delta, completed({ output: [said(words)] })]);
  const caller = await world.caller();
  using socket = await open(caller);
  socket.send(create({ stream_id: "a" }));
  const [first] = await endsOf(socket, 1);
  const { monthSpend: before } = await caller.settled();
  const previous_response_id = first?.response?.id;
  for (const stream_id of ["a", "b", "c"]) {
    socket.send(create({ stream_id, previous_response_id }));
  }
  for (const end of await endsOf(socket, 3)) expect(end?.type).toBe("response.completed");
  const input = 0.9 * 300;
  const { monthSpend } = await caller.settled();
  expect(monthSpend - before).toBeGreaterThanOrEqual(3 * (least + input));
});

describe("a caller that leaves", () => {
  test("pays for what each lane has sent", async () => {
    const rest = Promise.withResolvers<void>();
    play([created, delta], rest.promise);
    const caller = await world.caller();
    using socket = await open(caller);
    for (const stream_id of ["a", "b"]) socket.send(create({ stream_id }));
    for (const lane of ["a", "b"]) await wordsIn(socket, lane);
    socket.ws.terminate();
    expect((await caller.settled()).monthSpend).toBeGreaterThanOrEqual(2 * least);
    rest.resolve();
  });

  test("in every state at once leaves no hold, and what waited was never sent", async () => {
    const rest = Promise.withResolvers<void>();
    const seen = world.play((request) =>
      JSON.stringify(request.body.input).includes("silence")
        ? { kind: "hang" }
        : {
            kind: "custom",
            async handle(_seen: unknown, answer: ServerResponse) {
              answer.writeHead(200, { "content-type": "text/event-stream" });
              answer.write(created + delta);
              await rest.promise;
              answer.end();
            },
          },
    );
    const caller = await world.caller();
    using socket = await open(caller);
    for (const [stream_id, input] of [
      ["a", "talk"],
      ["a", "It waits."],
      ["b", "silence"],
    ]) {
      socket.send(create({ stream_id, input }));
    }
    await wordsIn(socket, "a");
    await until("both are asked", () => seen.length === 2);
    socket.send("{");
    socket.ws.terminate();
    const { monthSpend, available } = await caller.settled();
    expect(monthSpend).toBeGreaterThanOrEqual(least);
    expect(available + monthSpend).toBe(10_000_000);
    expect(seen).toHaveLength(2);
    rest.resolve();
  });

  test("and took nothing in one lane pays for what runs in the other", async () => {
    /** 10 KB that are no output. */
    const padding = event("response.output_text.annotation.added", {
      annotation: { type: "url_citation", url: "https://example.com", title: "x".repeat(10_000) },
    });
    const rest = Promise.withResolvers<void>();
    let taken = () => 0;
    const seen = world.play({
      kind: "custom",
      async handle(request, answer: ServerResponse) {
        const { socket } = answer;
        // For Node, bytes that libuv still holds count as written.
        const handle = (socket as unknown as { _handle?: { writeQueueSize: number } })._handle;
        taken = () => (socket?.bytesWritten ?? 0) - (handle?.writeQueueSize ?? 0);
        answer.writeHead(200, { "content-type": "text/event-stream" });
        answer.write(created + delta);
        if (JSON.stringify(request.body.input).includes("much"))
          answer.write(padding.repeat(2_000));
        await rest.promise;
        answer.end();
      },
    });
    const caller = await world.caller();
    using socket = await open(caller);
    socket.ws.pause();
    socket.send(create({ stream_id: "a", input: "much" }));
    expect(await untilStill("what was taken of a", () => taken())).toBeLessThan(20_000_000);
    socket.send(create({ stream_id: "b" }));
    await until("the other is asked", () => seen.length === 2);
    await untilStill("what was taken of b", () => taken());
    socket.ws.terminate();
    expect((await caller.settled()).monthSpend).toBeGreaterThanOrEqual(2 * least);
    rest.resolve();
  });
});

describe("thirty requests in fifteen lanes, on a wallet for three", () => {
  const lanes = Array.from({ length: 30 }, (_, n) => `lane-${n % 15}`);

  /** The hold of one request, in USD micros. */
  async function holdOfOne(): Promise<bigint> {
    const rest = Promise.withResolvers<void>();
    play([created, delta], rest.promise);
    const rich = await world.caller();
    using socket = await open(rich);
    socket.send(create({ stream_id: "a" }));
    await wordsIn(socket, "a");
    const { reserved } = await rich.balance();
    rest.resolve();
    return BigInt(reserved);
  }

  test("each answer is paid for, and nothing above the wallet", async () => {
    const wallet = (await holdOfOne()) * 3n;
    play([created, delta, completed()]);
    const caller = await world.caller({ usdMicros: wallet });
    using socket = await open(caller);
    for (const stream_id of lanes) socket.send(create({ stream_id }));
    const ends = await endsOf(socket, lanes.length);
    const refused = ends.filter((end) => end?.type === "error");
    expect(refused.map((end) => end?.status)).toEqual(refused.map(() => 402));
    const answered = ends.length - refused.length;
    expect(answered).toBeGreaterThan(0);
    const { available, monthSpend } = await caller.settled();
    expect(available).toBeGreaterThanOrEqual(0);
    expect(BigInt(available + monthSpend)).toBe(wallet);
    expect(monthSpend).toBeGreaterThanOrEqual(answered * least);
  });

  test("leaving at the first answer pays for it, and leaves no hold", async () => {
    const wallet = (await holdOfOne()) * 3n;
    play([created, delta, completed()]);
    const caller = await world.caller({ usdMicros: wallet });
    using socket = await open(caller);
    for (const stream_id of lanes) socket.send(create({ stream_id }));
    await until("an answer has ended", () =>
      socket.frames.some(({ type }) => type === "response.completed"),
    );
    socket.ws.terminate();
    const { available, monthSpend } = await caller.settled();
    expect(available).toBeGreaterThanOrEqual(0);
    expect(BigInt(available + monthSpend)).toBe(wallet);
    expect(monthSpend).toBeGreaterThanOrEqual(least);
  });
});
