import type { JsonObject } from "#kit/json.ts";
import { type Upstream, UpstreamProtocol } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { toCompletion } from "./chat/completion.ts";
import { ChatFromResponses } from "./chat/from-responses.ts";
import { NativeChat } from "./chat/native.ts";
import { readCompletion } from "./chat/native-json.ts";
import { toResponsesRequest } from "./chat/request.ts";
import type { RequestFacts } from "./facts.ts";
import { withOutputLimit } from "./output-limit.ts";
import type { UpstreamRequest } from "./port.ts";
import { type ReadAnswer, readCompaction, readResponse } from "./responses/json-answer.ts";
import { ResponsesReader } from "./responses/reader.ts";
import type { StreamReader } from "./stream-reader.ts";

/** How one request is put to an upstream over HTTP, and how its answer is read. */
export interface Plan {
  /** Below the upstream's base URL. */
  path: string;
  body: JsonObject;
  /** Reads a JSON answer. Throws `UpstreamFailure`. */
  readJson: (found: JsonObject) => ReadAnswer;
  /** Reads a stream. */
  reader: () => StreamReader;
}

/** Does an upstream of this protocol speak Chat Completions itself? Others are asked in the Responses format. */
export function isNativeChat(protocol: UpstreamProtocol): boolean {
  return protocol === UpstreamProtocol.CHAT_COMPLETIONS || protocol === UpstreamProtocol.GENMESH;
}

/** The plan for a request at an upstream; undefined where its protocol lacks the operation. */
export function planFor(
  upstream: Pick<Upstream, "protocol" | "outputLimit">,
  request: UpstreamRequest,
  facts: RequestFacts,
): Plan | undefined {
  const plan = protocolPlan(upstream.protocol, request, facts);
  if (!plan) return undefined;
  const api = plan.path === "/chat/completions" ? "chat" : "responses";
  return {
    ...plan,
    body: withOutputLimit(plan.body, request.maxOutputTokens, api, upstream.outputLimit),
  };
}

function protocolPlan(
  protocol: UpstreamProtocol,
  request: UpstreamRequest,
  facts: RequestFacts,
): Plan | undefined {
  if (request.operation === "chat") {
    return isNativeChat(protocol) ? nativeChat(request, facts) : translatedChat(request, facts);
  }
  if (protocol === UpstreamProtocol.CHAT_COMPLETIONS) return undefined;
  return request.operation === "compact" ? compact(request, facts) : responses(request, facts);
}

function responses(request: UpstreamRequest, facts: RequestFacts): Plan {
  const { upstreamModel: model, stream } = request;
  return {
    path: "/responses",
    body: { ...request.body, model, stream },
    readJson: (found) => readResponse(found, facts.response),
    reader: () => new ResponsesReader(facts.response),
  };
}

function compact(request: UpstreamRequest, facts: RequestFacts): Plan {
  const { stream: _, ...body } = request.body;
  return {
    path: "/responses/compact",
    body: { ...body, model: request.upstreamModel },
    readJson: (found) => readCompaction(found, facts.response),
    reader: () => new ResponsesReader(facts.response),
  };
}

function nativeChat(request: UpstreamRequest, facts: RequestFacts): Plan {
  const { upstreamModel: model, stream } = request;
  const { stream_options: options, ...body } = request.body;
  // Always asked for: it is what the request is charged by.
  const asked = { ...(options as JsonObject | null | undefined), include_usage: true };
  return {
    path: "/chat/completions",
    body: { ...body, model, stream, ...(stream ? { stream_options: asked } : {}) },
    readJson: (found) => readCompletion(found, facts.chat),
    reader: () => new NativeChat(facts.chat),
  };
}

function translatedChat(request: UpstreamRequest, facts: RequestFacts): Plan {
  const { upstreamModel: model, stream } = request;
  return {
    path: "/responses",
    body: { ...toResponsesRequest(request.body, request.passParameters), model, stream },
    readJson: (found) =>
      toCompletion(readResponse(found, facts.response), facts.chat.id, facts.chat.stops),
    reader: () => new ChatFromResponses(facts.chat),
  };
}
