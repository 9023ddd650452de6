// Reads an upstream's answer by its declaration: the values at a place, and what the answer means.

import type { JsonObject, JsonValue } from "#kit/base/json.ts";
import { parseOutputPath, readOutputPath } from "#kit/template/output-path.ts";
import type { Declaration, Marks, Meaning, Pattern } from "./declaration.ts";

/** The values at a place of an answer. None where the place is not there, or null. */
export function valuesAt(place: string, answer: JsonObject): JsonValue[] {
  const path = parseOutputPath(place);
  return path ? readOutputPath(path, answer) : [];
}

/** The text of the first value at a place. Undefined where there is no text, number or boolean. */
export function textAt(place: string, answer: JsonObject): string | undefined {
  return valuesAt(place, answer).flatMap((value) => textOf(value) ?? [])[0];
}

/** The first of these meanings whose patterns fit an answer. `isDone`: the task is done, so that what is missing means something. */
export function meaningOf(
  answers: Declaration["answers"],
  among: readonly Meaning[],
  answer: JsonObject,
  isDone = false,
): Meaning | undefined {
  return among.find((meaning) => isMarked(answers[meaning] ?? {}, answer, isDone));
}

/** Does one of the patterns fit? */
export function isMarked(marks: Marks, answer: JsonObject, isDone = false): boolean {
  return Object.entries(marks).some(([place, patterns]) => {
    const texts = valuesAt(place, answer).flatMap((value) => textOf(value) ?? []);
    return patterns.some((pattern) =>
      pattern === null ? isDone && texts.length === 0 : texts.some((one) => fits(one, pattern)),
    );
  });
}

/** Texts, numbers and booleans alone can fit a pattern. */
function textOf(value: JsonValue): string | undefined {
  if (value === null || typeof value === "object") return undefined;
  return String(value);
}

/** Characters of a text that are compared. Codes are short, and so is the beginning of a sentence that tells of a refusal. */
const comparedCharacters = 2_000;

function fits(text: string, pattern: Exclude<Pattern, null>): boolean {
  const wanted = String(pattern);
  const isOther = typeof pattern === "string" && wanted.startsWith("!");
  const isLike = isAlike(text.slice(0, comparedCharacters), isOther ? wanted.slice(1) : wanted);
  return isLike !== isOther;
}

/** Is it the same text, in capitals or not? In a pattern, `*` is any text. Takes time in proportion to its length. */
function isAlike(text: string, pattern: string): boolean {
  const [first = "", ...rest] = pattern.toLowerCase().split("*");
  const all = text.toLowerCase();
  const last = rest.pop();
  if (last === undefined) return all === first;
  if (!all.startsWith(first)) return false;
  let at = first.length;
  for (const part of rest) {
    const found = all.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  return all.length - last.length >= at && all.endsWith(last);
}
