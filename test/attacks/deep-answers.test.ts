import { afterAll, describe, expect, test } from "vitest";
import { refusalOf } from "../e2e/caller.ts";
import { ownWorldOnly, startWorld } from "../e2e/world.ts";

ownWorldOnly();
const world = await startWorld();
afterAll(() => world[Symbol.asyncDispose]());

/** Depths on both sides of the size for threads: 240 KB and 400 KB. */
const depths = [2_000, 120_000, 200_000];
const nested = (depth: number) => `${"[".repeat(depth)}${"]".repeat(depth)}`;
const usage = { input_tokens: 1_000, output_tokens: 1_000, total_tokens: 2_000 };
const chatUsage = { prompt_tokens: 1_000, completion_tokens: 1_000, total_tokens: 2_000 };

const response = (metadata: string) =>
  `{"id":"r","object":"response","status":"completed","output":[],"usage":${JSON.stringify(usage)},"metadata":${metadata}}`;
const completion = (metadata: string) =>
  `{"id":"c","choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}],"usage":${JSON.stringify(chatUsage)},"metadata":${metadata}}`;
const chunk = (metadata: string) =>
  `{"id":"c","choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}],"usage":${JSON.stringify(chatUsage)},"metadata":${metadata}}`;

type Case = [
  name: string,
  model: string,
  path: string,
  stream: boolean,
  answer: (metadata: string) => string,
];
const cases: Case[] = [
  ["a response", "scripted", "/responses", false, response],
  ["a compaction", "scripted", "/responses/compact", false, response],
  ["a chat completion", "legacy", "/chat/completions", false, completion],
  ["a response for chat", "scripted", "/chat/completions", false, response],
  [
    "a stream's first event",
    "scripted",
    "/responses",
    true,
    (metadata) =>
      `event: response.completed\ndata: {"type":"response.completed","response":${response(metadata)}}\n\n`,
  ],
  [
    "an event with its type in its name",
    "scripted",
    "/responses",
    true,
    (metadata) => `event: response.completed\ndata: {"response":${response(metadata)}}\n\n`,
  ],
  [
    "a chunk of chat",
    "legacy",
    "/chat/completions",
    true,
    (metadata) => `data: ${chunk(metadata)}\n\ndata: [DONE]\n\n`,
  ],
];

describe("an answer that is nested too deep is none, and its usage is charged", () => {
  test.for(cases.flatMap((one) => depths.map((depth) => [...one, depth] as const)))(
    "%s (%s%s, stream: %s)",
    async ([, model, path, stream, answer, depth]) => {
      const payer = await world.caller();
      const said = path.startsWith("/chat")
        ? { messages: [{ role: "user", content: "Hi" }] }
        : { input: "Hi" };
      world.play({
        kind: "custom",
        handle(_seen, reply) {
          const type = stream ? "text/event-stream" : "application/json";
          reply.writeHead(200, { "content-type": type });
          reply.end(answer(nested(depth)));
        },
      });
      const asked = await payer.post(path, { model, ...said, stream });
      expect(refusalOf(asked)).toBe("502 server_error model_request_failed null");
      expect((await payer.balance()).monthSpend).toBeGreaterThan(0);
    },
  );
});
