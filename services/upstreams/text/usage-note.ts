import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import type { ReportedUsage } from "./port.ts";
import { plainUsage, type UsageNames, usageIn } from "./usage.ts";

const finalTypes: ReadonlySet<JsonValue | undefined> = new Set([
  "error",
  "response.cancelled",
  "response.completed",
  "response.done",
  "response.failed",
  "response.incomplete",
]);

/** Is all output of a Responses stream behind an event of this type? */
export function isFinalType(type: JsonValue | undefined): boolean {
  return finalTypes.has(type);
}

/**
 * The usage that one stream reported, noted from every event before it is looked at for what else it is: servers report as
 * they go, twice, and beside errors. Of several reports the larger number of each kind holds, and what can be a number of
 * tokens before what cannot.
 */
export class UsageNote {
  #largest: ReportedUsage | undefined;
  #isFinal = false;
  /** As it was reported last, for what else it tells. */
  #object: JsonObject = {};

  /** Notes what an event reports. `isFinal`: all output is behind it. */
  note(event: JsonObject, isFinal: boolean): void {
    const found = usageIn(event);
    if (!found) return;
    const { object, usage } = found;
    const before = this.#largest;
    const isOdd = !isPlausible(usage);
    if (isOdd && before) return;
    const isFirst = !before || !isPlausible(before);
    this.#largest = isFirst ? usage : larger(before, usage);
    // Zeros behind another report say nothing.
    const isSaid = isFirst || usage.inputTokens > 0 || usage.outputTokens > 0;
    if (!isSaid) return;
    this.#object = object;
    this.#isFinal ||= isFinal;
  }

  /** What was reported so far; undefined: nothing. */
  get reported(): ReportedUsage | undefined {
    if (!this.#largest || this.#isFinal) return this.#largest;
    return { ...this.#largest, isRunning: true };
  }

  /** The same as a usage object of a protocol; undefined where nothing was reported. */
  objectIn(names: UsageNames): JsonObject | undefined {
    if (!this.#largest) return undefined;
    const { inputTokens, cachedInputTokens, outputTokens } = this.#largest;
    const object = plainUsage(names.input in this.#object ? this.#object : {}, names);
    if (object[names.input] === inputTokens && object[names.output] === outputTokens) return object;
    if (!isPlausible(this.#largest)) return object;
    const details = object[names.inputDetails];
    return {
      ...object,
      [names.input]: inputTokens,
      [names.output]: outputTokens,
      total_tokens: inputTokens + outputTokens,
      [names.inputDetails]: {
        ...(isJsonObject(details) ? details : {}),
        cached_tokens: cachedInputTokens,
      },
    };
  }
}

/** Can these be numbers of tokens at all? Whether the request could have used as many is for who charges it. */
function isPlausible({ inputTokens, cachedInputTokens, outputTokens }: ReportedUsage): boolean {
  const counts = [inputTokens, cachedInputTokens, outputTokens];
  return (
    counts.every((count) => Number.isSafeInteger(count) && count >= 0) &&
    cachedInputTokens <= inputTokens
  );
}

function larger(a: ReportedUsage, b: ReportedUsage): ReportedUsage {
  // What was cached belongs to the input that it was a part of.
  const { inputTokens, cachedInputTokens } = b.inputTokens >= a.inputTokens ? b : a;
  const outputTokens = Math.max(a.outputTokens, b.outputTokens);
  const reasoningTokens = b.reasoningTokens ?? a.reasoningTokens;
  const reasoning = reasoningTokens === undefined ? {} : { reasoningTokens };
  return { inputTokens, cachedInputTokens, outputTokens, ...reasoning };
}
