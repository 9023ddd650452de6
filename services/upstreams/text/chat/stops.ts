// Finds stop sequences in an answer of an upstream that does not know the parameter. Chats and messages use it.

import type { JsonValue } from "#kit/base/json.ts";

/** The most stop sequences that are looked for here in one stream: four times OpenAI's maximum. */
export const maxStops = 16;
/** The most UTF-16 units of one sequence. That much of a stream is held back, and searched again with each delta. */
export const maxStopCharacters = 256;

/** The sequences that a request's `stop` names. An upstream of the Responses API has no `stop`, so genmesh ends such a chat itself. */
export function stopsOf(stop: JsonValue | undefined): string[] {
  const list = Array.isArray(stop) ? stop : [stop];
  return list.filter((one): one is string => typeof one === "string" && one !== "");
}

/** Are the sequences too many or too long? */
export function isTooMuch(stops: readonly string[]): boolean {
  return stops.length > maxStops || stops.some((one) => one.length > maxStopCharacters);
}

/** The stop sequence that comes first in a text, and its place. */
function firstStop(
  text: string,
  stops: readonly string[],
): { stop: string; at: number } | undefined {
  let first: { stop: string; at: number } | undefined;
  for (const stop of stops) {
    const at = text.indexOf(stop);
    if (at !== -1 && at < (first?.at ?? Infinity)) first = { stop, at };
  }
  return first;
}

/** Looks for stop sequences in a text that comes in pieces. A sequence may be split over any number of pieces. */
export class StopSearch {
  readonly #stops: readonly string[];
  /** The end of the text so far that may be the beginning of a sequence. */
  #held = "";
  /** The sequence that was found. */
  found: string | undefined;

  constructor(stops: readonly string[]) {
    this.#stops = stops;
  }

  get isFound(): boolean {
    return this.found !== undefined;
  }

  /** The text that may be sent now that `piece` has come. It ends before a sequence, and before the possible beginning of one. */
  take(piece: string): string {
    if (this.isFound || this.#stops.length === 0) return this.isFound ? "" : piece;
    const text = this.#held + piece;
    const first = firstStop(text, this.#stops);
    if (first) {
      this.found = first.stop;
      this.#held = "";
      return text.slice(0, first.at);
    }
    const kept = Math.max(...this.#stops.map((stop) => overlap(text, stop)));
    this.#held = text.slice(text.length - kept);
    return text.slice(0, text.length - kept);
  }

  /** The text that was held back. Nothing more comes, so it is no sequence. */
  rest(): string {
    const rest = this.#held;
    this.#held = "";
    return rest;
  }
}

/** Length of the longest end of `text` that is a beginning of `stop`. */
function overlap(text: string, stop: string): number {
  for (let length = Math.min(text.length, stop.length - 1); length > 0; length--) {
    if (text[text.length - length] !== stop[0]) continue;
    if (text.endsWith(stop.slice(0, length))) return length;
  }
  return 0;
}
