import { optionalObject, optionalString } from "#kit/body.ts";
import type { JsonObject } from "#kit/json.ts";
import type { ChatSpec } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import type { CheckedBody } from "./checked.ts";
import { outputLimit } from "./fields.ts";
import { checkItems, type Found, inputOf } from "./items.ts";
import { resolveReasoning } from "./reasoning.ts";
import { keepStateOut } from "./refused.ts";
import { checkTools } from "./tools.ts";

/** Checks a body of `POST /responses` against its model, and makes what goes up out of it. Properties unknown here pass. */
export function checkResponses(
  body: JsonObject,
  spec: ChatSpec,
  developerPrompt: string,
): CheckedBody {
  keepStateOut(body, spec);
  const input = inputOf(body);
  const callerInstructions = optionalString(body, "instructions") ?? null;
  const maxOutputTokens = outputLimit(body, "max_output_tokens", spec);
  resolveReasoning(body, spec);
  optionalObject(body, "text");
  const tools = checkTools(body, spec, "responses");
  const found: Found =
    typeof input === "string" ? { images: [], opaque: [] } : checkItems(input, spec);
  applyDeveloperPrompt(body, developerPrompt, callerInstructions);
  if (body.stream !== true) delete body.stream_options;
  return {
    body,
    callerInstructions,
    hosted: tools.hosted,
    maxOutputTokens,
    ...found,
    items: tools.count + (typeof input === "string" ? 1 : input.length),
    inputParam: "input",
  };
}

/**
 * Checks a body of `POST /responses/compact`: the same shape, but its answer is never a stream. The developer prompt
 * goes before compaction too.
 */
export function checkCompact(
  body: JsonObject,
  spec: ChatSpec,
  developerPrompt: string,
): CheckedBody {
  delete body.stream;
  return checkResponses(body, spec, developerPrompt);
}

/** The configured prompt, then the caller's own instructions. */
function applyDeveloperPrompt(
  body: JsonObject,
  developerPrompt: string,
  caller: string | null,
): void {
  const instructions = [developerPrompt, caller ?? ""].filter((text) => text !== "").join("\n\n");
  if (instructions === "") delete body.instructions;
  else body.instructions = instructions;
}
