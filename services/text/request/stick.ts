// Names the conversation of a request, so that its turns go to one upstream and find their cache there.

import { nameByBeginning } from "#common/words/conversation.ts";
import type { JsonObject } from "#kit/base/json.ts";

/**
 * The name of a conversation among those of its account and model. That is its `prompt_cache_key`, or else the edge's name for it
 * (`conversation`). Without both its beginning names it.
 */
export function stickOf(accountId: string, asked: JsonObject, conversation?: string): string {
  const key = asked.prompt_cache_key;
  const isNamed = typeof key === "string" && key !== "";
  const name = isNamed ? ["key", key] : ["edge", conversation || nameByBeginning(asked)];
  return JSON.stringify([accountId, asked.model, ...name]);
}
