import type { ServerResponse } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, describe, expect, test } from "vitest";
import { chat, pricing } from "../e2e/catalog.ts";
import { ownWorldOnly, startWorld } from "../e2e/world.ts";
import { openRaw } from "../edge/raw.ts";
import { promptly } from "../support/promptly.ts";
import { untilStill } from "../support/until.ts";

// While a caller reads nothing, an upstream's further output waits in a queue of its own. A caller that leaves pays for that output.

ownWorldOnly();

const maxOutputTokens = 60_000;
const roomy = { maxInputTokens: 100_000, maxOutputTokens, reasoningEfforts: [] };
const world = await startWorld({
  catalog: (usual) => ({
    ...usual,
    models: [
      ...usual.models,
      chat("roomy", { ...roomy, reasoningAliases: {} }),
      chat("roomy-legacy", { ...roomy, reasoningAliases: {}, upstream: "legacy" }),
    ],
  }),
});
afterAll(() => world[Symbol.asyncDispose]());

const outputPrice = pricing.outputUsdMicrosPerMillionTokens / 1_000_000;

/** A token with its log probability, and those of 20 others. */
const likely = (token: string) => ({ token, logprob: -0.123456789, bytes: [32, 115, 101, 97] });
const logprob = {
  ...likely(" sea"),
  top_logprobs: Array.from({ length: 20 }, (_, at) => likely(` sea${at}`)),
};
const response = { id: "resp_1", object: "response", created_at: 1, model: "up", output: [] };
function event(type: string, fields: object): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;
}
/** 10 KB that are no output. */
const padding = event("response.output_text.annotation.added", {
  annotation: { type: "url_citation", url: "https://example.com", title: "x".repeat(10_000) },
});
const protocols = [
  {
    name: "responses",
    path: "/v1/responses",
    body: { model: "roomy", input: "Hi", include: ["message.output_text.logprobs"] },
    begin: event("response.created", { response: { ...response, status: "in_progress" } }),
    say: event("response.output_text.delta", {
      ...{ item_id: "msg_1", output_index: 0, content_index: 0, delta: " sea" },
      logprobs: [logprob],
    }),
    // One item after the other. Most bytes of an item come when its text is complete.
    round: (at: number, words: number) => {
      const place = { item_id: `msg_${at}`, output_index: at, content_index: 0 };
      const text = " sea".repeat(words);
      return [
        event("response.output_text.delta", { ...place, delta: text }),
        event("response.output_text.done", { ...place, text }),
        padding.repeat(20),
      ].join("");
    },
  },
  {
    name: "chat",
    path: "/v1/chat/completions",
    body: { model: "roomy-legacy", messages: [{ role: "user", content: "Hi" }], logprobs: true },
    begin: "",
    say: `data: ${JSON.stringify({
      ...{ id: "c", object: "chat.completion.chunk", created: 1, model: "up" },
      choices: [
        {
          ...{ index: 0, delta: { content: " sea" }, finish_reason: null },
          logprobs: { content: [logprob] },
        },
      ],
    })}\n\n`,
    // A server that repeats the reason of its end in each chunk. Most bytes have no text.
    round: (_at: number, words: number) =>
      `data: ${JSON.stringify({
        ...{ id: "c", object: "chat.completion.chunk", created: 1, model: "up" },
        choices: [{ index: 0, delta: { content: " sea".repeat(words) }, finish_reason: "stop" }],
      })}\n\n${`data: ${JSON.stringify({
        ...{ id: "c", object: "chat.completion.chunk", created: 1, model: "up" },
        choices: [
          {
            ...{ index: 0, delta: { content: "" }, finish_reason: null },
            logprobs: { content: Array(3).fill(logprob) },
          },
        ],
      })}\n\n`.repeat(20)}`,
  },
];

/**
 * Stops reading at the first word, and leaves once the upstream is held back. The upstream's request must end within `withinMs` of that.
 * Answers the charge in USD micros.
 */
async function stallAndLeave(
  { path, body, begin }: (typeof protocols)[number],
  make: (answer: ServerResponse, left: Promise<void>) => void,
  withinMs = Number.POSITIVE_INFINITY,
): Promise<number> {
  const caller = await world.caller({ usdMicros: 1_000_000_000n });
  const left = Promise.withResolvers<void>();
  let taken = () => 0;
  const seen = world.play({
    kind: "custom",
    handle(_seen: unknown, answer: ServerResponse) {
      const { socket } = answer;
      // For Node, bytes that libuv still holds count as written.
      const handle = (socket as unknown as { _handle?: { writeQueueSize: number } })._handle;
      taken = () => (socket?.bytesWritten ?? 0) - (handle?.writeQueueSize ?? 0);
      answer.writeHead(200, { "content-type": "text/event-stream" });
      answer.write(begin);
      make(answer, left.promise);
    },
  });
  using raw = await openRaw(Number(new URL(world.baseUrl).port));
  const sent = JSON.stringify({ ...body, stream: true });
  raw.send(
    `POST ${path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${caller.key}\r\n` +
      `content-type: application/json\r\ncontent-length: ${sent.length}\r\n\r\n${sent}`,
  );
  await raw.until((text) => text.includes(" sea"));
  raw.socket.pause();
  // On a slow machine, written bytes take longer to fill all buffers on the way to the reader.
  await delay(2_500);
  await untilStill("what upstream's connection takes", taken);
  await promptly(withinMs, () => {
    raw.socket.resetAndDestroy();
    left.resolve();
    return seen[0]?.over;
  });
  expect(seen[0]?.aborted).toBe(true);
  return Number((await caller.settled()).monthSpend);
}

/** Writes a number of words at once, whether or not a reader takes them. */
function queue(answer: ServerResponse, say: string, words: number): void {
  for (let made = 0; made < words; made += 100) answer.write(say.repeat(100));
}

describe.for(protocols)("a stalled reader of $name", (protocol) => {
  const { say, round } = protocol;

  test("pays for what its upstream had made when it leaves", async () => {
    const words = 50_000;
    const spent = await stallAndLeave(protocol, (answer) => queue(answer, say, words));
    expect(spent).toBeGreaterThanOrEqual(0.9 * words * outputPrice);
    expect(spent).toBeLessThanOrEqual(maxOutputTokens * outputPrice + 10_000);
  });

  test("pays for what comes over a slow link", async () => {
    // More than all buffers hold on the way to a reader that does not read.
    const before = 20_000;
    const each = 1_200;
    const steps = 25;
    const spent = await stallAndLeave(protocol, async (answer, left) => {
      queue(answer, say, before);
      await left;
      // Some 20 MB a second for 2.5 s.
      for (let step = 0; step < steps && !answer.destroyed; step++) {
        queue(answer, say, each);
        await delay(100);
      }
    });
    expect(spent).toBeGreaterThanOrEqual(0.9 * (before + steps * each) * outputPrice);
  });

  test("also where it stopped reading when an output seemed whole", async () => {
    const rounds = 400;
    const each = 100;
    const make = (answer: ServerResponse) => {
      for (let at = 0; at < rounds; at++) answer.write(round(at, each));
    };
    const spent = await stallAndLeave(protocol, make);
    expect(spent).toBeGreaterThanOrEqual(0.9 * rounds * each * outputPrice);
  });

  test("and what is being made is not waited for", async () => {
    const make = async (answer: ServerResponse, left: Promise<void>) => {
      queue(answer, say, 5_000);
      await left;
      while (!answer.destroyed) {
        answer.write(say);
        await delay(10);
      }
    };
    await stallAndLeave(protocol, make, 2_500);
  });
});
