// Plans how a request is sent to an upstream that speaks Messages: translated, or as it came. `../plans.ts` plans it for all
// others.

import { createHash } from "node:crypto";
import { type Awaitable, after } from "#kit/base/awaitable.ts";
import { inTurns } from "#kit/base/in-turns.ts";
import { isJsonObject, type JsonObject } from "#kit/base/json.ts";
import { AutoCache, type Upstream } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { apiVersion, betasOf } from "../../anthropic/betas.ts";
import type { RequestFacts } from "../answer-defaults.ts";
import { toResponsesRequest } from "../chat/request.ts";
import type { Plan } from "../plans.ts";
import type { UpstreamRequest } from "../port.ts";
import { NativeMessages } from "./native.ts";
import { readMessage } from "./native-json.ts";
import { nativeBody } from "./native-request.ts";
import { toMessages } from "./request.ts";
import { messagesTranslation } from "./translation.ts";
import { seenTypes } from "./visible.ts";

/** How a plan's answers are read, as they are after their translation. */
type ReadAsResponses = Pick<Plan, "readJson" | "reader">;

/** The plan for a request in another protocol at an upstream that speaks Messages. */
export function messagesPlan(
  upstream: Pick<Upstream, "betas" | "autoCache">,
  request: UpstreamRequest,
  facts: RequestFacts,
  read: ReadAsResponses,
): Awaitable<Plan> {
  const { operation, passParameters, upstreamModel: model, stream, dropsBlocks = true } = request;
  const isChat = operation === "chat";
  const asked = isChat ? toResponsesRequest(request.body, passParameters) : request.body;
  const options = { betas: upstream.betas, passParameters, dropsBlocks };
  return after(inTurns(toMessages(asked, options)), ({ body: made, sent, leftOut, tools }) => {
    // Those of blanks alone are refused there. All of them are looked for here, too.
    const stops = (facts.chat.stops ?? []).filter((one) => one.trim() !== "");
    const body: JsonObject = {
      model,
      max_tokens: request.maxOutputTokens ?? request.outputBound.tokens,
      ...made,
      ...(stops.length > 0 && { stop_sequences: stops }),
      ...cacheOf(upstream.autoCache, asked),
      metadata: { user_id: userIdOf(request.accountId) },
      stream,
    };
    return {
      path: "/messages",
      body,
      headers: headersOf(body, upstream.betas),
      translation: messagesTranslation(tools),
      sent,
      leftOut,
      ...read,
    };
  });
}

/** The plan for a request of Messages at an upstream that speaks them: it passes as it came. */
export function nativeMessages(
  upstream: Pick<Upstream, "betas" | "blockTypes">,
  request: UpstreamRequest,
  facts: RequestFacts,
): Plan {
  const { passParameters, upstreamModel: model, stream, dropsBlocks = true } = request;
  const { betas, blockTypes } = upstream;
  const made = nativeBody(request.body, { betas, passParameters, dropsBlocks });
  const head = facts.message();
  const types = seenTypes(blockTypes, made.tools);
  return {
    path: "/messages",
    body: {
      model,
      max_tokens: request.maxOutputTokens ?? request.outputBound.tokens,
      ...made,
      metadata: { user_id: userIdOf(request.accountId) },
      stream,
    },
    headers: headersOf(made, betas, request.betas),
    sent: { model, ...made },
    readJson: (found) => readMessage(found, head, types),
    reader: () => new NativeMessages(head, types),
  };
}

/** The version, and the betas that a body is sent with. `asked`: those that the caller names. */
export function headersOf(
  body: JsonObject,
  allowed: readonly string[],
  asked?: readonly string[],
): Record<string, string> {
  const betas = betasOf(body, allowed, asked);
  return {
    "anthropic-version": apiVersion,
    ...(betas.length > 0 && { "anthropic-beta": betas.join(",") }),
  };
}

/** Where the next request may begin in the same way, the upstream caches this one. Anthropic caches only what it is asked to. */
function cacheOf(autoCache: AutoCache, asked: JsonObject): JsonObject {
  if (autoCache === AutoCache.UNSPECIFIED) return {};
  const hasTools = Array.isArray(asked.tools) && asked.tools.length > 0;
  const isBegun = Array.isArray(asked.input) && asked.input.some(isOfModel);
  if (!hasTools && !isBegun && !asked.prompt_cache_key) return {};
  const isLong = autoCache === AutoCache.LONG;
  return { cache_control: { type: "ephemeral", ...(isLong && { ttl: "1h" }) } };
}

function isOfModel(item: unknown): boolean {
  return isJsonObject(item) && (item.role === "assistant" || `${item.type}`.endsWith("_call"));
}

/** The account under a name that tells nothing of it. By it Anthropic finds who broke its rules. */
function userIdOf(accountId: string): string {
  return createHash("sha256").update(accountId).digest("hex");
}
