import { optionalNumber, optionalString, requiredString } from "#kit/body.ts";
import { ErrorReason, refuse } from "#kit/errors.ts";
import type { JsonObject } from "#kit/json.ts";
import { maxModelIdLength, maxPromptCharacters } from "../limits.ts";

/** A field that has two spellings; `param` is the one that was used. */
export interface Spelled<T> {
  value: T;
  param: string;
}

/** The id of the model, under `names`. Refuses with MISSING_REQUIRED_PARAMETER, INVALID_TYPE, INVALID_VALUE. */
export function readModelId(body: JsonObject, names: readonly string[]): Spelled<string> {
  const found = oneSpelling(names, (name) => optionalString(body, name, { min: 1 }));
  const id = found ?? refuse(ErrorReason.MISSING_REQUIRED_PARAMETER, { param: names[0] ?? "" });
  if (id.value.length <= maxModelIdLength) return id;
  return refuse(ErrorReason.MODEL_NOT_FOUND, {
    param: id.param,
    metadata: { model: id.value.slice(0, maxModelIdLength) },
  });
}

export function readPrompt(body: JsonObject): string {
  return requiredString(body, "prompt", { min: 1, max: maxPromptCharacters });
}

/** A whole number under `names`. */
export function readInteger(
  body: JsonObject,
  names: readonly string[],
): Spelled<number> | undefined {
  return oneSpelling(names, (name) => optionalNumber(body, name, { integer: true }));
}

/** Both spellings may be sent where they agree. Refuses with INVALID_VALUE at the later one. */
function oneSpelling<T>(
  names: readonly string[],
  read: (name: string) => T | undefined,
): Spelled<T> | undefined {
  let found: Spelled<T> | undefined;
  for (const param of names) {
    const value = read(param);
    if (value === undefined) continue;
    if (found && found.value !== value) {
      refuse(ErrorReason.INVALID_VALUE, {
        param,
        message: `The parameters '${found.param}' and '${param}' differ.`,
      });
    }
    found ??= { value, param };
  }
  return found;
}
