import { describe, expect, test } from "vitest";
import { ErrorReason } from "#kit/base/errors.ts";
import type { JsonObject } from "#kit/base/json.ts";
import type { Made } from "../../../../test/support/upstreams/anthropic.ts";
import { carrierOf } from "./carrier.ts";
import { askAt, bothAt, type Changes, eachWithAnthropic, tools } from "./world.fixture.ts";

const here = eachWithAnthropic();
const ask = (operation: "responses" | "chat", fields: JsonObject = {}, changes: Changes = {}) =>
  askAt(here, operation, { fields, changes });
const both = (made: Made, fields: JsonObject = {}) => bothAt(here, made, fields);
const message = (...texts: string[]) => ({
  ...{ type: "message", role: "assistant", status: "completed" },
  content: texts.map((text) => ({ type: "output_text", text, annotations: [], logprobs: [] })),
});

describe("an answer", () => {
  test("of texts: parts of one message", async () => {
    const content = ["Hello ", "there."].map((text) => ({ type: "text", text }));
    const { output, streamed } = await both({ content });
    expect(output).toEqual([message("Hello ", "there.")]);
    expect(streamed.events.map(({ text }) => text).join("")).toBe("Hello there.");
    const types = streamed.data.map(({ type }) => type);
    expect(types.slice(0, 5)).toEqual([
      ...["response.created", "response.in_progress", "response.output_item.added"],
      ...["response.content_part.added", "response.output_text.delta"],
    ]);
    expect(types.slice(-4)).toEqual([
      ...["response.output_text.done", "response.content_part.done"],
      ...["response.output_item.done", "response.completed"],
    ]);
  });

  test("of thinking and calls: items in their order, with the caller's names", async () => {
    const thinking = { type: "thinking", thinking: "I look first.", signature: "c2lnbmF0dXJl" };
    const sealed = { type: "redacted_thinking", data: "ZGF0YQ==" };
    const use = (id: string, name: string, input: object) => ({
      type: "tool_use",
      id,
      name,
      input,
    });
    const content = [
      ...[thinking, sealed, { type: "text", text: "Let me see." }, use("toolu_1", "look", {})],
      ...[use("toolu_2", "patch", { input: "*** a" }), use("toolu_3", "files__read", { at: 1 })],
      use("toolu_4", "patch", { other: 1 }),
    ];
    const { output, whole, streamed } = await both({ content }, { tools });
    const carriers = [carrierOf(thinking), carrierOf(sealed)];
    expect(output).toEqual([
      {
        ...{ type: "reasoning", encrypted_content: carriers[0] },
        summary: [{ type: "summary_text", text: "I look first." }],
      },
      { type: "reasoning", summary: [], encrypted_content: carriers[1] },
      message("Let me see."),
      {
        ...{ type: "function_call", call_id: "toolu_1", name: "look", arguments: "{}" },
        status: "completed",
      },
      {
        ...{ type: "custom_tool_call", call_id: "toolu_2", name: "patch", input: "*** a" },
        status: "completed",
      },
      {
        ...{ type: "function_call", call_id: "toolu_3", name: "read", namespace: "files" },
        ...{ arguments: '{"at":1}', status: "completed" },
      },
      {
        ...{ type: "custom_tool_call", call_id: "toolu_4", name: "patch", input: '{"other":1}' },
        status: "completed",
      },
    ]);
    expect(whole.answer.opaque).toEqual(carriers);
    expect(streamed.events.flatMap(({ opaque }) => opaque ?? [])).toEqual(carriers);
    const deltas = streamed.data.filter(({ type }) => `${type}`.includes("summary_text.delta"));
    expect(deltas.map(({ delta }) => delta).join("")).toBe("I look first.");
  });

  test("in Chat", async () => {
    const thinking = { type: "thinking", thinking: "Hm.", signature: "c2ln" };
    const call = { type: "tool_use", id: "toolu_1", name: "look", input: { x: 1 } };
    here.double.usual = { content: [thinking, { type: "text", text: "I look." }, call] };
    const fields = {
      tools: [{ type: "function", function: { name: "look" } }],
      stream_options: { include_usage: true },
    };
    const { body } = await here.world.json(ask("chat", fields));
    expect(body.choices[0]).toMatchObject({
      finish_reason: "tool_calls",
      message: {
        ...{ content: "I look.", reasoning_content: "Hm." },
        tool_calls: [{ id: "toolu_1", function: { name: "look", arguments: '{"x":1}' } }],
        reasoning_details: [{ data: carrierOf(thinking) }],
      },
    });
    const { data } = await here.world.stream(ask("chat", fields));
    const said = (name: string) =>
      data.map(({ choices: [choice] }) => choice?.delta?.[name] ?? "").join("");
    expect([said("content"), said("reasoning_content")]).toEqual(["I look.", "Hm."]);
    const pieces = data.flatMap(({ choices: [choice] }) => choice?.delta?.tool_calls ?? []);
    expect(pieces[0]).toMatchObject({ id: "toolu_1", function: { name: "look" } });
    expect(pieces.map((piece) => piece.function.arguments).join("")).toBe('{"x":1}');
    expect(data.at(-2)?.choices[0].finish_reason).toBe("tool_calls");
    expect(data.at(-1)?.usage).toMatchObject({ prompt_tokens: 10, completion_tokens: 5 });
  });

  test.each([
    ["end_turn", "completed", "stop", undefined],
    ["stop_sequence", "completed", "stop", undefined],
    ["a_new_reason", "completed", "stop", undefined],
    ["max_tokens", "incomplete", "length", "max_output_tokens"],
    ["model_context_window_exceeded", "incomplete", "length", "max_output_tokens"],
    ["refusal", "incomplete", "content_filter", "content_filter"],
  ])("that ends by %s is %s", async (stop_reason, status, finish, reason) => {
    const { whole } = await both({ content: [{ type: "text", text: "A" }], stop_reason });
    expect(whole.body.status).toBe(status);
    expect(whole.body.incomplete_details?.reason).toBe(reason);
    const { body } = await here.world.json(ask("chat"));
    expect(body.choices[0].finish_reason).toBe(finish);
    const { data } = await here.world.stream(ask("chat"));
    expect(data.at(-1)?.choices[0].finish_reason).toBe(finish);
  });

  test("that is refused has the explanation as its refusal", async () => {
    const stop_details = { type: "refusal", category: "cyber", explanation: "I may not." };
    here.double.usual = { content: [], stop_reason: "refusal", stop_details };
    for (const { body } of [
      await here.world.json(ask("responses")),
      { body: (await here.world.stream(ask("responses"))).data.at(-1)?.response },
    ]) {
      expect(body.output[0].content).toEqual([{ type: "refusal", refusal: "I may not." }]);
      expect(body.incomplete_details).toEqual({ reason: "content_filter" });
    }
    const { body } = await here.world.json(ask("chat"));
    expect(body.choices[0].message.refusal).toBe("I may not.");
  });

  test("that pauses for a tool of the host is a failure", async () => {
    here.double.usual = { content: [{ type: "text", text: "A" }], stop_reason: "pause_turn" };
    expect((await here.world.json(ask("responses"))).answer.ending).toBe("failed");
    expect((await here.world.stream(ask("responses"))).events.at(-1)?.ending).toBe("failed");
    expect((await here.world.stream(ask("chat"))).events.at(-1)?.ending).toBe("failed");
  });

  test("without a reason is none", async () => {
    here.double.usual = { content: [{ type: "text", text: "A" }], stop_reason: null };
    expect(await here.world.reasonFrom(ask("responses"))).toBe(ErrorReason.MODEL_REQUEST_FAILED);
    const { events } = await here.world.stream(ask("responses"));
    expect(events.at(-1)).toMatchObject({ ending: "failed", usage: { inputTokens: 10 } });
  });

  test("that is cut tells its input, and at least its output so far", async () => {
    here.double.usual = { content: [{ type: "text", text: "A long text." }], cutAfter: 4 };
    const { events } = await here.world.stream(ask("responses"));
    expect(events.at(-1)).toMatchObject({
      ending: "failed",
      usage: { inputTokens: 10, isRunning: true },
    });
    here.double.usual = { ...here.double.usual, cutAfter: 7 };
    const late = await here.world.stream(ask("responses"));
    expect(late.events.at(-1)).toMatchObject({ ending: "failed", usage: { outputTokens: 5 } });
  });

  test("of a server that leaves out all that may be left out", async () => {
    const content = [
      { type: "thinking", thinking: "Hm." },
      { type: "text", text: "Hi." },
    ];
    const { output } = await both({ content, firstUsage: null, usage: { cache_creation: null } });
    expect(output).toEqual([
      { type: "reasoning", summary: [{ type: "summary_text", text: "Hm." }] },
      message("Hi."),
    ]);
  });

  test("as a stream, where a whole one was asked for, and the reverse", async () => {
    const frames = [
      { type: "message_start", message: { usage: { input_tokens: 3, output_tokens: 1 } } },
      { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
      { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Hi." } },
      { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 2 } },
      { type: "message_stop" },
    ].map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
    const handle = (text: string, type: string) => ({
      ...{ kind: "custom" as const },
      // biome-ignore lint/suspicious/noExplicitAny: Node's own response.
      async handle(_seen: unknown, response: any) {
        response.writeHead(200, { "content-type": type });
        response.end(text);
      },
    });
    // The last event lacks its empty line.
    here.double.next("messages", handle(frames.join("").trimEnd(), "text/event-stream"));
    const { body, answer } = await here.world.json(ask("responses"));
    expect(body.output[0].content[0].text).toBe("Hi.");
    expect(answer.usage).toMatchObject({ inputTokens: 3, outputTokens: 2 });
    const usage = { input_tokens: 3, output_tokens: 2 };
    const content = [{ type: "text", text: "Hi." }];
    const whole = { type: "message", content, stop_reason: "end_turn", usage };
    here.double.next("messages", handle(JSON.stringify(whole), "application/json"));
    const { events } = await here.world.stream(ask("responses"));
    expect(events.map(({ text }) => text).join("")).toBe("Hi.");
    expect(events.at(-1)).toMatchObject({ ending: "completed", usage: { inputTokens: 3 } });
  });
});
