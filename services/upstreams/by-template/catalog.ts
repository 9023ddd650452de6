// Checks the names of models that the catalog's calls have, for the protocols where a name has a known form.

import { isJsonObject, type JsonValue } from "#kit/base/json.ts";
import type { FaultPath, FoundFault } from "#kit/base/valid-parts.ts";
import type { At, OfferedModel } from "../catalog-rules.ts";

/** Faults in the upstream's names for a model's calls: one for each that does not match `form`. */
export function modelNameFaults(
  { call }: OfferedModel,
  at: At,
  form: RegExp,
  message: string,
): FoundFault[] {
  return named(call).flatMap(({ path, model }) =>
    form.test(model) ? [] : [{ path: at("call", ...path, "model"), message }],
  );
}

/** A call, or one for each mode. */
function named(call: unknown): { path: FaultPath; model: string }[] {
  if (!isJsonObject(call)) return [];
  if (typeof call.model === "string") return [{ path: [], model: call.model }];
  return Object.entries(call).flatMap(([mode, one]: [string, JsonValue | undefined]) =>
    isJsonObject(one) && typeof one.model === "string" ? [{ path: [mode], model: one.model }] : [],
  );
}
