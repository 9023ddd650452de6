// Reads a whole answer of Anthropic's for a caller of Messages. `native.ts` reads a stream.

import { isJsonObject, type JsonObject } from "#kit/base/json.ts";
import { UpstreamFailure } from "../failure.ts";
import { textOfAnswer } from "../generated-text.ts";
import { stopFields } from "../messages/stop-fields.ts";
import type { MessageHead } from "../messages/writer.ts";
import type { ReadAnswer } from "../responses/json-answer.ts";
import { usageIn } from "../usage.ts";
import { sealedIn } from "./sealed.ts";
import { stopOf } from "./stop.ts";
import { visibleOutcomes, visibleUsage } from "./visible.ts";

/** A whole message of the upstream's as callers see it. Throws `UpstreamFailure` where it is none, or has no reason for its end. `types`: those of blocks that they see. */
export function readMessage(
  found: JsonObject,
  { id, modelId: model }: MessageHead,
  types: ReadonlySet<unknown>,
): ReadAnswer {
  const stop = stopOf(found.stop_reason);
  if (!Array.isArray(found.content) || !stop) throw new UpstreamFailure("garbage");
  const content = found.content.filter(isJsonObject).filter(({ type }) => types.has(type));
  const usage = isJsonObject(found.usage) ? found.usage : {};
  const head = { id, type: "message", role: "assistant", model, content };
  const object = {
    ...{ ...head, ...stopFields(found), ...visibleOutcomes(found) },
    usage: visibleUsage(usage),
  };
  return {
    object,
    ending: stop.status === "failed" ? "completed" : stop.status,
    usage: usageIn({ ...found, type: "message" })?.usage,
    outputText: textOfAnswer({ ...object }),
    opaque: sealedIn(content).map(({ value }) => value),
  };
}
