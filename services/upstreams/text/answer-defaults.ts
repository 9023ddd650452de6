// Names each request's answer, and collects what its answer shows beside what the upstream says: id, model, time, instructions.

import { isJsonObject, type JsonObject } from "#kit/base/json.ts";
import type { ChatFacts } from "./chat/from-responses.ts";
import { stopsOf } from "./chat/stops.ts";
import type { UpstreamsContext } from "./context.ts";
import type { MessageFacts, ShownThinking } from "./messages/from-responses.ts";
import { isThinking } from "./messages/request.ts";
import type { TextOperation, UpstreamRequest } from "./port.ts";
import type { ResponseFacts } from "./responses/complete-response.ts";

/** Facts that the answers to one request show, beside the upstream's. */
export interface RequestFacts {
  response: ResponseFacts;
  chat: ChatFacts;
  /** Only for a message. */
  message: () => MessageFacts;
}

/**
 * The beginning of an answer's id, before the request's own letters. Answers of other operations show no id. Theirs is the request's.
 */
const idBegins: Partial<Record<TextOperation, string>> = {
  responses: "resp_",
  compact: "resp_",
  chat: "chatcmpl-",
  messages: "msg_",
};

/** The id of a request's answer, for any id of the upstream's. Servers give one id to several answers, or none. */
export function answerIdOf({
  operation,
  requestId,
}: Pick<UpstreamRequest, "operation" | "requestId">): string {
  const begin = idBegins[operation];
  return begin === undefined ? requestId : begin + requestId.replace(/^text_/, "").replace("_", "");
}

/** The facts of a request. */
export function factsOf(
  request: UpstreamRequest,
  { clock, ids }: Pick<UpstreamsContext, "clock" | "ids">,
): RequestFacts {
  const nowS = () => Math.floor(clock.now() / 1000);
  const { modelId, callerInstructions, developerPrompt = "", body } = request;
  const options = body.stream_options;
  const id = answerIdOf(request);
  return {
    response: {
      id,
      modelId,
      callerInstructions,
      developerPrompt,
      asked: request.asked,
      body,
      nowS,
      newId: (prefix) => ids.make(prefix),
    },
    chat: {
      id,
      modelId,
      nowS,
      withUsage: isJsonObject(options) && options.include_usage === true,
      stops: request.operation === "chat" ? stopsOf(body.stop) : [],
    },
    message: () => ({
      ...{ id, modelId, stops: stopsOf(body.stop_sequences) },
      thinking: shownThinking(body),
    }),
  };
}

/** Thinking is shown to a caller that asks for it. `display` says whether with its text. */
function shownThinking(body: JsonObject): ShownThinking {
  if (!isThinking(body)) return "hidden";
  return isJsonObject(body.thinking) && body.thinking.display === "omitted" ? "omitted" : "shown";
}
