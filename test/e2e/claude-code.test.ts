import { afterAll, beforeEach, describe, expect, test } from "vitest";
import {
  claudeCodeBegin,
  claudeCodeBody,
  claudeCodeCount,
  claudeCodeCountPath,
  claudeCodeCounts,
  claudeCodeGoOn,
  claudeCodeHeaders,
  claudeCodePath,
} from "../support/sessions/claude-code.ts";
import { startAnthropic } from "../support/upstreams/anthropic.ts";
import type { Caller } from "./caller.ts";
import { chat } from "./catalog.ts";
import { claudeKey, withClaude } from "./claude-world.ts";
import type { SseEvent } from "./sse.ts";
import { ownWorldOnly, startWorld } from "./world.ts";

// A session of Claude Code at each kind of upstream. Each event is compared with that of Anthropic's API: its name, place and fields.

ownWorldOnly();
const double = await startAnthropic({ key: claudeKey });
const world = await startWorld(
  withClaude(double, [chat("claude", { upstream: "claude", upstreamModel: "up-model" })]),
);
afterAll(async () => {
  await world[Symbol.asyncDispose]();
  await double[Symbol.asyncDispose]();
});
beforeEach(() => {
  world.play();
  double.usual = { content: [{ type: "text", text: "Hello from upstream.", citations: null }] };
});

const headers = claudeCodeHeaders;
const turn = (caller: Caller, model: string, messages: readonly unknown[]) =>
  caller.stream(claudeCodePath, claudeCodeBody(model, messages), { headers });

const count = expect.any(Number);
/** A whole usage of Anthropic's API. Only upstreams that speak Messages name a service tier. */
const usage = {
  ...{ input_tokens: count, output_tokens: count },
  ...{ cache_creation_input_tokens: count, cache_read_input_tokens: count },
  cache_creation: { ephemeral_5m_input_tokens: count, ephemeral_1h_input_tokens: count },
  output_tokens_details: { thinking_tokens: count },
  ...{ server_tool_use: null, service_tier: expect.toBeOneOf(["standard", null]) },
};

/** A block of an answer: how it begins, and the deltas of each type in turn, put together. */
interface Block {
  begin: object;
  deltas: object[];
}

/** The events of a message as Anthropic's API sends them. Deltas of one type in a row are one here. */
const eventsOf = (model: string, blocks: readonly Block[], stop_reason: string) => [
  {
    type: "message_start",
    message: {
      ...{ id: expect.stringMatching(/^msg_/), type: "message", role: "assistant", model },
      ...{ content: [], stop_reason: null, stop_sequence: null, stop_details: null, usage },
    },
  },
  ...blocks.flatMap(({ begin, deltas }, index) => [
    { type: "content_block_start", index, content_block: begin },
    ...deltas.map((delta) => ({ type: "content_block_delta", index, delta })),
    { type: "content_block_stop", index },
  ]),
  {
    type: "message_delta",
    delta: { stop_reason, stop_sequence: null, stop_details: null },
    usage: { ...usage, cost: count, costUsdMicros: count },
  },
  { type: "message_stop" },
];

/** Events without pings, deltas of one type put together. Each name must be that of its event. */
function joined(events: readonly SseEvent[]): unknown[] {
  // biome-ignore lint/suspicious/noExplicitAny: events of every shape.
  const all: any[] = [];
  for (const { name, json } of events) {
    expect(name).toBe(json.type);
    if (name === "ping") {
      expect(json).toEqual({ type: "ping" });
      continue;
    }
    const last = all.at(-1);
    const isMore = name === "content_block_delta" && last?.delta?.type === json.delta.type;
    if (!isMore) all.push(structuredClone(json));
    else
      for (const [field, piece] of Object.entries(json.delta)) {
        if (field !== "type") last.delta[field] += piece;
      }
  }
  return all;
}
const input = { file_path: "project/a.txt" };
const signature = expect.stringMatching(/^.+$/);
const thought: Block = {
  begin: { type: "thinking", thinking: "", signature: "" },
  deltas: [{ type: "signature_delta", signature }],
};
const asks: Block = {
  begin: { type: "tool_use", id: expect.stringMatching(/^\w+$/), name: "Read", input: {} },
  deltas: [{ type: "input_json_delta", partial_json: JSON.stringify(input) }],
};
const says = (text: unknown): Block => ({
  begin: { type: "text", text: "", citations: null },
  deltas: [{ type: "text_delta", text }],
});

/** The content that Claude Code keeps of an answer, and sends back. */
function contentOf(events: readonly unknown[]): { type: string; id?: string }[] {
  // biome-ignore lint/suspicious/noExplicitAny: events of every shape.
  const all = events as any[];
  return all
    .filter(({ type }) => type === "content_block_start")
    .map(({ index, content_block }) => {
      const deltas = all.filter((one) => one.delta && one.index === index);
      const {
        type: _,
        partial_json,
        ...fields
      } = Object.assign({}, ...deltas.map((one) => one.delta));
      return {
        ...content_block,
        ...fields,
        ...(partial_json && { input: JSON.parse(partial_json) }),
      };
    });
}

/** Has the upstream of each model call the tool, and then answer. Both say the same by their own protocol. */
function script(): void {
  const call = { name: "Read", arguments: JSON.stringify(input) };
  let asked = 0;
  world.play(() =>
    asked++ === 0 ? { kind: "ok", call, encrypted: "sealed-state" } : { kind: "ok" },
  );
  const use = { type: "tool_use", id: "toolu_1", name: "Read", input };
  double.answers.splice(0, double.answers.length, {
    content: [{ type: "thinking", thinking: "", signature: "c2ln" }, use],
  });
}

describe.for([
  { model: "scripted", protocol: "Responses", state: "sealed-state" },
  { model: "claude", protocol: "Messages", state: "c2ln" },
  // Chat Completions has no state of the model, so thinking without text is left out.
  { model: "legacy", protocol: "Chat Completions", state: undefined },
])("a session at an upstream of $protocol", ({ model, state }) => {
  test("calls a tool, goes on, counts, and changes its model", async () => {
    const caller = await world.caller();
    script();
    const sent = model === "claude" ? () => double.seen("messages") : () => world.upstream.requests;
    const before = sent().length;
    const first = await turn(caller, model, claudeCodeBegin);
    const blocks = state === undefined ? [asks] : [thought, asks];
    expect(joined(first)).toEqual(eventsOf(model, blocks, "tool_use"));
    const history = claudeCodeGoOn(contentOf(joined(first)));
    const second = await turn(caller, model, history);
    const answer = eventsOf(model, [says("Hello from upstream.")], "end_turn");
    expect(joined(second)).toEqual(answer);
    const [began, again] = sent()
      .slice(before)
      .map(({ raw }) => raw.toString());
    expect(again?.includes(state ?? "reasoning_content")).toBe(state !== undefined);
    for (const body of [began, again]) {
      expect(body).toContain("Primary working directory");
      expect(body).not.toContain("device_id");
    }
    // Two answers of 10 tokens in and 5 out.
    const monthSpend = 60;
    expect(await caller.settled()).toMatchObject({ monthSpend });
    const counting = claudeCodeCount(model, history);
    const counted = await Promise.all(
      Array.from({ length: claudeCodeCounts }, () =>
        caller.post(claudeCodeCountPath, counting, { headers }),
      ),
    );
    const [one] = counted;
    expect(one?.json).toEqual({ input_tokens: count });
    expect(new Set(counted.map(({ text }) => text))).toEqual(new Set([one?.text]));
    expect(await caller.settled()).toMatchObject({ monthSpend, reserved: 0 });
    world.play();
    const changed = await turn(caller, "backed", history);
    const told = eventsOf("backed", [says("Hello from upstream.")], "end_turn");
    expect(joined(changed)).toEqual(told);
    // The thinking of another model is left out, and the call with its result stays.
    const last = world.upstream.requests.at(-1)?.raw.toString();
    expect(last).toContain("the lamp is green");
    expect(last?.includes("c2ln")).toBe(false);
  });
});

test("a session at the built-in model", async () => {
  const caller = await world.caller();
  const events = joined(await turn(caller, "chat-1", claudeCodeBegin));
  const text = expect.stringMatching(/\w/);
  expect(events).toEqual(eventsOf("chat-1", [thought, says(text)], "end_turn"));
});

test("an upstream that speaks Messages gets each field with its beta, and the caller's betas that it may be asked for", async () => {
  const caller = await world.caller();
  await turn(caller, "claude", claudeCodeBegin);
  const { body, headers: told } = double.seen("messages").at(-1) ?? expect.unreachable();
  const { tools, messages, thinking, context_management, output_config, system } = claudeCodeBody(
    "claude",
    claudeCodeBegin,
  );
  expect(body).toMatchObject({ tools, messages, thinking, context_management, output_config });
  // The developer prompt stands behind the attribution, which api.anthropic.com reads in first place alone.
  expect([body.system[0], ...body.system.slice(2)]).toEqual(system);
  expect(`${told["anthropic-beta"]}`.split(",").sort()).toEqual([
    "advanced-tool-use-2025-11-20",
    "claude-code-20250219",
    "context-management-2025-06-27",
    "effort-2025-11-24",
    "interleaved-thinking-2025-05-14",
    "mid-conversation-tool-changes-2026-07-01",
    "thinking-token-count-2026-05-13",
  ]);
});

test("what Claude Code asks besides is answered in a way that it goes on with", async () => {
  const caller = await world.caller();
  const { status, json } = await caller.get("/models?limit=1000", headers);
  expect([status, json.has_more]).toEqual([200, false]);
  const probe = await fetch(`${caller.baseUrl.replace(/\/v1$/, "")}/api/hello`, { method: "HEAD" });
  expect(probe.status).toBe(404);
  const asked = claudeCodeBody("claude-none", claudeCodeBegin);
  const unknown = await caller.post(claudeCodePath, asked, { headers });
  expect([unknown.status, unknown.json.error.type]).toEqual([404, "not_found_error"]);
});
