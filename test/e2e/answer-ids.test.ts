import { afterAll, describe, expect, test } from "vitest";
import type { Asked, Caller } from "./caller.ts";
import type { SseEvent } from "./sse.ts";
import { ownWorldOnly, startWorld } from "./world.ts";

const world = await startWorld();
afterAll(() => world[Symbol.asyncDispose]());
// The scripted upstream gives all its answers the same id, like some real servers.
ownWorldOnly();

const chatBody = { messages: [{ role: "user", content: "Hi" }] };
const forms = [
  ["/responses", { model: "scripted", input: "Hi" }, "resp_"],
  ["/responses", { model: "peer", input: "Hi" }, "resp_"],
  ["/chat/completions", { model: "scripted", ...chatBody }, "chatcmpl-"],
  ["/chat/completions", { model: "legacy", ...chatBody }, "chatcmpl-"],
  ["/chat/completions", { model: "peer", ...chatBody }, "chatcmpl-"],
] as const;
const compactForm = ["/responses/compact", { model: "scripted", input: "Hi" }, "resp_"] as const;

/** Every id of the answer in the events of a stream. */
function idsOf(events: readonly SseEvent[]): string[] {
  const shown = events.filter(({ json }) => json).map(({ json }) => json);
  return [...new Set(shown.flatMap(({ id, response }) => id ?? response?.id ?? []))];
}

/** The two requests are charged different amounts, so that a mix-up shows. */
async function withTokens<T>(tokens: number, ask: () => Promise<T>): Promise<T> {
  const usage = { input_tokens: 10, output_tokens: tokens, total_tokens: 10 + tokens };
  world.upstream.script({ kind: "ok", usage });
  return ask();
}

async function costOf(caller: Caller, id: string): Promise<number> {
  const { status, json, text } = await caller.get(`/generation?id=${id}`);
  if (status !== 200) throw new Error(text);
  expect(json.data.id).toBe(id);
  return json.data.costUsdMicros;
}

describe("two answers to which upstream gives one id", () => {
  test.for([...forms, compactForm])("JSON: %s of %j", async ([path, body, prefix]) => {
    const caller = await world.caller();
    const ids = [];
    for (const tokens of [1, 2]) {
      const { status, json } = await withTokens(tokens, () => caller.post(path, body));
      expect(status).toBe(200);
      ids.push(json.id);
    }
    const [first = "", second = ""] = ids;
    expect(first.startsWith(prefix) && second.startsWith(prefix)).toBe(true);
    expect(second).not.toBe(first);
    await caller.settled();
    expect([await costOf(caller, first), await costOf(caller, second)]).toEqual([14, 18]);
  });

  test.for(forms)("events: %s of %j", async ([path, body, prefix]) => {
    const caller = await world.caller();
    const ids = [];
    for (const tokens of [1, 2]) {
      const events = await withTokens(tokens, () => caller.stream(path, body));
      expect(events.at(-1)?.data).toBe("[DONE]");
      ids.push(...idsOf(events));
    }
    const [first = "", second = "", ...more] = ids;
    expect(more).toEqual([]);
    expect(first.startsWith(prefix) && second.startsWith(prefix)).toBe(true);
    expect(second).not.toBe(first);
    await caller.settled();
    expect([await costOf(caller, first), await costOf(caller, second)]).toEqual([14, 18]);
    const { json } = await caller.get("/requests");
    expect(json.data.map(({ id }: { id: string }) => id)).toEqual([second, first]);
  });
});

test.for(forms)("a repeat has the id of the first answer: %s of %j", async ([path, body]) => {
  const caller = await world.caller();
  world.upstream.script({ kind: "ok" });
  const key = { idempotencyKey: "once" };
  const [id, ...others] = idsOf(await caller.stream(path, body, key));
  expect(others).toEqual([]);
  const again = await caller.post(path, body, key);
  expect(again.headers.get("idempotency-replayed")).toBe("true");
  expect(again.json.id).toBe(id);
  expect(idsOf(await caller.stream(path, body, key))).toEqual([id]);
});

test("so does the refusal to repeat a compaction that is too large to keep", async () => {
  const caller = await world.caller();
  const [path, body] = compactForm;
  world.upstream.script({ kind: "ok", encrypted: "x".repeat(9 * 1024 * 1024) });
  const first = await caller.post(path, body, { idempotencyKey: "once" });
  expect(first.status).toBe(200);
  const again = await caller.post(path, body, { idempotencyKey: "once" });
  expect(again.status).toBe(422);
  expect(again.json.error).toMatchObject({
    ...{ code: "idempotency_answer_not_kept", requestId: first.json.id },
    costUsdMicros: await costOf(caller, first.json.id),
  });
});

test("what upstream wants back keeps its name: items, calls", async () => {
  const caller = await world.caller();
  const call = { name: "look", arguments: "{}" };
  world.upstream.script({ kind: "ok", call });
  const named = ({ json }: Asked) =>
    json.output?.map((item: { id: string; call_id: string }) => [item.id, item.call_id]) ??
    json.choices[0].message.tool_calls.map(({ id }: { id: string }) => id);
  const response = await caller.post("/responses", { model: "scripted", input: "Hi" });
  expect(named(response)).toEqual([["fc_up_1", "call_up_1"]]);
  for (const model of ["scripted", "legacy"]) {
    expect(named(await caller.post("/chat/completions", { model, ...chatBody }))).toEqual([
      "call_up_1",
    ]);
  }
});
