import { describe, expect, test } from "vitest";
import { ErrorReason } from "#kit/base/errors.ts";
import type { JsonObject } from "#kit/base/json.ts";
import { testRequest } from "../../../../test/support/text-requests.ts";
import { anthropicAnswers, type Made } from "../../../../test/support/upstreams/anthropic.ts";
import { type Changes, eachWithAnthropic, outputBound, upstreamAt } from "./world.fixture.ts";

const here = eachWithAnthropic();
const hi = { role: "user", content: "Hi" };
function ask(fields: JsonObject = {}, changes: Changes = {}) {
  const body = { model: "chat-1", max_tokens: 4_096, messages: [hi], ...fields };
  return testRequest("messages", [upstreamAt(here, changes)], { body, asked: body, outputBound });
}

/** The same answer whole, and put together from its stream by the last values of each field. */
async function both(made: Made, fields: JsonObject = {}) {
  here.double.usual = made;
  const whole = await here.world.json(ask(fields));
  const streamed = await here.world.stream(ask(fields));
  return { whole, streamed };
}

const thinking = { type: "thinking", thinking: "I must look.", signature: "c2lnbmF0dXJl+/=" };
const sealed = { type: "redacted_thinking", data: "ZGF0YQ==" };
const use = { type: "tool_use", id: "toolu_1", name: "look", input: { at: 1 } };
const content = [thinking, sealed, { type: "text", text: "Let me look." }, use];

describe("an answer", () => {
  test("passes as it came, under our id and the public model", async () => {
    const { whole, streamed } = await both({ content });
    const head = { id: "msg_req1", type: "message", role: "assistant", model: "chat-1" };
    expect(whole.body).toMatchObject({ ...head, content, stop_reason: "tool_use" });
    expect(whole.answer.opaque).toEqual([thinking.signature, sealed.data]);
    expect(streamed.data[0]).toMatchObject({
      ...{ type: "message_start", message: { ...head, content: [], stop_reason: null } },
    });
    expect(streamed.events.flatMap(({ opaque }) => opaque ?? [])).toEqual([
      ...[thinking.signature, sealed.data],
    ]);
    const [{ body: sent } = expect.unreachable()] = here.double.requests;
    expect(sent).toMatchObject({ model: "up-model", max_tokens: 4_096, messages: [hi] });
    const deltas = streamed.data.filter(({ type }) => type === "content_block_delta");
    const textOf = (name: string) => deltas.map(({ delta }) => delta[name] ?? "").join("");
    expect(textOf("thinking")).toBe(thinking.thinking);
    expect(textOf("signature")).toBe(thinking.signature);
    expect(textOf("text")).toBe("Let me look.");
    expect(JSON.parse(textOf("partial_json"))).toEqual(use.input);
    expect(streamed.wire).not.toMatch(/up-model|ping|inference_geo/);
  });

  test("has blocks of a new type where the catalog adds that", async () => {
    const novel = { type: "novel", said: "A", parts: [{ encrypted_content: "c2VhbGVk" }] };
    here.double.usual = { content: [novel, { type: "text", text: "B" }] };
    for (const [blockTypes, count, opaque] of [
      [[], 1, []],
      [["novel"], 2, ["c2VhbGVk"]],
    ] as const) {
      const asked = ask({}, { blockTypes: [...blockTypes] });
      const whole = await here.world.json(asked);
      expect(whole.body.content).toHaveLength(count);
      expect(whole.answer.opaque).toEqual(opaque);
      const { data, events } = await here.world.stream(asked);
      const starts = data.filter(({ type }) => type === "content_block_start");
      expect(starts.map(({ index }) => index)).toEqual([0, 1].slice(0, count));
      expect(starts[0]?.content_block.type).toBe(whole.body.content[0].type);
      expect(events.flatMap((event) => event.opaque ?? [])).toEqual(opaque);
    }
  });

  test("ends with every field of the usage, counted as the upstream did", async () => {
    const usage = {
      ...{ input_tokens: 100, cache_read_input_tokens: 20_000, cache_creation_input_tokens: 5_000 },
      cache_creation: { ephemeral_5m_input_tokens: 3_000, ephemeral_1h_input_tokens: 2_000 },
      ...{ output_tokens: 300, output_tokens_details: { thinking_tokens: 200 } },
    };
    const { whole, streamed } = await both({ content, usage });
    const reported = {
      ...{ inputTokens: 25_100, cachedInputTokens: 20_000, outputTokens: 300 },
      details: { cacheWrite: 5_000, cacheWriteLong: 2_000 },
    };
    expect(whole.answer.usage).toMatchObject(reported);
    expect(whole.body.usage).toMatchObject(usage);
    const last = streamed.events.at(-1);
    expect(last).toMatchObject({ ending: "completed", usage: reported });
    expect(last?.usage?.isRunning).toBeUndefined();
    expect(streamed.data.at(-1)).toMatchObject({
      ...{ type: "message_delta", delta: { stop_reason: "tool_use" }, usage },
    });
  });

  test.each([
    ["end_turn", "completed"],
    ["pause_turn", "completed"],
    ["max_tokens", "incomplete"],
    ["model_context_window_exceeded", "incomplete"],
    ["refusal", "incomplete"],
  ])("that ends by %s is %s, and says why", async (stop_reason, ending) => {
    const stop_details = { type: "refusal", category: "cyber", explanation: "I may not." };
    const made = { content: [{ type: "text", text: "A" }], stop_reason, stop_details };
    const { whole, streamed } = await both(made);
    expect([whole.answer.ending, streamed.events.at(-1)?.ending]).toEqual([ending, ending]);
    expect(whole.body).toMatchObject({ stop_reason, stop_details });
    expect(streamed.data.at(-1)?.delta).toMatchObject({ stop_reason, stop_details });
  });

  test("without a reason is none, and one that is cut never looks complete", async () => {
    here.double.usual = { content, stop_reason: null };
    expect(await here.world.reasonFrom(ask())).toBe(ErrorReason.MODEL_REQUEST_FAILED);
    for (const made of [
      { content, stop_reason: null },
      { content, cutAfter: 6 },
    ]) {
      here.double.usual = made;
      const { events, data } = await here.world.stream(ask());
      expect(events.at(-1)).toMatchObject({ ending: "failed", usage: { inputTokens: 10 } });
      expect(data.at(-1)?.type).toBe("error");
    }
  });

  test("has no blocks of kinds that nobody asked for", async () => {
    const strange = { type: "server_tool_use", id: "srv_1", name: "web_search", input: {} };
    const { whole, streamed } = await both({ content: [strange, { type: "text", text: "A" }] });
    expect(whole.body.content).toEqual([{ type: "text", text: "A" }]);
    const begun = streamed.data.filter(({ type }) => type === "content_block_start");
    expect(begun.map(({ index, content_block: { type } }) => [index, type])).toEqual([[0, "text"]]);
  });

  test("is cut at the bound of its output where the upstream does not keep to it", async () => {
    here.double.usual = { content: [{ type: "text", text: "word ".repeat(2_000) }] };
    const count = async (texts: readonly string[]) => texts.join("").split(" ").length;
    const bound = { tokens: 10, count };
    const whole = await here.world.json({ ...ask(), outputBound: bound, maxOutputTokens: 10 });
    expect(whole.answer).toMatchObject({ ending: "incomplete", isCut: true });
    expect(whole.body.stop_reason).toBe("max_tokens");
    expect(whole.body.content[0].text.length).toBeLessThan(200);
    here.double.usual = { ...here.double.usual, usage: { output_tokens: 5_000 } };
    const { data } = await here.world.stream({ ...ask(), outputBound: bound, maxOutputTokens: 10 });
    expect(data.at(-1)).toMatchObject({
      type: "message_delta",
      delta: { stop_reason: "max_tokens" },
    });
  });
});

test("numbers of a call in a whole answer are written as they came", async () => {
  const body =
    '{"type":"message","content":[{"type":"tool_use","id":"t","name":"n","input":{"a":1.0,"b":1e3}}],' +
    '"stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":2}}';
  here.double.next("messages", {
    kind: "custom",
    async handle(_seen, response) {
      response.writeHead(200, { "content-type": "application/json" });
      response.end(body);
    },
  });
  const { answer } = await here.world.json(ask());
  expect(JSON.stringify(answer.body)).toContain('"input":{"a":1.0,"b":1e3}');
});

test.each([
  ["credit", ErrorReason.MODEL_REQUEST_FAILED],
  ["overloaded", ErrorReason.MODEL_REQUEST_FAILED],
  ["tooLong", ErrorReason.CONTEXT_LENGTH_EXCEEDED],
  ["filtered", ErrorReason.CONTENT_POLICY_VIOLATION],
  ["wrong", ErrorReason.INVALID_VALUE],
] as const)("a failure: %s", async (name, reason) => {
  here.double.always("messages", anthropicAnswers[name]);
  expect(await here.world.reasonFrom(ask())).toBe(reason);
  here.double.always("messages", undefined);
  here.double.usual = { content, errorAt: 0 };
  expect(await here.world.reasonFrom({ ...ask(), stream: true })).toBe(
    ErrorReason.MODEL_REQUEST_FAILED,
  );
});
