import { afterAll, describe, expect, test } from "vitest";
import type { Caller } from "../e2e/caller.ts";
import { ownWorldOnly, startWorld } from "../e2e/world.ts";

ownWorldOnly();
const world = await startWorld();
afterAll(() => world[Symbol.asyncDispose]());

type Told = Record<string, unknown> | string;
const opening = 10_000_000;
/** A token of input costs a micro, one of output four. */
const costOf = (input: number, output: number) => input + 4 * output;
const spent = async (caller: Caller) => opening - (await caller.settled()).available;
const messages = [{ role: "user", content: "Hi" }];

async function cost(path: string, body: object, events: readonly Told[]) {
  const caller = await world.caller({ usdMicros: BigInt(opening) });
  world.play({ kind: "events", events });
  const asked = { stream: true, stream_options: { include_usage: true }, ...body };
  const { text } = await caller.post(path, asked);
  return { spent: await spent(caller), text };
}

describe("usage anywhere in a chat stream is charged", () => {
  const one = { id: "c", object: "chat.completion.chunk", created: 1, model: "up" };
  const usageOf = (input: number, output: number) => ({
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
  });
  const says = (delta: object, finish: string | null = null, more: object = {}) => ({
    ...one,
    choices: [{ index: 0, delta, finish_reason: finish }],
    ...more,
  });
  const words = says({ role: "assistant", content: "one two three four five six" });
  const finish = says({}, "stop");
  const usage = usageOf(100, 200);
  const body = { model: "legacy", messages };
  const whole: [name: string, events: Told[]][] = [
    ["without choices", [words, finish, { ...one, usage }]],
    ["with choices null", [words, finish, { ...one, choices: null, usage }]],
    ["with choices {}", [words, finish, { ...one, choices: {}, usage }]],
    ["behind a ping", [words, finish, { type: "ping" }, { ...one, choices: [], usage }]],
    [
      "before zeros",
      [
        words,
        finish,
        { ...one, choices: [], usage },
        { ...one, choices: [], usage: usageOf(0, 0) },
      ],
    ],
    ["behind garbage", [words, "data: {no\n\n", finish, { ...one, choices: [], usage }]],
    ["behind an error", [words, { error: { message: "x" } }, { ...one, choices: [], usage }]],
    ["on the way to a failure", [says({ content: "one" }, null, { usage }), "data: {no\n\n"]],
    ["on the way, then none", [says({ content: "one" }, null, { usage }), finish]],
  ];
  test.for(whole)("%s", async ([, events]) => {
    const { spent: charged, text } = await cost("/chat/completions", body, events);
    expect(charged).toBe(costOf(100, 200));
    if (text.includes("[DONE]")) expect(text).toContain('"completion_tokens":200');
  });

  test("zeros before the output are no report of it", async () => {
    const counted = await cost("/chat/completions", body, [words, finish]);
    expect(counted.spent).toBeGreaterThan(4 * 5);
    const zeros = { ...words, usage: usageOf(0, 0) };
    const { spent: charged } = await cost("/chat/completions", body, [zeros, finish]);
    expect(charged).toBe(counted.spent);
    const input = { ...words, usage: usageOf(100, 0) };
    const half = await cost("/chat/completions", body, [input, finish]);
    expect(half.spent).toBeGreaterThan(100 + 4 * 5);
    expect(half.spent).toBeLessThan(100 + counted.spent);
  });

  test("zeros as the only report, behind the output, are believed", async () => {
    const only = { ...one, choices: [], usage: usageOf(0, 0) };
    const { spent: charged } = await cost("/chat/completions", body, [words, finish, only]);
    expect(charged).toBe(0);
  });

  test("with reasoning beside the output, as it is charged", async () => {
    const beside = {
      prompt_tokens: 100,
      completion_tokens: 5,
      total_tokens: 1_005,
      completion_tokens_details: { reasoning_tokens: 900 },
    };
    const last = { ...one, choices: [], usage: beside };
    const { spent: charged, text } = await cost("/chat/completions", body, [words, finish, last]);
    expect(charged).toBe(costOf(100, 905));
    expect(text).toContain('"completion_tokens":905');
    const caller = await world.caller({ usdMicros: BigInt(opening) });
    const choice = {
      index: 0,
      message: { role: "assistant", content: "a" },
      finish_reason: "stop",
    };
    world.play({ kind: "json", status: 200, body: { ...one, choices: [choice], usage: beside } });
    const answer = await caller.post("/chat/completions", body);
    expect(answer.text).toContain('"completion_tokens":905');
    expect(await spent(caller)).toBe(costOf(100, 905));
  });
});

describe("usage anywhere in a Responses stream is charged", () => {
  const usage = { input_tokens: 100, output_tokens: 200, total_tokens: 300 };
  const small = { input_tokens: 1, output_tokens: 1, total_tokens: 2 };
  const response = { id: "r", object: "response", created_at: 1, model: "up", output: [] };
  const created = { type: "response.created", response };
  const said = {
    type: "response.output_text.delta",
    delta: "Hello",
    item_id: "m",
    output_index: 0,
  };
  const ended = (type: string, told: object = usage) => ({
    type: `response.${type}`,
    response: { ...response, status: type, usage: told },
  });
  const error = { type: "error", code: "server_error", message: "x" };
  const ways: [path: string, body: object][] = [
    ["/responses", { model: "scripted", input: "Hi" }],
    ["/chat/completions", { model: "scripted", messages }],
  ];
  const whole: [name: string, events: Told[]][] = [
    ["beside an empty one", [created, said, { ...ended("completed"), usage: {} }]],
    ["behind an error", [created, said, error, ended("completed")]],
    ["as response.done", [created, said, ended("done")]],
    ["as response.cancelled", [created, said, ended("cancelled")]],
    ["on the way", [created, said, ended("in_progress")]],
    ["behind garbage", [created, said, "data: {no\n\n", ended("completed")]],
    ["behind what has no type", [created, said, 'data: {"x":1}\n\n', ended("completed")]],
    ["the larger of two", [created, said, ended("completed", small), ended("completed")]],
  ];
  test.for(whole.flatMap(([name, events]) => ways.map((way) => [name, ...way, events] as const)))(
    "%s: %s",
    async ([, path, body, events]) => {
      expect((await cost(path, body, events)).spent).toBe(costOf(100, 200));
    },
  );

  test.for(ways)("in an event of too many items: %s", async ([path, body]) => {
    const output = Array.from({ length: 2_000 }, (_, at) => ({
      id: `m${at}`,
      type: "message",
      content: [{ type: "output_text", text: "a" }],
    }));
    const last = { type: "response.completed", response: { ...response, output, usage } };
    const { spent: charged, text } = await cost(path, body, [created, last]);
    expect(charged).toBe(costOf(100, 200));
    expect(text).toMatch(/response\.failed|"error"/);
  });
});

test("a caller that leaves pays what was reported so far, at least", async () => {
  const sse = (told: object) => `data: ${JSON.stringify(told)}\n\n`;
  const choice = { index: 0, delta: { role: "assistant", content: "Hello" }, finish_reason: null };
  const one = { id: "c", object: "chat.completion.chunk", created: 1, model: "up" };
  const usage = { prompt_tokens: 100, completion_tokens: 800, total_tokens: 900 };
  const response = { id: "r", object: "response", created_at: 1, model: "up", output: [] };
  const running = { input_tokens: 100, output_tokens: 800, total_tokens: 900 };
  const said = {
    type: "response.output_text.delta",
    delta: "Hello",
    item_id: "m",
    output_index: 0,
  };
  const begun = { type: "response.in_progress", response: { ...response, usage: running } };
  const ways: [path: string, body: object, parts: string][] = [
    ["/chat/completions", { model: "legacy", messages }, sse({ ...one, choices: [choice], usage })],
    ["/chat/completions", { model: "scripted", messages }, sse(begun) + sse(said)],
    ["/responses", { model: "scripted", input: "Hi" }, sse(begun) + sse(said)],
  ];
  for (const [path, body, parts] of ways) {
    const caller = await world.caller({ usdMicros: BigInt(opening) });
    const seen = world.play({
      kind: "custom",
      handle(_seen, answer) {
        answer.writeHead(200, { "content-type": "text/event-stream" });
        answer.write(parts);
        return Promise.resolve();
      },
    });
    const stream = await caller.open(path, { ...body, stream: true });
    await stream.until(({ data }) => data.includes("Hello"));
    stream.leave();
    await seen[0]?.over;
    expect(await spent(caller)).toBe(costOf(100, 800));
  }
});

test("what failed is read on for usage that comes later, for a moment", async () => {
  const sse = (told: object) => `data: ${JSON.stringify(told)}\n\n`;
  const one = { id: "c", object: "chat.completion.chunk", created: 1, model: "up" };
  const choice = { index: 0, delta: { role: "assistant", content: "Hello" }, finish_reason: null };
  const usage = { prompt_tokens: 100, completion_tokens: 200, total_tokens: 300 };
  const response = { id: "r", object: "response", created_at: 1, model: "up", output: [] };
  const spentBy = { input_tokens: 100, output_tokens: 200, total_tokens: 300 };
  const created = { type: "response.created", response };
  const last = { type: "response.completed", response: { ...response, usage: spentBy } };
  const native = [sse({ ...one, choices: [choice] }), sse({ ...one, choices: [], usage })] as const;
  const translated = [sse(created), sse(last)] as const;
  const ways: [path: string, body: object, parts: readonly [string, string]][] = [
    ["/chat/completions", { model: "legacy", messages }, native],
    ["/chat/completions", { model: "scripted", messages }, translated],
    ["/responses", { model: "scripted", input: "Hi" }, translated],
  ];
  for (const [path, body, [begun, told]] of ways) {
    for (const isTold of path === "/responses" ? [true, false] : [true]) {
      const caller = await world.caller({ usdMicros: BigInt(opening) });
      const goOn = Promise.withResolvers<void>();
      world.play({
        kind: "custom",
        async handle(_seen, answer) {
          answer.writeHead(200, { "content-type": "text/event-stream" });
          answer.write(`${begun}data: {no\n\n`);
          await goOn.promise;
          if (isTold) answer.end(told);
        },
      });
      const stream = await caller.open(path, { ...body, stream: true });
      await stream.until(() => true);
      goOn.resolve();
      const rest = await stream.rest();
      expect(rest.map(({ data }) => data).join("")).toMatch(/response\.failed|"error"/);
      expect(await spent(caller)).toBe(isTold ? costOf(100, 200) : 0);
    }
  }
});
