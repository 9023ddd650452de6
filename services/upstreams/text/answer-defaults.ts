import { isJsonObject } from "#kit/json.ts";
import type { ChatFacts } from "./chat/from-responses.ts";
import { stopsOf } from "./chat/stops.ts";
import type { UpstreamsContext } from "./context.ts";
import type { UpstreamRequest } from "./port.ts";
import type { ResponseFacts } from "./responses/complete-response.ts";

/** What answers to one request show beside what upstream says. */
export interface RequestFacts {
  response: ResponseFacts;
  chat: ChatFacts;
}

/** The facts of a request. */
export function factsOf(
  request: UpstreamRequest,
  { clock, ids }: Pick<UpstreamsContext, "clock" | "ids">,
): RequestFacts {
  const nowS = () => Math.floor(clock.now() / 1000);
  const { modelId, callerInstructions, developerPrompt = "", body } = request;
  const options = body.stream_options;
  return {
    response: {
      modelId,
      callerInstructions,
      developerPrompt,
      asked: request.asked,
      body,
      nowS,
      newId: (prefix) => ids.make(prefix),
    },
    chat: {
      id: ids.make("chatcmpl").replace("_", "-"),
      modelId,
      nowS,
      withUsage: isJsonObject(options) && options.include_usage === true,
      stops: request.operation === "chat" ? stopsOf(body.stop) : [],
    },
  };
}
