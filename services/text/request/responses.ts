// Checks a request of `/responses` or `/responses/compact`, and makes the body for the upstream. `items.ts` checks its input.

import { optionalObject, optionalString } from "#common/words/body.ts";
import type { JsonObject } from "#kit/base/json.ts";
import type { ChatSpec } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import type { CheckedBody } from "./checked.ts";
import { checkMetadata, instructionsOf, outputLimit } from "./fields.ts";
import { checkItems, inputOf, noneFound } from "./items.ts";
import { keepStateOut, noFiles, settleOperators } from "./operator-state.ts";
import { resolveReasoning } from "./reasoning.ts";
import { checkTools, toolNote, toolTokensOf } from "./tools.ts";

/**
 * Checks a body of `POST /responses` against its model, and makes the body for the upstream out of it. The names of its properties are
 * not checked here.
 */
export function* checkResponses(
  body: JsonObject,
  spec: ChatSpec,
  developerPrompt: string,
): Generator<void, CheckedBody> {
  settleOperators(body, spec);
  const input = inputOf(body);
  const callerInstructions = optionalString(body, "instructions") ?? null;
  const maxOutputTokens = outputLimit(body, "max_output_tokens", spec);
  resolveReasoning(body, spec);
  optionalObject(body, "text");
  checkMetadata(body);
  const tools = yield* checkTools(body, spec, "responses");
  const { images, files, opaque, ...found } =
    typeof input === "string" ? noneFound : yield* checkItems(input, spec);
  const inParts = images.filter(({ field }) => field === "image_url");
  const leftOut = yield* keepStateOut(body, {
    ourFiles: inParts.length > 0 ? new Set(inParts.map(({ holder }) => holder)) : noFiles,
    onTool: toolNote(spec, tools),
    passParameters: spec.passParameters,
  });
  const instructions = instructionsOf(developerPrompt, callerInstructions);
  if (instructions === "") delete body.instructions;
  else body.instructions = instructions;
  if (body.stream !== true) delete body.stream_options;
  return {
    body,
    callerInstructions,
    hosted: tools.hosted || found.tools.hosted,
    hostedTypes: [...(tools.hostedTypes ?? []), ...(found.tools.hostedTypes ?? [])],
    toolTokens: toolTokensOf(tools, found.tools.described),
    nameBytes: found.names.bytes,
    maxOutputTokens,
    images,
    files,
    opaque,
    leftOut,
    items: tools.count + found.tools.count + (typeof input === "string" ? 1 : input.length),
    inputParam: "input",
  };
}

/**
 * Checks a body of `POST /responses/compact`. It has the same shape, but its answer is never a stream. The developer prompt goes before
 * compaction too. A bound of the output has no effect. Servers know none there (OpenAI's reference of the route). A compaction is
 * sealed, so it could not be cut here either.
 */
export function* checkCompact(
  body: JsonObject,
  spec: ChatSpec,
  developerPrompt: string,
): Generator<void, CheckedBody> {
  delete body.stream;
  const checked = yield* checkResponses(body, spec, developerPrompt);
  if (checked.maxOutputTokens === undefined) return checked;
  delete checked.body.max_output_tokens;
  const leftOut = [...checked.leftOut, "max_output_tokens"];
  return { ...checked, maxOutputTokens: undefined, leftOut };
}
