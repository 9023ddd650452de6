import type { JsonObject } from "#kit/json.ts";
import { type Conversation, readConversation } from "./conversation.ts";
import { type Plan, planFor } from "./plan.ts";
import { chooserOf } from "./random.ts";
import { topicOf } from "./reply.ts";
import { seal } from "./seal.ts";
import { loadTokenizer, type Tokenizer } from "./tokens.ts";

/** Tokens that frame an item, as chat models have them. */
const tokensPerItem = 3;
/** Topics that one compaction remembers, the latest. */
const maxTopics = 8;

type NewId = (prefix: string) => string;

/** A Responses object (status, output, usage and what goes with them) for a request in that format. */
export async function answerTo(body: JsonObject, newId: NewId): Promise<JsonObject> {
  const tokenizer = await loadTokenizer();
  const talk = readConversation(body);
  const plan = planFor(body, talk, chooserOf(talk.text));
  const spoken = plan.kind === "say" ? plan.text : plan.arguments;
  const most = outputLimitOf(body);
  const said = Number.isFinite(most) ? tokenizer.cut(spoken, most) : spoken;
  const isCut = said !== spoken;
  const items = itemsOf(plan, said, isCut ? "incomplete" : "completed", newId);
  return {
    id: newId("resp"),
    status: isCut ? "incomplete" : "completed",
    incomplete_details: isCut ? { reason: "max_output_tokens" } : null,
    output: [...reasoningFor(body, talk, newId), ...items],
    usage: await usageOf(talk, await tokenizer.count(said), tokenizer),
  };
}

/** A compaction: one sealed note on what the conversation was about. */
export async function compactionOf(body: JsonObject, newId: NewId): Promise<JsonObject> {
  const tokenizer = await loadTokenizer();
  const talk = readConversation(body);
  const topics = [...talk.recalled, ...talk.said.slice(-maxTopics).map(topicOf)].slice(-maxTopics);
  const most = outputLimitOf(body);
  while (topics.length > 0 && (await tokenizer.count(topics.join("\n"))) > most) topics.shift();
  const turns = talk.recalledTurns + talk.said.length;
  const state = seal({ topics, turns });
  return {
    id: newId("resp"),
    output: [{ type: "compaction", id: newId("cmp"), encrypted_content: state }],
    usage: await usageOf(talk, await tokenizer.count(topics.join("\n")), tokenizer),
  };
}

function outputLimitOf({ max_output_tokens: most }: JsonObject): number {
  return typeof most === "number" ? most : Number.POSITIVE_INFINITY;
}

function itemsOf(plan: Plan, said: string, status: string, newId: NewId): JsonObject[] {
  if (plan.kind === "call") {
    const call = { name: plan.name, arguments: said, call_id: newId("call") };
    return [{ type: "function_call", id: newId("fc"), status, ...call }];
  }
  const content = [{ type: "output_text", text: said, annotations: [], logprobs: [] }];
  return [{ type: "message", id: newId("msg"), status, role: "assistant", content }];
}

/** Sealed reasoning where the caller asks for it, so that carrying it back can be tried out. It is not thought: 0 tokens. */
function reasoningFor(body: JsonObject, talk: Conversation, newId: NewId): JsonObject[] {
  const wanted = Array.isArray(body.include) ? body.include : [];
  if (!wanted.includes("reasoning.encrypted_content")) return [];
  const state = seal({ turn: talk.said.length + talk.recalledTurns });
  return [{ type: "reasoning", id: newId("rs"), summary: [], encrypted_content: state }];
}

async function usageOf(
  talk: Conversation,
  outputTokens: number,
  tokenizer: Tokenizer,
): Promise<JsonObject> {
  const framing = talk.items * tokensPerItem;
  const inputTokens = (await tokenizer.count(talk.text)) + talk.imageTokens + framing;
  return {
    input_tokens: inputTokens,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: outputTokens,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: inputTokens + outputTokens,
  };
}
