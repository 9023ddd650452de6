// Finds the content of an answer, or of a compaction. `worker.ts` calls it in a thread.

import type { JsonObject } from "#kit/base/json.ts";
import { createRandom } from "../seed.ts";
import { readConversation } from "./conversation.ts";
import { planFor } from "./plan.ts";
import { topicOf } from "./reply.ts";
import { count, cut } from "./tokens.ts";

/** The content of a builtin answer, without the fields that make it an object of the API. */
export interface Thought {
  /** The function that is called. Undefined: the answer is text. */
  call: string | undefined;
  /** The text, or the call's arguments. */
  said: string;
  /** Was it cut for its length? */
  isCut: boolean;
  /** Turns of the user so far, including those in compactions. */
  turns: number;
  inputTokens: number;
  outputTokens: number;
}

/** The content that a builtin compaction remembers. */
export interface Memory {
  topics: string[];
  turns: number;
  inputTokens: number;
  outputTokens: number;
}

/** Tokens around an item, as chat models have them. */
const tokensPerItem = 3;
const maxTopics = 8;
/** The beginning of a conversation distinguishes it well enough. */
const seedCharacters = 256 * 1024;
/** Characters of an answer: about the most output tokens of a shipped model. A schema's constants can have any length. */
const maxSaidChars = 64 * 1024;

/** Finds the answer to a request in the Responses format. The time depends on the request, so this must not run on an event loop. */
export function think(body: JsonObject): Thought {
  const talk = readConversation(body);
  const plan = planFor(
    body,
    talk,
    createRandom(`text ${talk.text.length} ${talk.text.slice(0, seedCharacters)}`),
  );
  const whole = plan.kind === "say" ? plan.text : plan.arguments;
  const most = outputLimitOf(body);
  const spoken = whole.slice(0, maxSaidChars).toWellFormed();
  const said = Number.isFinite(most) ? cut(spoken, most) : spoken;
  return {
    call: plan.kind === "call" ? plan.name : undefined,
    said,
    isCut: said.length < whole.length,
    turns: talk.said.length + talk.recalledTurns,
    inputTokens: count(talk.text) + talk.imageTokens + talk.items * tokensPerItem,
    outputTokens: count(said),
  };
}

/** Finds the parts of a conversation that are worth remembering. */
export function remember(body: JsonObject): Memory {
  const talk = readConversation(body);
  const topics = [...talk.recalled, ...talk.said.slice(-maxTopics).map(topicOf)].slice(-maxTopics);
  const most = outputLimitOf(body);
  while (topics.length > 0 && count(topics.join("\n")) > most) topics.shift();
  return {
    topics,
    turns: talk.recalledTurns + talk.said.length,
    inputTokens: count(talk.text) + talk.imageTokens + talk.items * tokensPerItem,
    outputTokens: count(topics.join("\n")),
  };
}

function outputLimitOf({ max_output_tokens: most }: JsonObject): number {
  return typeof most === "number" ? most : Number.POSITIVE_INFINITY;
}
