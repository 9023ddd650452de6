import type { JsonValue } from "#kit/base/json.ts";

/** Stop sequences that are looked for here in one stream: four times as many as OpenAI takes. */
export const maxStops = 16;
/** UTF-16 units of one: as many are held back of a stream, and looked through again with each delta. */
export const maxStopCharacters = 256;

/** The sequences that a request's `stop` names. */
export function stopsOf(stop: JsonValue | undefined): string[] {
  const list = Array.isArray(stop) ? stop : [stop];
  return list.filter((one): one is string => typeof one === "string" && one !== "");
}

/** Are they more, or longer, than is looked for? */
export function isTooMuch(stops: readonly string[]): boolean {
  return stops.length > maxStops || stops.some((one) => one.length > maxStopCharacters);
}

/** The text before the first stop sequence; undefined where there is none. */
export function cutAtStop(text: string, stops: readonly string[]): string | undefined {
  const found = stops.map((one) => text.indexOf(one)).filter((at) => at !== -1);
  return found.length > 0 ? text.slice(0, Math.min(...found)) : undefined;
}

/** Looks for stop sequences in a text that comes in pieces; one may be split over any number of them. */
export class StopSearch {
  readonly #stops: readonly string[];
  /** The end of what came, which may be the beginning of a sequence. */
  #held = "";
  isFound = false;

  constructor(stops: readonly string[]) {
    this.#stops = stops;
  }

  /** What of the text may go out, now that `piece` has come: up to a sequence, and to what may become one. */
  take(piece: string): string {
    if (this.isFound || this.#stops.length === 0) return this.isFound ? "" : piece;
    const text = this.#held + piece;
    const before = cutAtStop(text, this.#stops);
    if (before !== undefined) {
      this.isFound = true;
      this.#held = "";
      return before;
    }
    const kept = Math.max(...this.#stops.map((stop) => overlap(text, stop)));
    this.#held = text.slice(text.length - kept);
    return text.slice(0, text.length - kept);
  }

  /** What was held back: nothing more comes, so it is no sequence. */
  rest(): string {
    const rest = this.#held;
    this.#held = "";
    return rest;
  }
}

/** Length of the longest end of `text` that `stop` begins with. */
function overlap(text: string, stop: string): number {
  for (let length = Math.min(text.length, stop.length - 1); length > 0; length--) {
    if (text[text.length - length] !== stop[0]) continue;
    if (text.endsWith(stop.slice(0, length))) return length;
  }
  return 0;
}
