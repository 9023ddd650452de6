import type { JsonValue } from "#kit/json.ts";
import { failed } from "./faults.ts";
import { generateLimits } from "./limits.ts";

/** The id that an upstream gave a task. Throws a `failed` GenerationError where it is none that could be kept. */
export function checkedTaskId(value: JsonValue | undefined): string {
  const isKept =
    typeof value === "string" && value !== "" && value.length <= generateLimits.resumeIdChars;
  if (!isKept) throw failed("the upstream's answer names no task");
  return value;
}
