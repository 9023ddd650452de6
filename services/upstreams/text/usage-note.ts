// Collects the usage that one stream reports, often in several events. `usage.ts` reads a single report.

import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import type { ReportedUsage, UsageDetails } from "./port.ts";
import { plainUsage, type UsageNames, usageIn } from "./usage.ts";

const finalTypes: ReadonlySet<JsonValue | undefined> = new Set([
  "error",
  "message_delta",
  "message_stop",
  "response.cancelled",
  "response.completed",
  "response.done",
  "response.failed",
  "response.incomplete",
]);

/** Does an event of this type come behind all output of a stream of Responses or Messages? */
export function isFinalType(type: JsonValue | undefined): boolean {
  return finalTypes.has(type);
}

/**
 * The usage that one stream reported. It is noted from every event before the event is read otherwise: servers report along the way,
 * twice, and beside errors. Of several reports the larger number of each kind wins. A number that can be a number of tokens wins before
 * one that cannot.
 */
export class UsageNote {
  #largest: ReportedUsage | undefined;
  #isFinal = false;
  /** The last usage object, for its other fields. */
  #object: JsonObject = {};

  /** Notes the usage in an event. `isFinal`: the event comes behind all output. */
  note(event: JsonObject, isFinal: boolean): void {
    const found = usageIn(event);
    if (!found) return;
    const { object, usage } = found;
    const before = this.#largest;
    const isOdd = !isPlausible(usage);
    if (isOdd && before) return;
    const isFirst = !before || !isPlausible(before);
    this.#largest = isFirst ? usage : larger(before, usage);
    // Zeros behind another report mean nothing.
    const isSaid = isFirst || usage.inputTokens > 0 || usage.outputTokens > 0;
    if (!isSaid) return;
    this.#object = object;
    this.#isFinal ||= isFinal;
  }

  /** The usage that was reported so far. Undefined: none. */
  get reported(): ReportedUsage | undefined {
    if (!this.#largest || this.#isFinal) return this.#largest;
    return { ...this.#largest, isRunning: true };
  }

  /** The same as a usage object of a protocol. Undefined where none was reported. */
  objectIn(names: UsageNames): JsonObject | undefined {
    if (!this.#largest) return undefined;
    const { inputTokens, cachedInputTokens, outputTokens, details: parts } = this.#largest;
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
        ...(parts?.cacheWrite && { cache_write_tokens: parts.cacheWrite }),
      },
    };
  }
}

/** Can these be numbers of tokens at all? The code that charges decides whether the request could have used that many. */
function isPlausible({ inputTokens, cachedInputTokens, outputTokens }: ReportedUsage): boolean {
  const counts = [inputTokens, cachedInputTokens, outputTokens];
  return (
    counts.every((count) => Number.isSafeInteger(count) && count >= 0) &&
    cachedInputTokens <= inputTokens
  );
}

function larger(a: ReportedUsage, b: ReportedUsage): ReportedUsage {
  // Cached tokens belong to the input of which they were a part.
  const { inputTokens, cachedInputTokens } = b.inputTokens >= a.inputTokens ? b : a;
  const outputTokens = Math.max(a.outputTokens, b.outputTokens);
  const reasoningTokens = b.reasoningTokens ?? a.reasoningTokens;
  const reasoning = reasoningTokens === undefined ? {} : { reasoningTokens };
  const details = a.details || b.details ? largerDetails(a, b) : undefined;
  return {
    ...{ inputTokens, cachedInputTokens, outputTokens },
    ...reasoning,
    ...(details && { details }),
  };
}

/** Details that belong to the input of which they were a part. */
const ofInput: ReadonlySet<string> = new Set<keyof UsageDetails>([
  ...(["cacheWrite", "cacheWriteLong", "audioInput", "cachedAudioInput", "imageInput"] as const),
]);

/** The larger number of each detail. Those of the input stay together where they would add up to more than one report's input. */
function largerDetails(a: ReportedUsage, b: ReportedUsage): UsageDetails {
  const both: UsageDetails = largerOf({ ...a.details }, { ...b.details });
  const isWithin = b.cachedInputTokens + (both.cacheWrite ?? 0) <= b.inputTokens;
  if (a.inputTokens === b.inputTokens && isWithin) return both;
  const { details = {} } = b.inputTokens >= a.inputTokens ? b : a;
  const others = Object.entries(both).filter(([name]) => !ofInput.has(name));
  const kept = Object.entries(details).filter(([name]) => ofInput.has(name));
  return Object.fromEntries([...others, ...kept]);
}

function largerOf(a: Details, b: Details): Details {
  const larger: Details = { ...a };
  for (const [name, second] of Object.entries(b)) {
    const first = larger[name];
    if (typeof first === "number") larger[name] = Math.max(first, Number(second));
    else if (typeof first === "object")
      larger[name] = largerOf({ ...first }, { ...Object(second) });
    else larger[name] = second;
  }
  return larger;
}

type Details = Record<string, unknown>;
