import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ErrorReason } from "#kit/base/errors.ts";
import { testRequest } from "../../../test/support/text-requests.ts";
import { startUpstreamWorld, type UpstreamWorld } from "../../../test/support/upstream-world.ts";

let world: UpstreamWorld;
let server: UpstreamWorld["server"];
let at: UpstreamWorld["at"];
let json: UpstreamWorld["json"];
let stream: UpstreamWorld["stream"];
let reasonFrom: UpstreamWorld["reasonFrom"];

beforeEach(async () => {
  world = await startUpstreamWorld();
  ({ server, at, json, stream, reasonFrom } = world);
});

afterEach(() => world[Symbol.asyncDispose]());

describe("what goes up", () => {
  test("openai: path, key, model, and nothing of ours that is not its", async () => {
    const upstream = at("OPENAI", { apiKeyEnv: "UP_KEY" });
    const fields = { novel: { a: [1] }, tools: [{ type: "agent_tool", deep: { x: 1 } }] };
    await json(testRequest("responses", [upstream], { fields }));
    await stream(testRequest("responses", [upstream], { fields }));
    const [whole, streamed] = server.requests;
    expect(whole?.path).toBe("/v1/responses");
    expect(whole?.headers.authorization).toBe("Bearer sk-test");
    expect(whole?.headers["idempotency-key"]).toBeUndefined();
    expect(whole?.body).toEqual({
      model: "up-model",
      input: "Hi",
      instructions: "SECRET PROMPT\n\nBe kind.",
      store: false,
      stream: false,
      ...fields,
    });
    expect(streamed?.body.stream).toBe(true);
  });

  test("genmesh: its own idempotency key, chat natively; no key, no authorization", async () => {
    await json(testRequest("chat", [at("GENMESH")]));
    await stream(testRequest("chat", [at("GENMESH")]));
    const [whole, streamed] = server.requests;
    expect(whole?.path).toBe("/v1/chat/completions");
    expect(whole?.headers).toMatchObject({ "idempotency-key": "req_1" });
    expect(whole?.headers.authorization).toBeUndefined();
    expect(streamed?.body.stream_options).toEqual({ include_usage: true });
  });

  test("chat at a Responses upstream is translated", async () => {
    const fields = { max_tokens: 5, reasoning_effort: "low" };
    const changes = { fields, maxOutputTokens: 5 };
    const { body } = await json(testRequest("chat", [at("OPENAI")], changes));
    expect(server.requests[0]).toMatchObject({
      path: "/v1/responses",
      body: {
        model: "up-model",
        input: [
          { type: "message", role: "system", content: "SECRET PROMPT" },
          { type: "message", role: "user", content: "Hi" },
        ],
        max_output_tokens: 5,
        reasoning: { effort: "low" },
      },
    });
    expect(server.requests[0]?.body.messages).toBeUndefined();
    expect(body).toMatchObject({ object: "chat.completion", model: "chat-1" });
  });

  test("a key that is not set is the operator's fault: nothing is sent", async () => {
    const upstream = at("OPENAI", { apiKeyEnv: "MISSING" });
    expect(await reasonFrom(testRequest("responses", [upstream]))).toBe(
      ErrorReason.MODEL_REQUEST_FAILED,
    );
    expect(server.requests).toHaveLength(0);
  });
});

describe("what comes back", () => {
  test.each(["OPENAI", "GENMESH", "CHAT_COMPLETIONS"] as const)("%s chat", async (protocol) => {
    const request = testRequest("chat", [at(protocol)]);
    const { answer, body } = await json(request);
    expect(body).toMatchObject({
      object: "chat.completion",
      model: "chat-1",
      choices: [{ message: { content: "Hello from upstream." }, finish_reason: "stop" }],
      usage: { prompt_tokens: 10, completion_tokens: 5 },
    });
    const usage = { inputTokens: 10, cachedInputTokens: 0, outputTokens: 5 };
    expect(answer).toMatchObject({
      ending: "completed",
      outputText: "Hello from upstream.",
      upstream: protocol.toLowerCase(),
      usage,
    });
    const streamed = await stream(request);
    expect(streamed.events.map((event) => event.text).join("")).toBe("Hello from upstream.");
    expect(streamed.events.at(-1)).toMatchObject({ ending: "completed", usage });
    expect(streamed.data[0].choices[0].delta.role).toBe("assistant");
    expect(streamed.data.some((chunk) => chunk.usage)).toBe(false);
    expect(`${streamed.wire}${JSON.stringify(body)}`).not.toMatch(/up-model|SECRET/);
    const fields = { stream_options: { include_usage: true } };
    const metered = await stream({ ...request, body: { ...request.body, ...fields } });
    expect(metered.data.at(-1)).toMatchObject({ choices: [], usage: { prompt_tokens: 10 } });
  });

  test.each(["OPENAI", "GENMESH"] as const)("%s responses and compact", async (protocol) => {
    server.script({ kind: "ok", encrypted: "OPAQUE+/=" });
    const request = testRequest("responses", [at(protocol)]);
    const { answer, body } = await json(request);
    expect(body).toMatchObject({
      object: "response",
      status: "completed",
      model: "chat-1",
      instructions: "Be kind.",
      store: false,
    });
    expect(answer.opaque).toEqual(["OPAQUE+/="]);
    const { events, wire, data } = await stream(request);
    expect(data.at(-1).response.output).toEqual(body.output);
    expect(events.flatMap((event) => event.opaque ?? [])).toEqual(["OPAQUE+/="]);
    expect(`${wire}${JSON.stringify(body)}`).not.toMatch(/up-model|SECRET/);

    const compacted = await json(testRequest("compact", [at(protocol)]));
    expect(server.requests.at(-1)?.path).toBe("/v1/responses/compact");
    expect(compacted.body.output.at(-1)).toEqual({
      type: "compaction",
      id: "cmp_up_1",
      encrypted_content: "OPAQUE+/=",
    });
    expect(compacted.answer.opaque).toEqual(["OPAQUE+/="]);
    expect(compacted.answer.usage?.inputTokens).toBe(10);
  });

  test("any cutting of the bytes gives the same stream", async () => {
    const request = testRequest("responses", [at("OPENAI")]);
    const deltas = ["größe ", "🦊🦊", "\n漢字"];
    server.script({ kind: "ok", deltas });
    const whole = await stream(request);
    for (const pieceBytes of [1, 3, 17]) {
      server.script({ kind: "ok", deltas, pieceBytes });
      expect((await stream(request)).wire).toBe(whole.wire);
    }
  });

  test("an upstream that answers whole where a stream is asked for still gives a stream", async () => {
    const found = { id: "r", status: "completed", output: [], usage: null };
    const output = [{ type: "message", content: [{ type: "output_text", text: "Hi" }] }];
    server.script({ kind: "json", body: { ...found, output } });
    for (const operation of ["responses", "chat"] as const) {
      const { events } = await stream(testRequest(operation, [at("OPENAI")]));
      expect(events.map((event) => event.text).join("")).toBe("Hi");
      expect(events.at(-1)?.ending).toBe("completed");
    }
    const message = { role: "assistant", content: "Hi" };
    server.script({ kind: "json", body: { id: "c", choices: [{ index: 0, message }] } });
    const { events, data } = await stream(testRequest("chat", [at("CHAT_COMPLETIONS")]));
    expect(events.map((event) => event.text).join("")).toBe("Hi");
    expect(data.at(-1).choices[0].finish_reason).toBe("stop");
  });
});
