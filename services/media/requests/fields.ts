// Reads fields that bodies of several kinds of jobs have, and words the refusals about what a model offers.

import { optionalNumber, optionalString, requiredString } from "#common/words/body.ts";
import { maxModelIdCharacters, maxPromptCharacters } from "#common/words/request-bounds.ts";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import type { JsonObject } from "#kit/base/json.ts";

/** A field that has two spellings. `param` is the one that the caller used. */
export interface Spelled<T> {
  value: T;
  param: string;
}

/** The id of the model, under `names`. Refuses with MISSING_REQUIRED_PARAMETER, INVALID_TYPE, INVALID_VALUE. */
export function readModelId(body: JsonObject, names: readonly string[]): Spelled<string> {
  const found = oneSpelling(names, (name) => optionalString(body, name, { min: 1 }));
  const id = found ?? refuse(ErrorReason.MISSING_REQUIRED_PARAMETER, { param: names[0] ?? "" });
  if (id.value.length <= maxModelIdCharacters) return id;
  return refuse(ErrorReason.MODEL_NOT_FOUND, {
    param: id.param,
    metadata: { model: id.value.slice(0, maxModelIdCharacters) },
  });
}

export function readPrompt(body: JsonObject): string {
  return requiredString(body, "prompt", { notBlank: true, max: maxPromptCharacters });
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
        message: `The parameters '${found.param}' and '${param}' mean the same and differ. Send one of them.`,
      });
    }
    found ??= { value, param };
  }
  return found;
}

/** A ratio that the upstream chooses itself. */
export const autoRatio = "auto";

/**
 * The supported ratio nearest to a width and height: the least distance of the logarithms, without `auto`. On a tie, it is the earlier
 * one in the list. `auto` where the model names no other.
 */
export function closestRatio(width: number, height: number, supported: readonly string[]): string {
  const wanted = Math.log(width / height);
  let best = { ratio: autoRatio, distance: Number.POSITIVE_INFINITY };
  for (const ratio of supported) {
    const [across, down] = ratio.split(":").map(Number);
    if (!across || !down) continue;
    const distance = Math.abs(Math.log(across / down) - wanted);
    // Mirror images (16:9 and 9:16 seen from 1:1) are equally far, apart from rounding.
    if (distance < best.distance - 1e-9) best = { ratio, distance };
  }
  return best.ratio;
}

/** Refuses a ratio that the model does not list. `auto` is always allowed. */
export function checkRatio(ratio: string, supported: readonly string[]): string {
  if (ratio === autoRatio || supported.includes(ratio)) return ratio;
  return refuse(ErrorReason.UNSUPPORTED_ASPECT_RATIO, {
    param: "aspectRatio",
    message: offers("aspect ratio but 'auto'", "aspect ratios", supported),
    // Every model takes `auto`.
    metadata: {
      available_aspect_ratios: JSON.stringify(supported.length > 0 ? supported : [autoRatio]),
    },
  });
}

/** The part of a refusal about a model's offers: "The model's voices are: …", or that it takes none. */
export function offers(one: string, many: string, offered: readonly string[]): string {
  return offered.length === 0
    ? `The model takes no ${one}.`
    : `The model's ${many} are: ${offered.join(", ")}.`;
}
