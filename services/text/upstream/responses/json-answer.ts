import { ErrorReason } from "#kit/errors.ts";
import { isJsonObject, type JsonObject } from "#kit/json.ts";
import { isPolicyCode, UpstreamFailure } from "../failure.ts";
import { textOfItems } from "../generated.ts";
import { opaqueIn } from "../opaque.ts";
import type { Ending, JsonAnswer } from "../port.ts";
import { withoutPromptEchoes } from "../prompt-echoes.ts";
import { completeUsage, usageOfResponse } from "../usage.ts";
import { isText } from "./complete-item.ts";
import { completeOutput, completeResponse, type ResponseFacts } from "./complete-response.ts";
import { failedResponse } from "./failed-response.ts";

/** A complete answer as an object, before it becomes bytes. */
export interface ReadAnswer extends Omit<JsonAnswer, "kind" | "body" | "upstream"> {
  object: JsonObject;
}

/** A Responses object of upstream's, complete and ours. Throws `UpstreamFailure` where it is none. */
export function readResponse(found: JsonObject, facts: ResponseFacts): ReadAnswer {
  const ending = endingOf(found);
  const output = completeOutput(found.output, facts);
  const whole: JsonObject = { ...completeResponse(found, facts, ending), output };
  if (!isText(whole.id)) whole.id = facts.newId("resp");
  if (ending === "incomplete") whole.incomplete_details ??= { reason: "max_output_tokens" };
  const error = isJsonObject(found.error) ? found.error : {};
  const reason = isPolicyCode(error.code)
    ? ErrorReason.CONTENT_POLICY_VIOLATION
    : ErrorReason.MODEL_REQUEST_FAILED;
  return {
    object: ending === "failed" ? failedResponse(whole, reason) : { ...whole, error: null },
    ending,
    ...(ending === "failed" ? { failure: reason } : {}),
    usage: usageOfResponse(found.usage),
    outputText: textOfItems(output),
    opaque: opaqueIn(output),
  };
}

/** A compaction of upstream's; its items go on untouched. Throws `UpstreamFailure` where it is none. */
export function readCompaction(found: JsonObject, facts: ResponseFacts): ReadAnswer {
  if (!Array.isArray(found.output)) throw new UpstreamFailure("garbage");
  const object: JsonObject = {
    ...withoutPromptEchoes(found),
    id: isText(found.id) ? found.id : facts.newId("resp"),
    object: "response.compaction",
    created_at: found.created_at ?? facts.nowS(),
    output: found.output,
    usage: completeUsage(found.usage),
  };
  // Not part of a compaction's format; where an upstream repeats the request, not its words but ours.
  if ("model" in found) object.model = facts.modelId;
  if ("instructions" in found) object.instructions = facts.callerInstructions;
  return {
    object,
    ending: "completed",
    usage: usageOfResponse(found.usage),
    outputText: textOfItems(found.output),
    opaque: opaqueIn(found.output),
  };
}

function endingOf(found: JsonObject): Ending {
  switch (found.status) {
    case "completed":
    case "incomplete":
      if (Array.isArray(found.output)) return found.status;
      break;
    case "failed":
    case "cancelled":
      return "failed";
    case undefined:
      // Some servers leave the status out of a complete answer.
      if (Array.isArray(found.output)) return "completed";
      break;
  }
  throw new UpstreamFailure("garbage");
}
