// Decides for each operation and upstream which request is sent, and who reads the answer. The translations themselves are in the
// folders chat, messages, responses and anthropic.

import type { Awaitable } from "#kit/base/awaitable.ts";
import type { JsonObject } from "#kit/base/json.ts";
import type { Upstream } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { isNativeChat, servesText, speaksMessages } from "../protocols.ts";
import type { RequestFacts } from "./answer-defaults.ts";
import { messagesPlan, nativeMessages } from "./anthropic/plan.ts";
import { toCompletion } from "./chat/completion.ts";
import { ChatFromResponses } from "./chat/from-responses.ts";
import { NativeChat } from "./chat/native.ts";
import { readCompletion } from "./chat/native-json.ts";
import { toResponsesRequest } from "./chat/request.ts";
import { inputCount, vectorFormatOf } from "./embeddings.ts";
import { messageOfCompletion, toMessage } from "./messages/answer.ts";
import { chatOfMessages } from "./messages/chat-request.ts";
import { MessagesFromChat } from "./messages/from-chat.ts";
import { MessagesFromResponses } from "./messages/from-responses.ts";
import { responsesOfMessages } from "./messages/request.ts";
import { withOutputLimit } from "./output-limit.ts";
import type { PlainRequest } from "./plain.ts";
import type { UpstreamRequest } from "./port.ts";
import { type ReadAnswer, readCompaction, readResponse } from "./responses/json-answer.ts";
import { ResponsesReader } from "./responses/reader.ts";
import type { StreamReader } from "./stream-reader.ts";
import type { Translation } from "./translation.ts";

/** How one request is sent to an upstream over HTTP, and how its answer is read. */
export interface Plan {
  /** The path below the upstream's base URL. */
  path: string;
  body: JsonObject;
  /** Headers of the protocol. Absent: none. */
  headers?: Readonly<Record<string, string>> | undefined;
  /** How answers of another protocol become those that the rest of the plan reads. Absent: they are those. */
  translation?: Translation;
  /** The properties of the request with an effect, in the Responses format. Absent: those of the body. */
  sent?: JsonObject;
  /** Nested properties without one, by their path. Absent: none. */
  leftOut?: readonly string[];
  /** How to read an answer that is always JSON and nothing else. Absent: {@link readJson} or {@link reader} reads it. */
  plain?: PlainRequest;
  /** Reads a JSON answer. `bare`: see {@link bareText}. Throws `UpstreamFailure`. */
  readJson: (found: JsonObject, bare?: string) => ReadAnswer;
  /** Reads a stream. */
  reader: () => StreamReader;
}

/** The plan for a request at an upstream. Undefined where its protocol lacks the operation. */
export function planFor(
  upstream: Pick<Upstream, "protocol" | "outputLimit" | "betas" | "blockTypes" | "autoCache">,
  request: UpstreamRequest,
  facts: RequestFacts,
): Awaitable<Plan> | undefined {
  if (!servesText(upstream.protocol, request.operation)) return undefined;
  if (speaksMessages(upstream.protocol)) {
    if (request.operation === "messages") return nativeMessages(upstream, request, facts);
    const read = request.operation === "chat" ? chatAnswers(facts) : responseAnswers(facts);
    return messagesPlan(upstream, request, facts, read);
  }
  const plan = formatPlan(upstream, request, facts);
  const api = plan.path === "/chat/completions" ? "chat" : "responses";
  plan.body = withOutputLimit(plan.body, request.maxOutputTokens, api, upstream.outputLimit);
  return plan;
}

function formatPlan(
  { protocol }: Pick<Upstream, "protocol">,
  request: UpstreamRequest,
  facts: RequestFacts,
): Plan {
  if (request.operation === "embeddings") return embeddings(request);
  if (request.operation === "transcriptions") return transcriptions(request);
  if (request.operation === "chat") {
    return isNativeChat(protocol) ? nativeChat(request, facts) : translatedChat(request, facts);
  }
  if (request.operation === "messages") {
    return isNativeChat(protocol)
      ? messagesByChat(request, facts)
      : translatedMessages(request, facts);
  }
  return request.operation === "compact" ? compact(request, facts) : responses(request, facts);
}

function responses(request: UpstreamRequest, facts: RequestFacts): Plan {
  const { upstreamModel: model, stream } = request;
  return {
    path: "/responses",
    body: { ...request.body, model, stream },
    ...responseAnswers(facts),
  };
}

function responseAnswers(facts: RequestFacts): Pick<Plan, "readJson" | "reader"> {
  return {
    readJson: (found, bare) => readResponse(found, facts.response, bare),
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

function embeddings(request: UpstreamRequest): Plan {
  return {
    path: "/embeddings",
    body: { ...request.body, model: request.upstreamModel },
    plain: {
      operation: "embeddings",
      modelId: request.modelId,
      inputs: inputCount(request.body.input),
      format: vectorFormatOf(request.body.encoding_format),
    },
    ...isPlain,
  };
}

function transcriptions(request: UpstreamRequest): Plan {
  const { units = 0, mostUnits = 0 } = request.sound ?? {};
  return {
    path: "/audio/transcriptions",
    body: { ...request.body, model: request.upstreamModel },
    plain: { operation: "transcriptions", units, mostUnits },
    ...isPlain,
  };
}

function notHere(): never {
  throw new TypeError("its answers are plain");
}

const isPlain = { readJson: notHere, reader: notHere };

function nativeChat(request: UpstreamRequest, facts: RequestFacts): Plan {
  const { upstreamModel: model, stream } = request;
  const { stream_options: options, ...body } = request.body;
  // Usage is always asked for, because the request is charged by it.
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
    ...chatAnswers(facts),
  };
}

function chatAnswers(facts: RequestFacts): Pick<Plan, "readJson" | "reader"> {
  return {
    readJson: (found) =>
      toCompletion(readResponse(found, facts.response), facts.chat.id, facts.chat.stops),
    reader: () => new ChatFromResponses(facts.chat),
  };
}

function translatedMessages(request: UpstreamRequest, facts: RequestFacts): Plan {
  const { upstreamModel: model, stream } = request;
  return {
    path: "/responses",
    body: { ...responsesOfMessages(request.body), model, stream },
    readJson: (found) => toMessage(readResponse(found, facts.response), facts.message()),
    reader: () => new MessagesFromResponses(facts.message()),
  };
}

function messagesByChat(request: UpstreamRequest, facts: RequestFacts): Plan {
  const { upstreamModel: model, stream } = request;
  const usage = stream ? { stream_options: { include_usage: true } } : {};
  return {
    path: "/chat/completions",
    body: { ...chatOfMessages(request.body), model, stream, ...usage },
    readJson: (found) => messageOfCompletion(found, facts),
    reader: () => new MessagesFromChat(facts.message(), facts.chat.nowS),
  };
}
