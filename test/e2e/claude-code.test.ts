import { afterAll, describe, expect, test } from "vitest";
import type { SseEvent } from "./sse.ts";
import { ownWorldOnly, startWorld } from "./world.ts";

// Requests in the shape of Claude Code 2.1.332, as it sent them to a server on the loopback.

ownWorldOnly();
const world = await startWorld();
afterAll(() => world[Symbol.asyncDispose]());

const headers = {
  "anthropic-version": "2023-06-01",
  "anthropic-beta":
    "claude-code-20250219,interleaved-thinking-2025-05-14,context-management-2025-06-27,effort-2025-11-24,advanced-tool-use-2025-11-20",
  "anthropic-dangerous-direct-browser-access": "true",
  "user-agent": "claude-cli/2.1.332 (external, sdk-cli)",
  "x-app": "cli",
  "x-claude-code-session-id": "b535854a-a785-47c3-a512-87269cf2f972",
};
const cached = { cache_control: { type: "ephemeral" } };
const text = (said: string, more: object = {}) => ({ type: "text", text: said, ...more });
const first = {
  role: "user",
  content: [text("<system-reminder>A</system-reminder>"), text("Read a.txt")],
};
const later = { role: "system", content: [text("The date is today.", cached)] };
const names = ["Bash", "Edit", "Glob", "Grep", "Read", "Write"];

const bodyOf = (model: string, messages: object[]) => ({
  model,
  messages,
  system: [
    text("x-anthropic-billing-header: cc_version=2.1.332; cc_entrypoint=sdk-cli;"),
    text("You are a Claude agent, built on Anthropic's Claude Agent SDK.", cached),
    text("You are an interactive agent.", cached),
  ],
  tools: names.map((name, at) => ({
    ...{ name, description: `Runs ${name}.`, ...(at > 3 ? { defer_loading: true } : {}) },
    input_schema: { type: "object", properties: { path: { type: "string" } } },
  })),
  metadata: { user_id: JSON.stringify({ device_id: "d", account_uuid: "", session_id: "s" }) },
  max_tokens: 32_000,
  thinking: { type: "adaptive", display: "omitted" },
  context_management: { edits: [{ type: "clear_thinking_20251015", keep: "all" }] },
  output_config: { effort: "high" },
});

const path = "/messages?beta=true";

/** The message that a stream's events add up to, in short. */
function contentOf(events: readonly SseEvent[]): object[] {
  const blocks: { json: string; [name: string]: unknown }[] = [];
  for (const { json } of events) {
    if (json.type === "content_block_start") blocks.push({ ...json.content_block, json: "" });
    const last = blocks.at(-1);
    if (json.type !== "content_block_delta" || !last) continue;
    for (const name of ["text", "thinking", "signature"]) {
      if (json.delta[name] !== undefined) last[name] = `${last[name]}${json.delta[name]}`;
    }
    last.json += json.delta.partial_json ?? "";
  }
  return blocks.map(({ json, ...block }) =>
    block.type === "tool_use" ? { ...block, input: JSON.parse(json) } : block,
  );
}

describe.for(["scripted", "legacy"])("a session at the model %s", (model) => {
  test("calls a tool, goes on, and changes its model", async () => {
    const caller = await world.caller();
    const call = { name: "Read", arguments: '{"path":"a.txt"}' };
    const seen = world.play({ kind: "ok", call, encrypted: "sealed-state" });
    const begun = [first, later];
    const turn = await caller.stream(path, bodyOf(model, begun), { headers });
    expect(turn.at(-2)?.json.delta.stop_reason).toBe("tool_use");
    const content = contentOf(turn);
    const asked = content.at(-1) as { id: string };
    expect(asked).toMatchObject({ type: "tool_use", name: "Read", input: { path: "a.txt" } });
    world.play({ kind: "ok" });
    const result = { type: "tool_result", tool_use_id: asked.id, content: "hello", ...cached };
    const history = [...begun, { role: "assistant", content }, { role: "user", content: [result] }];
    const end = await caller.stream(path, bodyOf(model, history), { headers });
    expect(contentOf(end)).toEqual([text("Hello from upstream.", { citations: null })]);
    expect(end.at(-2)?.json.delta.stop_reason).toBe("end_turn");
    const sent = JSON.stringify(seen[0]?.body);
    for (const word of [
      "x-anthropic-billing",
      "cache_control",
      "defer_loading",
      "clear_thinking",
    ]) {
      expect(sent).not.toContain(word);
    }
    expect(sent).toContain("The date is today.");
    const again = world.upstream.requests.at(-1)?.body;
    const isSealed = JSON.stringify(again).includes("sealed-state");
    expect(isSealed).toBe(model === "scripted");
    const other = await caller.stream(path, bodyOf("backed", history), { headers });
    expect(other.at(-2)?.json.delta.stop_reason).toBe("end_turn");
    const counting = { model, messages: history, tools: bodyOf(model, []).tools };
    const counted = await Promise.all(
      Array.from({ length: 24 }, () => caller.post("/messages/count_tokens?beta=true", counting)),
    );
    expect(counted.map(({ status }) => status)).toEqual(Array(24).fill(200));
    expect((await caller.settled()).monthSpend).toBe(90);
  });
});

test("what Claude Code asks besides is answered in a way that it goes on with", async () => {
  const caller = await world.caller();
  const { status, json } = await caller.get("/models?limit=1000", headers);
  expect([status, json.has_more]).toEqual([200, false]);
  const probe = await fetch(`${caller.baseUrl.replace(/\/v1$/, "")}/api/hello`, { method: "HEAD" });
  expect(probe.status).toBe(404);
  const unknown = await caller.post(path, bodyOf("claude-none", [first]), { headers });
  expect([unknown.status, unknown.json.error.type]).toEqual([404, "not_found_error"]);
});
