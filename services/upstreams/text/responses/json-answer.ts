// Reads a whole answer of Responses, or a compaction, for its caller. `reader.ts` reads a stream.

import { isJsonObject, type JsonObject } from "#kit/base/json.ts";
import { reasonOfError, UpstreamFailure } from "../failure.ts";
import { textOfCompacted, textOfItems } from "../generated-text.ts";
import { textLimits } from "../limits.ts";
import { opaqueIn } from "../opaque.ts";
import { hasTooManyPieces } from "../pieces.ts";
import type { Ending, JsonAnswer } from "../port.ts";
import { completeUsage, usageIn } from "../usage.ts";
import {
  completeOutput,
  completeResponse,
  failedResponse,
  type ResponseFacts,
} from "./complete-response.ts";
import { plainItems } from "./plain-calls.ts";

/** A complete answer as an object, before it becomes bytes. */
export interface ReadAnswer extends Omit<JsonAnswer, "kind" | "body" | "upstream"> {
  object: JsonObject;
}

/**
 * Makes a Responses object of the upstream's complete, with the fields of genmesh. `bare`: see {@link bareText}. Throws
 * `UpstreamFailure` where it is not such an object.
 */
export function readResponse(found: JsonObject, facts: ResponseFacts, bare?: string): ReadAnswer {
  const isBare = bare !== undefined;
  if (!isBare && hasTooManyPieces({ response: found })) throw new UpstreamFailure("too_large");
  const ending = endingOf(found);
  const output = isBare ? (found.output as JsonObject[]) : completeOutput(found.output, facts);
  const whole = completeResponse(found, facts, ending);
  whole.output = output;
  if (ending === "incomplete") whole.incomplete_details ??= { reason: "max_output_tokens" };
  const read = {
    object: whole,
    ending,
    usage: usageIn(found)?.usage,
    outputText: bare ?? textOfItems(output),
    opaque: isBare ? [] : opaqueIn(output),
  };
  if (ending === "failed") {
    const failure = reasonOfError(isJsonObject(found.error) ? found.error : {});
    return { ...read, object: failedResponse(whole, failure), failure };
  }
  whole.error = null;
  return read;
}

/**
 * Reads a compaction of the upstream's. Its items stay as they are, the arguments of calls as text. Throws `UpstreamFailure` where it
 * is not a compaction.
 */
export function readCompaction(found: JsonObject, facts: ResponseFacts): ReadAnswer {
  if (!Array.isArray(found.output) || found.output.length > textLimits.compactedItems) {
    throw new UpstreamFailure("garbage");
  }
  const output = plainItems(found.output);
  const object: JsonObject = {
    id: facts.id,
    object: "response.compaction",
    created_at: typeof found.created_at === "number" ? found.created_at : facts.nowS(),
    output,
    usage: completeUsage(found.usage),
  };
  // These are not part of a compaction's format. Where an upstream repeats the request, its words are replaced by those of genmesh.
  if ("model" in found) object.model = facts.modelId;
  if ("instructions" in found) object.instructions = facts.callerInstructions;
  return {
    object,
    ending: "completed",
    usage: usageIn(found)?.usage,
    outputText: textOfCompacted(output),
    opaque: opaqueIn(output),
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
