// Puts what the model thought into the form of a Responses object. `chat-content.ts` thinks it in a thread.

import type { JsonObject } from "#kit/base/json.ts";
import type { Memory, Thought } from "./chat-content.ts";
import { seal } from "./seal.ts";

type NewId = (prefix: string) => string;

/** A Responses object (status, output, usage and the other fields) with an answer. */
export function answerOf(body: JsonObject, thought: Thought, newId: NewId): JsonObject {
  const status = thought.isCut ? "incomplete" : "completed";
  return {
    status,
    incomplete_details: thought.isCut ? { reason: "max_output_tokens" } : null,
    output: [...reasoningFor(body, thought, newId), itemOf(thought, status, newId)],
    usage: usageOf(thought),
  };
}

/** A compaction: one sealed note with the topics of the conversation. */
export function compactionOf({ topics, turns, ...tokens }: Memory, newId: NewId): JsonObject {
  const state = seal({ topics, turns });
  return {
    output: [{ type: "compaction", id: newId("cmp"), encrypted_content: state }],
    usage: usageOf(tokens),
  };
}

function itemOf({ call, said }: Thought, status: string, newId: NewId): JsonObject {
  if (call !== undefined) {
    const named = { name: call, arguments: said, call_id: newId("call") };
    return { type: "function_call", id: newId("fc"), status, ...named };
  }
  const content = [{ type: "output_text", text: said, annotations: [], logprobs: [] }];
  return { type: "message", id: newId("msg"), status, role: "assistant", content };
}

/** Sealed reasoning where the caller asks for it, so that it can try sending it back. It costs 0 tokens. */
function reasoningFor(body: JsonObject, { turns }: Thought, newId: NewId): JsonObject[] {
  const wanted = Array.isArray(body.include) ? body.include : [];
  if (!wanted.includes("reasoning.encrypted_content")) return [];
  const state = seal({ turn: turns });
  return [{ type: "reasoning", id: newId("rs"), summary: [], encrypted_content: state }];
}

function usageOf({
  inputTokens,
  outputTokens,
}: Pick<Thought, "inputTokens" | "outputTokens">): JsonObject {
  return {
    input_tokens: inputTokens,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: outputTokens,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: inputTokens + outputTokens,
  };
}
