import type { JsonObject } from "#kit/base/json.ts";
import type { SseEvent } from "#kit/upstream/sse.ts";
import { OutputLimit, type Upstream } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { objectIn } from "../../call.ts";
import { cutAnswer, textOfAnswer } from "../generated.ts";
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

/**
 * Does the upstream count its output with its own tokenizer, because it was told its bound, or has the model's own maximum? Then
 * it is cut only where it must have gone past. One that knows no bound does not count: it is cut at the bound itself.
 */
export function countsItself(
  { maxOutputTokens }: Pick<UpstreamRequest, "maxOutputTokens">,
  { outputLimit }: Pick<Upstream, "outputLimit">,
): boolean {
  return outputLimit !== OutputLimit.NONE || maxOutputTokens === undefined;
}

/** What passed, by our count: within the bound, above it where its upstream may still keep to it, or certainly past it. */
export type Counted = "within" | "above" | "past";

/**
 * Counts the output of one answer as it passes. A token has at least one byte, so counting is asked for only where the
 * bytes since the last count could be more tokens than are left: twice or three times in an answer that uses its bound.
 */
export class OutputGate {
  readonly #bound: OutputBound;
  readonly #countsItself: boolean;
  /** What was counted is made of, as far as it was looked at. */
  #looked: Composition = nothing();
  /** Tokens at the last count. */
  #counted = 0;
  /** Tokens of what stands before {@link #recent}. */
  #before = 0;
  /** What that is made of. */
  readonly #beforeParts: Composition = nothing();
  /** What passed last, some of it counted. */
  #recent = "";
  /** Of what passed since the last count. */
  #uncountedBytes = 0;
  /** Characters so far. */
  #passed = 0;
  /** What is above the bound by our count counts from now on as what its upstream may have made within it. */
  #isLenient: boolean;

  /** `countsItself`: as {@link countsItself} has it of the upstream. */
  constructor(bound: OutputBound, countsItself: boolean) {
    this.#bound = bound;
    this.#countsItself = countsItself;
    this.#isLenient = !countsItself;
  }

  /**
   * What goes past the bound by our count may be within it by the upstream's own: that is told by its usage, and until then nothing of
   * it is given away. False once it was told, or where the upstream knows no bound.
   */
  get mayWithhold(): boolean {
    return !this.#isLenient;
  }

  /** From now on output may come up to what its upstream can have made within the bound. */
  lenient(): void {
    this.#isLenient = true;
  }

  /** Does an upstream that counts for itself say that it kept to the bound? */
  isKept(usage: ReportedUsage | undefined): boolean {
    if (!usage || !(usage.outputTokens > 0)) return false;
    return usage.outputTokens <= this.#bound.tokens + boundSlack;
  }

  /** Output that was read. */
  saw(text: string): void {
    if (text === "") return;
    this.#recent += text;
    this.#uncountedBytes += Buffer.byteLength(text);
    this.#passed += text.length;
  }

  /** Is it certain, without a count, that what passed and so many bytes more are within the limit? */
  admits(bytes = 0): boolean {
    const more = this.#uncountedBytes + bytes;
    // All that comes is taken to be what leaves the least room.
    const parts = { ...this.#looked, close: this.#looked.close + more };
    const slack = this.mayWithhold ? boundSlack : 0;
    return this.#counted + more <= this.#limit(parts) + slack;
  }

  /** Is what passed to be counted before more is read? */
  mustCount(): boolean {
    return !this.admits() || this.#uncountedBytes > maxUncountedBytes;
  }

  /**
   * Counts what passed. The end of what was counted before is counted again together
   * with what came since: the pieces of a word would be more tokens than the word.
   */
  async count(): Promise<Counted> {
    const text = this.#recent;
    this.#counted = this.#before + (await this.#tokensOf(text));
    this.#uncountedBytes = 0;
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
   * Must an event be looked at before it is read, because it alone could go far past the limit? Small ones are counted
   * once they are read.
   */
  isDoubtful({ data }: SseEvent): boolean {
    if (data.length <= largeEventBytes || this.admits(data.length)) return false;
    const event = objectIn(data);
    return event !== undefined && !this.admits(Buffer.byteLength(this.newText(event)));
  }

  /** A doubtful event with no more text than fits; the event itself where all of it does. */
  async fitting(source: SseEvent): Promise<SseEvent> {
    const event = objectIn(source.data);
    if (!event) return source;
    const text = this.newText(event);
    const room = this.#limit(this.#partsWith(this.#recent + text)) - this.#counted;
    const characters = await this.#prefix(text, room);
    if (characters >= text.length) return source;
    const whole = textOfAnswer(event).length;
    const kept = cutAnswer(event, whole - text.length + characters);
    return { ...source, data: Buffer.from(JSON.stringify(kept)), frame: undefined };
  }

  /**
   * An answer that came whole, cut at the bound where it is past the limit; undefined where it is not. What its upstream does not say to
   * be within the bound is cut where it is above it by our count.
   */
  async cutWhole(answer: JsonObject): Promise<JsonObject | undefined> {
    // Of a failure nothing is given.
    if (answer.status === "failed") return undefined;
    if (this.isKept(usageIn(answer)?.usage)) this.lenient();
    const text = textOfAnswer(answer);
    if (this.admits(Buffer.byteLength(text))) return undefined;
    const limit = this.#limit(compositionOf(text));
    if ((await this.#tokensOf(text, limit)) <= limit) return undefined;
    return cutAnswer(answer, await this.#prefix(text, this.#bound.tokens));
  }

  /** Tokens beyond which an answer of such text is cut. */
  #limit(parts: Composition): number {
    const { tokens } = this.#bound;
    return this.#countsItself && this.#isLenient ? mostTokens(tokens, parts) : tokens;
  }

  /** What all that passed is made of, where `recent` is its end. */
  #partsWith(recent: string): Composition {
    const whole = { ...this.#beforeParts };
    add(whole, compositionOf(recent));
    return whole;
  }

  #tokensOf(text: string, limit?: number): Promise<number> {
    return this.#bound.count([this.#countsItself ? countedText(text) : text], limit);
  }

  /** Text of an event that was not streamed before: those that show an item or the whole answer repeat what was. */
  newText(event: JsonObject): string {
    const text = textOfAnswer(event);
    const isDelta = Array.isArray(event.choices) || `${event.type}`.endsWith(".delta");
    return isDelta ? text : text.slice(this.#passed);
  }

  /** Characters of the longest beginning of `text` that has at most so many tokens. */
  async #prefix(text: string, tokens: number): Promise<number> {
    let fits = 0;
    let exceeds = text.length + 1;
    while (exceeds - fits > 1) {
      // What fits is near its beginning, as a rule: tokens are a few characters long.
      const half = Math.floor((fits + exceeds) / 2);
      const at = Math.min(half, Math.max(fits * 2, tokens, 1));
      const count = await this.#tokensOf(text.slice(0, at), tokens);
      if (count <= tokens) fits = at;
      else exceeds = at;
    }
    return fits;
  }
}
