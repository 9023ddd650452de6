// Cuts an answer that goes past the output that was paid for. It counts tokens as the answer passes, as seldom as it can.

import type { Awaitable } from "#kit/base/awaitable.ts";
import type { JsonObject } from "#kit/base/json.ts";
import { dataOf, eventOf, type SseEvent } from "#kit/upstream/sse.ts";
import { OutputLimit, type Upstream } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { objectIn } from "../../call.ts";
import { cutAnswer, textOfAnswer } from "../generated-text.ts";
import { boundSlack, largeEventBytes, maxRecentCharacters, maxUncountedBytes } from "../limits.ts";
import type { OutputBound, ReportedUsage, UpstreamRequest } from "../port.ts";
import { usageIn } from "../usage.ts";
import {
  add,
  type Composition,
  compositionOf,
  countedText,
  mostTokens,
  nothing,
} from "./output-margin.ts";

/** Events whose text is new: deltas of Responses and Messages, and the beginnings of blocks. */
const newTypes = /\.delta$|^content_block_/;

/**
 * Does the upstream count its output with its own tokenizer? It does where it was sent its bound, or has the model's own maximum. Then
 * its output is cut only where it must be past the bound. An upstream that knows no bound does not count, and its output is cut at the
 * bound itself.
 */
export function countsItself(
  { maxOutputTokens }: Pick<UpstreamRequest, "maxOutputTokens">,
  { outputLimit }: Pick<Upstream, "outputLimit">,
): boolean {
  return outputLimit !== OutputLimit.NONE || maxOutputTokens === undefined;
}

/**
 * The output that passed, by the count of genmesh. `within` the bound, `above` it where the upstream may still keep to it, or certainly
 * `past` it.
 */
export type Counted = "within" | "above" | "past";

/**
 * Counts the output of one answer as it passes. A token has at least one byte. So a count is needed only where the bytes since the last
 * count could be more tokens than are left. That is twice or three times in an answer that uses its bound.
 */
export class OutputGate {
  readonly #bound: OutputBound;
  readonly #countsItself: boolean;
  /** Composition of the counted text, up to the last look at it. */
  #looked: Composition = nothing();
  /** Tokens at the last count. */
  #counted = 0;
  /** Tokens of the text before {@link #recent}. */
  #before = 0;
  /** Composition of that text. */
  readonly #beforeParts: Composition = nothing();
  /** The text that passed last. Some of it is counted. */
  #recent = "";
  /** Bytes that passed since the last count. */
  #uncountedBytes = 0;
  /** Up to this many of them, no count is needed. It is found ahead, so that most deltas need no look. -1: not found. */
  #clearBytes = -1;
  /** Characters that passed so far. */
  #passed = 0;
  /** From now on, output above the bound counts as output that the upstream may have made within it. */
  #isLenient: boolean;

  /** `countsItself`: the result of the function {@link countsItself} for the upstream. */
  constructor(bound: OutputBound, countsItself: boolean) {
    this.#bound = bound;
    this.#countsItself = countsItself;
    this.#isLenient = !countsItself;
  }

  /**
   * Output past the bound by this count may be within it by the upstream's own count. The upstream's usage shows that, and until then
   * none of that output goes to the caller. False once usage has shown it, or where the upstream knows no bound.
   */
  get mayWithhold(): boolean {
    return !this.#isLenient;
  }

  /** From now on output may come up to the most that the upstream can have made within the bound. */
  lenient(): void {
    this.#isLenient = true;
    this.#clearBytes = -1;
  }

  /** Does an upstream that counts its output report that it kept to the bound? */
  isKept(usage: ReportedUsage | undefined): boolean {
    if (!usage || !(usage.outputTokens > 0)) return false;
    return usage.outputTokens <= this.#bound.tokens + boundSlack;
  }

  /** Notes output that was read. */
  saw(text: string): void {
    if (text === "") return;
    this.#recent += text;
    this.#uncountedBytes += Buffer.byteLength(text);
    this.#passed += text.length;
  }

  /** Is it certain, without a count, that the output that passed and this many more bytes are within the limit? */
  admits(bytes = 0): boolean {
    const more = this.#uncountedBytes + bytes;
    // All that comes is taken to be of the kind that leaves the least room.
    const parts = { ...this.#looked, close: this.#looked.close + more };
    const slack = this.mayWithhold ? boundSlack : 0;
    return this.#counted + more <= this.#limit(parts) + slack;
  }

  /** Must the output be counted before more, or before `next`, is read? */
  mustCount(next?: SseEvent): boolean {
    if (next && next.end - next.start > largeEventBytes && this.isDoubtful(next)) return true;
    if (this.#uncountedBytes <= this.#clearBytes) return false;
    const isWithin = this.#uncountedBytes <= maxUncountedBytes - largeEventBytes;
    if (isWithin && this.admits(largeEventBytes)) {
      this.#clearBytes = this.#uncountedBytes + largeEventBytes;
      return false;
    }
    return !this.admits() || this.#uncountedBytes > maxUncountedBytes;
  }

  /**
   * Counts the output that passed. The end of the counted text is counted again together with the new text, because the pieces of a
   * word would be more tokens than the word.
   */
  async count(): Promise<Counted> {
    const text = this.#recent;
    this.#counted = this.#before + (await this.#tokensOf(text));
    this.#uncountedBytes = 0;
    this.#clearBytes = -1;
    const isClear = this.#counted <= this.#limit(nothing());
    if (!isClear) this.#looked = this.#partsWith(text);
    const isPast = !isClear && this.#counted > this.#limit(this.#looked);
    if (text.length > maxRecentCharacters) {
      const end = text.length - maxRecentCharacters / 2;
      const space = text.lastIndexOf(" ", end);
      const at = space > 0 ? space : end;
      const passed = text.slice(0, at);
      this.#before += await this.#tokensOf(passed);
      add(this.#beforeParts, compositionOf(passed));
      this.#recent = text.slice(at);
    }
    if (!isPast) return "within";
    return this.mayWithhold ? "above" : "past";
  }

  /**
   * Must an event be looked at before it is read, because it alone could go far past the limit? Small events are counted after they are
   * read.
   */
  isDoubtful(source: SseEvent): boolean {
    const bytes = source.end - source.start;
    if (bytes <= largeEventBytes || this.admits(bytes)) return false;
    const event = objectIn(dataOf(source));
    return event !== undefined && !this.admits(Buffer.byteLength(this.newText(event)));
  }

  /** A doubtful event with no more text than fits. The event itself where all of its text fits. */
  async fitting(source: SseEvent): Promise<SseEvent> {
    const event = objectIn(dataOf(source));
    if (!event) return source;
    const text = this.newText(event);
    const room = this.#limit(this.#partsWith(this.#recent + text)) - this.#counted;
    const characters = await this.#prefix(text, room);
    if (characters >= text.length) return source;
    const whole = textOfAnswer(event).length;
    const kept = cutAnswer(event, whole - text.length + characters);
    return eventOf(source.name, Buffer.from(JSON.stringify(kept)));
  }

  /**
   * A whole answer, cut at the bound where it is past the limit. Undefined where it is not. An answer whose upstream does not report
   * that it kept to the bound is cut where it is above it by this count. `bare`: its text, where that is known.
   */
  cutWhole(answer: JsonObject, bare?: string): Awaitable<JsonObject | undefined> {
    // A failed answer gives no output.
    if (answer.status === "failed") return undefined;
    const text = bare ?? textOfAnswer(answer);
    return this.admits(Buffer.byteLength(text)) ? undefined : this.#cut(answer, text);
  }

  async #cut(answer: JsonObject, text: string): Promise<JsonObject | undefined> {
    // Usage within the bound admits more, so it is read only here.
    if (this.isKept(usageIn(answer)?.usage)) this.lenient();
    if (this.admits(Buffer.byteLength(text))) return undefined;
    const limit = this.#limit(compositionOf(text));
    if ((await this.#tokensOf(text, limit)) <= limit) return undefined;
    return cutAnswer(answer, await this.#prefix(text, this.#bound.tokens));
  }

  /** Tokens beyond which an answer of this composition is cut. */
  #limit(parts: Composition): number {
    const { tokens } = this.#bound;
    return this.#countsItself && this.#isLenient ? mostTokens(tokens, parts) : tokens;
  }

  /** Composition of all output that passed, where `recent` is its end. */
  #partsWith(recent: string): Composition {
    const whole = { ...this.#beforeParts };
    add(whole, compositionOf(recent));
    return whole;
  }

  #tokensOf(text: string, limit?: number): Promise<number> {
    return this.#bound.count([this.#countsItself ? countedText(text) : text], limit);
  }

  /** Text of an event that was not streamed before. Events that show an item or the whole answer repeat streamed text. */
  newText(event: JsonObject): string {
    const text = textOfAnswer(event);
    const isDelta = Array.isArray(event.choices) || newTypes.test(`${event.type}`);
    return isDelta ? text : text.slice(this.#passed);
  }

  /** Characters of the longest beginning of `text` that has at most `tokens` tokens. */
  async #prefix(text: string, tokens: number): Promise<number> {
    let fits = 0;
    let exceeds = text.length + 1;
    while (exceeds - fits > 1) {
      // The part that fits usually ends near the beginning: tokens are a few characters long.
      const half = Math.floor((fits + exceeds) / 2);
      const at = Math.min(half, Math.max(fits * 2, tokens, 1));
      const count = await this.#tokensOf(text.slice(0, at), tokens);
      if (count <= tokens) fits = at;
      else exceeds = at;
    }
    return fits;
  }
}
