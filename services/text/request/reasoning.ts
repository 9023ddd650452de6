// Turns the reasoning effort that a caller names into one of the model. Messages has its own words for it:
// `messages-thinking.ts`.

import { optionalObject } from "#common/words/body.ts";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import type { JsonObject } from "#kit/base/json.ts";
import type { ChatSpec } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { fieldOf } from "./fields.ts";

/** Characters of an effort. Its names are words, but a caller may send megabytes. */
const maxEffortLength = 64;

/** Resolves `reasoning.effort` in place. An absent effort stays absent, and the upstream's default applies. */
export function resolveReasoning(holder: JsonObject, spec: ChatSpec, param = "reasoning"): void {
  const reasoning = optionalObject(holder, "reasoning", param);
  if (!reasoning) {
    delete holder.reasoning;
    return;
  }
  resolveEffort(reasoning, "effort", `${param}.effort`, spec);
}

/** Resolves the effort in `holder[name]` in place. It is an effort of the model or an alias of one, in upper or lower case. */
export function resolveEffort(
  holder: JsonObject,
  name: string,
  param: string,
  spec: ChatSpec,
): void {
  const value = fieldOf(holder, name);
  if (value === undefined) {
    delete holder[name];
    return;
  }
  if (typeof value !== "string") refuse(ErrorReason.INVALID_TYPE, { param });
  if (value.length > maxEffortLength) refuseEffort(param, spec);
  const wanted = value.toLowerCase();
  const alias = Object.entries(spec.reasoningAliases).find(
    ([from]) => from.toLowerCase() === wanted,
  );
  const effort = spec.reasoningEfforts.find((one) => one.toLowerCase() === wanted) ?? alias?.[1];
  if (effort === undefined) refuseEffort(param, spec);
  holder[name] = effort;
}

function refuseEffort(param: string, spec: ChatSpec): never {
  const accepted = [...spec.reasoningEfforts, ...Object.keys(spec.reasoningAliases)].join(", ");
  refuse(ErrorReason.UNSUPPORTED_PARAMETER, {
    param,
    message: accepted
      ? `The parameter '${param}' must be one of: ${accepted}.`
      : `The model takes no '${param}'. Leave it out.`,
    metadata: { accepted },
  });
}
