import { isJsonObject, type JsonObject } from "#kit/json.ts";
import { only } from "../allowed.ts";
import { reasonOfError, UpstreamFailure } from "../failure.ts";
import { textOfAnswer } from "../generated.ts";
import { hasTooManyPieces } from "../pieces.ts";
import { isText } from "../responses/complete-item.ts";
import type { ReadAnswer } from "../responses/json-answer.ts";
import { chatNames, usageIn, withReasoning } from "../usage.ts";
import { endingOfFinish } from "./completion.ts";
import type { ChatFacts } from "./from-responses.ts";
import { errorOfChoice } from "./native.ts";
import { completionFields, plainlySaid } from "./shown.ts";

/** A chat completion of an upstream's own, complete and with our model. Throws `UpstreamFailure` where it is none. */
export function readCompletion(found: JsonObject, facts: ChatFacts): ReadAnswer {
  const choices = Array.isArray(found.choices) ? found.choices.filter(isJsonObject) : [];
  const first = choices[0];
  if (!first || !isJsonObject(first.message) || hasTooManyPieces(found))
    throw new UpstreamFailure("garbage");
  const broken = errorOfChoice(first);
  const failure = broken && reasonOfError(broken);
  const completed: JsonObject = { ...found, choices: choices.map(completeChoice) };
  const told = usageIn(found);
  if (told) completed.usage = withReasoning(told.object, chatNames);
  const shown = only(completed, completionFields);
  return {
    object: {
      ...shown,
      id: isText(found.id) ? found.id : facts.id,
      object: "chat.completion",
      created: shown.created ?? facts.nowS(),
      model: facts.modelId,
    },
    ending: failure ? "failed" : endingOfFinish(first.finish_reason),
    ...(failure ? { failure } : {}),
    usage: told?.usage,
    outputText: textOfAnswer(found),
    opaque: [],
  };
}

function completeChoice(choice: JsonObject, index: number): JsonObject {
  const message = plainlySaid(isJsonObject(choice.message) ? choice.message : {});
  const hasCalls = Array.isArray(message.tool_calls) && message.tool_calls.length > 0;
  return {
    index,
    logprobs: null,
    ...choice,
    message: { role: "assistant", content: null, refusal: null, ...message },
    finish_reason: choice.finish_reason ?? (hasCalls ? "tool_calls" : "stop"),
  };
}
