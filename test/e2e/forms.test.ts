import { afterAll, describe, expect, test } from "vitest";
import { type AnswerForm, begun, chunk, formAsked, playForm, used } from "../support/forms/form.ts";
import { answerForms as forms } from "../support/forms/index.ts";
import {
  saidByChunks,
  saidByCompletion,
  saidByEvents,
  saidByResponse,
} from "../support/forms/strict.ts";
import type { SseEvent } from "./sse.ts";
import { ownWorldOnly, startWorld } from "./world.ts";

ownWorldOnly();
const world = await startWorld();
afterAll(() => world[Symbol.asyncDispose]());
const caller = await world.caller({ usdMicros: 1_000_000_000n });
const unsaidForms: AnswerForm[] = [];
const compacted = {
  id: "r",
  output: [] as unknown[],
  usage: { input_tokens: 3, output_tokens: 2 },
};
world.play((seen) => {
  if (seen.path.endsWith("/compact")) return { kind: "json", body: compacted };
  const form = formAsked([...forms, ...unsaidForms], seen);
  return form ? playForm(form, seen) : { kind: "status", status: 400 };
});
/** The price of one answer: 1,000 tokens in at 1 micro, 10 out at 4. */
const costUsdMicros = 1_040;

const spentOn = async (work: () => Promise<void>) => {
  const before = await caller.settled();
  await work();
  return before.available - (await caller.settled()).available;
};

const chunksOf = (events: readonly SseEvent[]) => {
  expect(events.at(-1)?.data).toBe("[DONE]");
  return events.slice(0, -1).map(({ json }) => json);
};

/** The forms of an answer to its caller, each from an upstream's stream and from its JSON. */
describe.for(forms.map((form) => [form.name, form] as const))("%s", ([name, form]) => {
  const chatModel = form.upstream === "chat" ? "legacy" : "scripted";
  const chat = {
    model: chatModel,
    messages: [{ role: "user", content: name }],
    stream_options: { include_usage: true },
  };
  const { stream_options: _, ...chatJson } = chat;
  const usage = { prompt_tokens: 1000, completion_tokens: 10, total_tokens: 1010 };
  const expected = { ...form.says, usage: expect.objectContaining(usage) };

  test("chat: a stream, and its replays", async () => {
    const options = { idempotencyKey: `stream ${name}` };
    const spent = await spentOn(async () => {
      for (const _ of ["first", "replay"]) {
        const events = await caller.stream("/chat/completions", chat, options);
        expect(saidByChunks(chunksOf(events))).toEqual(expected);
      }
    });
    expect(spent).toBe(costUsdMicros);
  });

  test("chat: JSON, and its replay", async () => {
    const options = { idempotencyKey: `json ${name}` };
    for (const _ of ["first", "replay"]) {
      const { json, status } = await caller.post("/chat/completions", chatJson, options);
      expect(status).toBe(200);
      expect(saidByCompletion(json)).toEqual(expected);
    }
  });

  if (form.upstream === "chat") return;
  const asked = { model: "scripted", input: name };
  const responseUsage = { input_tokens: 1000, output_tokens: 10, total_tokens: 1010 };
  const answered = { ...form.says, usage: expect.objectContaining(responseUsage) };

  test("responses: a stream, and its replays", async () => {
    const options = { idempotencyKey: `responses stream ${name}` };
    for (const _ of ["first", "replay"]) {
      const events = await caller.stream("/responses", asked, options);
      expect(saidByEvents(chunksOf(events))).toEqual(answered);
    }
  });

  test("responses: JSON, and its replay", async () => {
    const options = { idempotencyKey: `responses json ${name}` };
    for (const _ of ["first", "replay"]) {
      const { json } = await caller.post("/responses", asked, options);
      expect(saidByResponse(json)).toEqual(answered);
    }
  });
});

test("a chat stream that never says why it ended is an error, and not [DONE]", async () => {
  const unsaid: AnswerForm = {
    name: "no reason at all",
    upstream: "chat",
    events: [begun, chunk({ content: "one " }, ""), chunk({ content: "two" }, ""), used],
    json: {},
    says: { text: "", calls: [], finish: "stop" },
  };
  for (const isUndone of [false, true]) {
    const [form] = [{ ...unsaid, isUndone }];
    unsaidForms.splice(0, 1, form);
    const body = { model: "legacy", messages: [{ role: "user", content: form.name }] };
    const events = await caller.stream("/chat/completions", body);
    const chunks = events.slice(0, -1).map(({ json }) => json.choices[0]);
    expect(chunks.map(({ delta }) => delta.content).join("")).toBe("one two");
    expect(chunks.every((choice) => choice.finish_reason === null)).toBe(true);
    expect(events.at(-1)?.json.error).toMatchObject({ code: "model_request_failed" });
  }
});

test("a compaction's calls have arguments that are text, and it holds no null items", async () => {
  const call = { type: "function_call", id: "fc_1", call_id: "call_1", name: "look" };
  const output = [null, { ...call, arguments: { city: "Paris" } }];
  compacted.output = output;
  const { json } = await caller.post("/responses/compact", { model: "scripted", input: "compact" });
  expect(json.output).toEqual([{ ...call, arguments: '{"city":"Paris"}' }]);
});
