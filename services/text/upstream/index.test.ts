import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ErrorReason, type RefusalError } from "#kit/errors.ts";
import type { Upstream } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import {
  type Behaviour,
  closedBaseUrl,
  type ScriptedUpstream,
  startScriptedUpstream,
} from "../../../test/support/scripted-upstream.ts";
import {
  collect,
  runningClock,
  testContext,
  testRequest,
  testUpstream,
} from "../../../test/support/text-requests.ts";
import { createTextUpstreams } from "./index.ts";
import type { JsonAnswer, StreamAnswer, TextUpstreams, UpstreamRequest } from "./port.ts";

let server: ScriptedUpstream;
let texts: TextUpstreams & AsyncDisposable;

beforeEach(async () => {
  server = await startScriptedUpstream();
  const secrets = (name: string) => (name === "UP_KEY" ? "sk-test" : undefined);
  texts = createTextUpstreams(testContext({ clock: runningClock, secrets }));
});

afterEach(async () => {
  await texts[Symbol.asyncDispose]();
  await server.close();
});

type Protocol = Parameters<typeof testUpstream>[0];

const at = (protocol: Protocol, changes: Parameters<typeof testUpstream>[1] = {}) =>
  testUpstream(protocol, { baseUrl: server.baseUrl, ...changes });

async function json(request: UpstreamRequest) {
  const answer = (await texts.send(request)) as JsonAnswer;
  expect(answer.kind).toBe("json");
  return { answer, body: JSON.parse(Buffer.from(answer.body).toString()) };
}

async function stream(request: UpstreamRequest) {
  const answer = (await texts.send({ ...request, stream: true })) as StreamAnswer;
  expect(answer.kind).toBe("stream");
  return { answer, ...(await collect(answer)) };
}

async function refusalFrom(request: UpstreamRequest): Promise<RefusalError> {
  return texts.send(request).then(
    () => expect.unreachable("it was answered"),
    (error) => error,
  );
}

const reasonFrom = async (request: UpstreamRequest) => (await refusalFrom(request)).reason;

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
    const { body } = await json(testRequest("chat", [at("OPENAI")], { fields }));
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

describe("when it cannot", () => {
  const statuses: [
    number,
    Partial<Extract<Behaviour, { kind: "status" }>>,
    keyof typeof ErrorReason,
  ][] = [
    [400, {}, "INVALID_VALUE"],
    [422, {}, "INVALID_VALUE"],
    [400, { code: "content_policy_violation" }, "CONTENT_POLICY_VIOLATION"],
    [401, {}, "MODEL_REQUEST_FAILED"],
    [402, {}, "MODEL_REQUEST_FAILED"],
    [403, {}, "MODEL_REQUEST_FAILED"],
    [404, {}, "MODEL_REQUEST_FAILED"],
    [429, {}, "MODEL_REQUEST_FAILED"],
    [500, {}, "MODEL_REQUEST_FAILED"],
    [503, {}, "MODEL_REQUEST_FAILED"],
    [307, { headers: { location: "http://example.com/" } }, "MODEL_REQUEST_FAILED"],
  ];
  test.each(statuses)("upstream's %i %j is %s, in our words", async (status, more, reason) => {
    server.script({ kind: "status", status, ...more });
    for (const isStream of [false, true]) {
      const request = testRequest("responses", [at("OPENAI")], { stream: isStream });
      const refusal = await refusalFrom(request);
      expect(refusal.reason).toBe(ErrorReason[reason]);
      expect(refusal.message).not.toContain("SECRET");
    }
  });

  test("garbage is a failed request: HTML, no JSON, JSON that is no answer, an early end", async () => {
    const bodies: Behaviour[] = [
      { kind: "garbage" },
      { kind: "garbage", contentType: "text/html" },
      { kind: "garbage", body: "[1,2]" },
      { kind: "garbage", body: '{"object":"list"}' },
      { kind: "garbage", body: '{"status":"in_progress","output":[]}' },
      { kind: "garbage", body: "", contentType: "text/event-stream" },
      { kind: "garbage", body: "data: oops\n\n", contentType: "text/event-stream" },
    ];
    for (const behaviour of bodies) {
      server.script(behaviour);
      for (const operation of ["responses", "chat"] as const) {
        for (const isStream of [false, true]) {
          const request = testRequest(operation, [at("OPENAI")], { stream: isStream });
          expect(await reasonFrom(request)).toBe(ErrorReason.MODEL_REQUEST_FAILED);
        }
      }
    }
  });

  test("time: to connect, to the head, between bytes, in all", async () => {
    const hanging = { kind: "hang" } as const;
    server.script(hanging);
    const isLate = async (request: UpstreamRequest) =>
      expect(await reasonFrom(request)).toBe(ErrorReason.UPSTREAM_TIMEOUT);
    await isLate(testRequest("responses", [at("OPENAI", { timeoutMs: 60n })]));
    await isLate(
      testRequest("responses", [at("OPENAI", { idleTimeoutMs: 60n })], { stream: true }),
    );

    server.script({ kind: "ok", break: { how: "hang", after: 2 } });
    for (const time of [{ idleTimeoutMs: 60n }, { timeoutMs: 100n }]) {
      const { events, data } = await stream(testRequest("responses", [at("OPENAI", time)]));
      expect(events.at(-1)?.ending).toBe("failed");
      expect(data.at(-1).response.error.code).toBe("upstream_timeout");
    }
  });

  test.each([
    { how: "destroy", after: 2 },
    { how: "end", after: 2 },
    { how: "garbage", after: 2 },
    { how: "error", after: 2 },
    { how: "failed", after: 2 },
  ] as const)("a stream that breaks ($how) ends with one failure", async (broken) => {
    server.script({ kind: "ok", break: broken });
    for (const [operation, protocol] of [
      ["responses", "OPENAI"],
      ["chat", "OPENAI"],
      ["chat", "CHAT_COMPLETIONS"],
    ] as const) {
      const { events, wire } = await stream(testRequest(operation, [at(protocol)]));
      expect(events.filter((event) => event.ending)).toEqual([events.at(-1)]);
      expect(events.at(-1)?.ending).toBe("failed");
      expect(events.map((event) => event.text).join("")).toBe("Hello from");
      expect(wire).not.toContain("SECRET");
    }
  });

  test("operations that the protocol, or the server, lacks", async () => {
    const incapable = ErrorReason.MODEL_NOT_RESPONSES_CAPABLE;
    const old = at("CHAT_COMPLETIONS");
    expect(await reasonFrom(testRequest("responses", [old]))).toBe(incapable);
    expect(await reasonFrom(testRequest("compact", [old]))).toBe(incapable);
    expect(server.requests).toHaveLength(0);
    for (const status of [404, 405, 501]) {
      server.script({ kind: "status", status });
      expect(await reasonFrom(testRequest("compact", [at("OPENAI")]))).toBe(incapable);
    }
    server.script({ kind: "status", status: 404, code: "model_not_found" });
    expect(await reasonFrom(testRequest("compact", [at("OPENAI")]))).toBe(
      ErrorReason.MODEL_REQUEST_FAILED,
    );
  });
});

describe("fallback", () => {
  let second: ScriptedUpstream;

  beforeEach(async () => {
    second = await startScriptedUpstream();
  });
  afterEach(() => second.close());

  const pair = (first: Upstream = at("OPENAI", { name: "first" })) => [
    first,
    testUpstream("OPENAI", { baseUrl: second.baseUrl, name: "second" }),
  ];

  test.each([
    ["429", { kind: "status", status: 429 }],
    ["500", { kind: "status", status: 500 }],
    ["503", { kind: "status", status: 503 }],
    ["a dropped connection", { kind: "drop" }],
    ["a stream cut before its first event", { kind: "custom", handle: cutAfterHead }],
  ] as [string, Behaviour][])("%s: the next one answers", async (_name, behaviour) => {
    server.script(behaviour);
    const { answer } = await stream(testRequest("responses", pair()));
    expect(answer.upstream).toBe("second");
    expect(server.requests).toHaveLength(1);
  });

  test("a refused connection: the next one answers", async () => {
    const dead = testUpstream("OPENAI", { baseUrl: await closedBaseUrl() });
    expect((await json(testRequest("responses", pair(dead)))).answer.upstream).toBe("second");
  });

  test.each([
    ["400", { kind: "status", status: 400 }],
    ["401", { kind: "status", status: 401 }],
    ["404", { kind: "status", status: 404 }],
    ["garbage", { kind: "garbage" }],
  ] as [string, Behaviour][])("%s: no other is asked", async (_name, behaviour) => {
    server.script(behaviour);
    await refusalFrom(testRequest("responses", pair()));
    expect(second.requests).toHaveLength(0);
  });

  test("after the first event there is no way back", async () => {
    server.script({ kind: "ok", break: { how: "destroy", after: 1 } });
    const { answer, events } = await stream(testRequest("responses", pair()));
    expect(answer.upstream).toBe("first");
    expect(events.at(-1)?.ending).toBe("failed");
    expect(second.requests).toHaveLength(0);
  });

  test("the last failure is the answer; one that lacks the operation is passed over", async () => {
    server.script({ kind: "status", status: 503 });
    second.script({ kind: "status", status: 400 });
    expect(await reasonFrom(testRequest("responses", pair()))).toBe(ErrorReason.INVALID_VALUE);
    second.script({ kind: "ok" });
    const [, good] = pair();
    const upstreams = [at("CHAT_COMPLETIONS"), good as Upstream];
    expect((await json(testRequest("responses", upstreams))).answer.upstream).toBe("second");
  });
});

function cutAfterHead(_seen: unknown, response: import("node:http").ServerResponse): void {
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.write(": hello\n\n", () => response.destroy());
}

describe("the caller's leaving", () => {
  const leaveAt = async (behaviour: Behaviour, until: "sent" | "begun" | "stalled") => {
    server.script(behaviour);
    const caller = new AbortController();
    const request = testRequest("responses", [at("OPENAI")], {
      stream: true,
      signal: caller.signal,
    });
    const sent = texts.send(request);
    sent.catch(() => {});
    const seen = await server.request(server.requests.length + 1);
    const answer = until === "sent" ? undefined : ((await sent) as StreamAnswer);
    const batches = answer?.batches[Symbol.asyncIterator]();
    if (until === "begun") await batches?.next();
    const leftAtMs = performance.now();
    caller.abort(new Error("the caller left"));
    await seen.over;
    expect(seen.aborted).toBe(true);
    expect((seen.abortedAtMs ?? Number.POSITIVE_INFINITY) - leftAtMs).toBeLessThan(250);
    if (until === "sent") await expect(sent).rejects.toThrow("the caller left");
    if (until === "begun") {
      const rest = async () => {
        while (!(await batches?.next())?.done);
      };
      await expect(rest()).rejects.toThrow("the caller left");
    }
  };

  test("closes upstream at once: unanswered, within the stream, and while nobody reads", async () => {
    await leaveAt({ kind: "hang" }, "sent");
    await leaveAt({ kind: "ok", break: { how: "hang", after: 1 } }, "begun");
    await leaveAt({ kind: "huge", events: 1e6, deltaBytes: 500 }, "stalled");
  });

  test("a reader that stops asking closes upstream too", async () => {
    server.script({ kind: "huge", events: 1e6, deltaBytes: 500 });
    const request = testRequest("responses", [at("OPENAI")], { stream: true });
    const answer = (await texts.send(request)) as StreamAnswer;
    for await (const _ of answer.batches) break;
    const seen = await server.request(1);
    await seen.over;
    expect(seen.aborted).toBe(true);
  });

  test("one that has left already sends nothing", async () => {
    const signal = AbortSignal.abort(new Error("gone"));
    const request = testRequest("responses", [at("OPENAI")], { signal });
    await expect(texts.send(request)).rejects.toThrow("gone");
    expect(server.requests).toHaveLength(0);
  });
});

test("a slow reader holds upstream back and memory stays flat", async () => {
  server.script({ kind: "huge", events: 400_000, deltaBytes: 500 });
  const request = testRequest("responses", [at("OPENAI")], { stream: true });
  const answer = (await texts.send(request)) as StreamAnswer;
  const seen = await server.request(1);
  const batches = answer.batches[Symbol.asyncIterator]();
  await batches.next();
  // Waits until upstream can write no more.
  for (let before = -1; before !== seen.writtenBytes; ) {
    before = seen.writtenBytes;
    await new Promise((resolve) => setTimeout(resolve, 300));
  }
  expect(seen.writtenBytes).toBeLessThan(20e6);
  let bytes = 0;
  let most = 0;
  while (bytes < 100e6) {
    const { value, done } = await batches.next();
    if (done) break;
    for (const { frame } of value) bytes += frame.length;
    most = Math.max(most, process.memoryUsage().arrayBuffers);
  }
  expect(bytes).toBeGreaterThan(100e6);
  // What is read is 100 MB; what is held at once is chunks that the collector has not come to yet.
  expect(most).toBeLessThan(80e6);
  await batches.return?.();
});

describe("places", () => {
  test("a bound of requests in flight holds the next one until a stream has ended", async () => {
    const upstream = at("OPENAI", { maxConcurrent: 1 });
    server.script({ kind: "ok", deltaDelayMs: 20 });
    const request = testRequest("responses", [upstream]);
    await Promise.all([stream(request), stream(request), json(request)]);
    const [first, second, third] = server.requests;
    await Promise.all([first?.over, second?.over, third?.over]);
    expect(server.requests).toHaveLength(3);
    expect((second?.atMs ?? 0) - (first?.atMs ?? 0)).toBeGreaterThan(60);
  });

  test("no place within the time to connect is an upstream that is not there", async () => {
    const full = at("OPENAI", { maxConcurrent: 1, connectTimeoutMs: 40n });
    server.script({ kind: "hang" });
    const caller = new AbortController();
    const held = texts.send(testRequest("responses", [full], { signal: caller.signal }));
    held.catch(() => {});
    await server.request(1);
    expect(await reasonFrom(testRequest("responses", [full]))).toBe(ErrorReason.UPSTREAM_TIMEOUT);
    const other = testUpstream("BUILTIN");
    const { answer } = await json(testRequest("responses", [full, other]));
    expect(answer.upstream).toBe("builtin");
    caller.abort();
  });
});
