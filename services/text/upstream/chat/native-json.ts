import { ErrorReason, type Reason } from "#kit/errors.ts";
import { isJsonObject, type JsonObject } from "#kit/json.ts";
import { isPolicyCode, UpstreamFailure } from "../failure.ts";
import { textOfAnswer } from "../generated.ts";
import { withoutPromptEchoes } from "../prompt-echoes.ts";
import { isText } from "../responses/complete-item.ts";
import type { ReadAnswer } from "../responses/json-answer.ts";
import { usageOfChat } from "../usage.ts";
import { endingOfFinish } from "./completion.ts";
import type { ChatFacts } from "./from-responses.ts";
import { errorOfChoice } from "./native.ts";

/** A chat completion of an upstream's own, complete and with our model. Throws `UpstreamFailure` where it is none. */
export function readCompletion(found: JsonObject, facts: ChatFacts): ReadAnswer {
  const choices = Array.isArray(found.choices) ? found.choices.filter(isJsonObject) : [];
  const first = choices[0];
  if (!first || !isJsonObject(first.message)) throw new UpstreamFailure("garbage");
  const broken = errorOfChoice(first);
  const failure = broken && failureReasonOf(broken);
  return {
    object: {
      ...withoutPromptEchoes(found),
      id: isText(found.id) ? found.id : facts.id,
      object: "chat.completion",
      created: found.created ?? facts.nowS(),
      model: facts.modelId,
      choices: choices.map(completeChoice),
    },
    ending: failure ? "failed" : endingOfFinish(first.finish_reason),
    ...(failure ? { failure } : {}),
    usage: usageOfChat(found.usage),
    outputText: textOfAnswer(found),
    opaque: [],
  };
}

function failureReasonOf({ code }: JsonObject): Reason {
  if (isPolicyCode(code)) return ErrorReason.CONTENT_POLICY_VIOLATION;
  return ErrorReason.MODEL_REQUEST_FAILED;
}

function completeChoice(choice: JsonObject, index: number): JsonObject {
  const message = isJsonObject(choice.message) ? choice.message : {};
  const hasCalls = Array.isArray(message.tool_calls) && message.tool_calls.length > 0;
  return {
    index,
    logprobs: null,
    ...choice,
    message: { role: "assistant", content: null, refusal: null, ...message },
    finish_reason: choice.finish_reason ?? (hasCalls ? "tool_calls" : "stop"),
  };
}
