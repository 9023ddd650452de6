import { optionalObject, optionalString } from "#kit/body.ts";
import type { JsonObject } from "#kit/json.ts";
import type { ChatSpec } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import type { CheckedBody } from "./checked.ts";
import { checkMetadata, instructionsOf, outputLimit } from "./fields.ts";
import { checkItems, inputOf, nothingFound } from "./items.ts";
import { keepStateOut, settleOperators } from "./operator-state.ts";
import { resolveReasoning } from "./reasoning.ts";
import { checkTools, toolNote } from "./tools.ts";

/** Checks a body of `POST /responses` against its model, and makes what goes up out of it. Names of what goes up are not looked at here. */
export async function checkResponses(
  body: JsonObject,
  spec: ChatSpec,
  developerPrompt: string,
): Promise<CheckedBody> {
  settleOperators(body, spec);
  const input = inputOf(body);
  const callerInstructions = optionalString(body, "instructions") ?? null;
  const maxOutputTokens = outputLimit(body, "max_output_tokens", spec);
  resolveReasoning(body, spec);
  optionalObject(body, "text");
  checkMetadata(body);
  const tools = await checkTools(body, spec, "responses");
  const { images, opaque, ...found } =
    typeof input === "string" ? nothingFound() : await checkItems(input, spec);
  const inParts = images.filter(({ field }) => field === "image_url");
  await keepStateOut(body, new Set(inParts.map(({ holder }) => holder)), toolNote(spec, tools));
  applyDeveloperPrompt(body, developerPrompt, callerInstructions);
  if (body.stream !== true) delete body.stream_options;
  return {
    body,
    callerInstructions,
    hosted: tools.hosted || found.tools.hosted,
    maxOutputTokens,
    images,
    opaque,
    items: tools.count + found.tools.count + (typeof input === "string" ? 1 : input.length),
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
): Promise<CheckedBody> {
  delete body.stream;
  return checkResponses(body, spec, developerPrompt);
}

function applyDeveloperPrompt(
  body: JsonObject,
  developerPrompt: string,
  caller: string | null,
): void {
  const instructions = instructionsOf(developerPrompt, caller);
  if (instructions === "") delete body.instructions;
  else body.instructions = instructions;
}
