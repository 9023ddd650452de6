import type { ServerResponse } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, describe, expect, test } from "vitest";
import type { Caller } from "../e2e/caller.ts";
import { ownWorldOnly, startWorld } from "../e2e/world.ts";

ownWorldOnly();
const world = await startWorld();
afterAll(() => world[Symbol.asyncDispose]());

const opening = 10_000_000;
/** A token of input costs a micro, one of output four. */
const cost = 10 + 4 * 200;
const spent = async (caller: Caller) => opening - (await caller.settled()).available;
const newCaller = () => world.caller({ usdMicros: BigInt(opening) });
const messages = [{ role: "user", content: "Hi" }];
const chatUsage = { prompt_tokens: 10, completion_tokens: 200, total_tokens: 210 };
const usage = { input_tokens: 10, output_tokens: 200, total_tokens: 210 };

describe("usage in a second terminal event that comes later is charged", () => {
  const response = { id: "r", object: "response", created_at: 1, model: "up", output: [] };
  const line = (event: object) => `data: ${JSON.stringify(event)}\n\n`;
  const completed = (more: object) =>
    line({ type: "response.completed", response: { ...response, status: "completed", ...more } });
  const said = { type: "response.output_text.delta", item_id: "m", delta: "one two" };

  test.for([
    ["/responses", { input: "Hi" }],
    ["/chat/completions", { messages }],
  ] as const)("%s", async ([path, body]) => {
    const caller = await newCaller();
    world.play({
      kind: "custom",
      async handle(_seen: unknown, answer: ServerResponse) {
        answer.writeHead(200, { "content-type": "text/event-stream" });
        answer.write(line({ type: "response.created", response }) + line(said));
        await delay(200);
        answer.write(completed({}));
        await delay(200);
        answer.end(completed({ usage }));
      },
    });
    await caller.stream(path, { model: "plain", ...body });
    expect(await spent(caller)).toBe(cost);
  });
});

describe("usage of a chat completion is charged wherever servers put it", () => {
  const choice = { index: 0, message: { role: "assistant", content: "Hi" }, finish_reason: "stop" };
  const whole = { id: "c", object: "chat.completion", created: 1, model: "up" };
  const places: [name: string, answer: object][] = [
    ["its first choice", { ...whole, choices: [{ ...choice, usage: chatUsage }] }],
    ["x_groq", { ...whole, choices: [choice], x_groq: { id: "q", usage: chatUsage } }],
  ];
  test.for(places)("%s", async ([, answer]) => {
    const caller = await newCaller();
    world.play({ kind: "json", body: answer });
    const { json } = await caller.post("/chat/completions", { model: "legacy", messages });
    expect(json.usage).toMatchObject(chatUsage);
    expect(JSON.stringify(json)).not.toContain("x_groq");
    expect(await spent(caller)).toBe(cost);

    const chunk = JSON.parse(JSON.stringify(answer).replace('"message"', '"delta"'));
    const streaming = await newCaller();
    world.play({ kind: "events", events: [{ ...chunk, object: "chat.completion.chunk" }] });
    await streaming.stream("/chat/completions", { model: "legacy", messages });
    expect(await spent(streaming)).toBe(cost);
  });
});

describe("an answer that comes whole has no more pieces than a stream", () => {
  const many = <T>(count: number, one: T): T[] => Array.from({ length: count }, () => one);
  // Without text, because the bound of the output cuts none of this.
  const item = {
    type: "message",
    role: "assistant",
    content: [],
  };
  const response = { id: "r", object: "response", status: "completed", usage };
  const call = { id: "c", type: "function", function: { name: "", arguments: "" } };
  const message = { role: "assistant", content: null, tool_calls: many(5_000, call) };
  const chat = {
    id: "c",
    choices: [{ index: 0, message, finish_reason: "stop" }],
    usage: chatUsage,
  };
  const answers: [path: string, asked: object, answer: object][] = [
    ["/responses", { model: "plain", input: "Hi" }, { ...response, output: many(5_000, item) }],
    ["/chat/completions", { model: "plain", messages }, { ...response, output: many(5_000, item) }],
    ["/chat/completions", { model: "legacy", messages }, chat],
    [
      "/responses/compact",
      { model: "plain", input: "Hi" },
      { id: "r", output: many(20_000, item), usage },
    ],
  ];
  test.for(answers)("%s %j", async ([path, asked, body]) => {
    const caller = await newCaller();
    world.play({ kind: "json", body });
    const answer = await caller.post(path, asked);
    expect(answer.status).toBe(502);
    // The reported tokens were generated, so they are charged.
    expect(await spent(caller)).toBe(cost);
  });
});
