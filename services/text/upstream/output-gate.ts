import { isJsonObject, type JsonObject } from "#kit/json.ts";
import type { SseEvent } from "#kit/upstream/sse.ts";
import { OutputLimit, type Upstream } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { cutAnswer, textOfAnswer } from "./generated.ts";
import { cutMargin, largeEventBytes } from "./limits.ts";
import type { OutputBound, UpstreamRequest } from "./port.ts";

/**
 * Tokens of output, by our own count, beyond which an answer is cut. An upstream that was told its bound, or has the
 * model's own maximum, counts with its own tokenizer, which can give half as many tokens as ours for the same text: it is
 * cut only where it must have gone past. One that knows no bound does not count: it is cut at the bound itself.
 */
export function cutAt(
  { maxOutputTokens, outputBound }: Pick<UpstreamRequest, "maxOutputTokens" | "outputBound">,
  { outputLimit }: Pick<Upstream, "outputLimit">,
): number {
  const { tokens } = outputBound;
  const isOursAlone = outputLimit === OutputLimit.NONE && maxOutputTokens !== undefined;
  return isOursAlone ? tokens : tokens * cutMargin.factor + cutMargin.tokens;
}

/**
 * Counts the output of one answer as it passes. A token has at least one byte, so counting is asked for only where the
 * bytes since the last count could be more tokens than are left: twice or three times in an answer that uses its bound.
 */
export class OutputGate {
  readonly #bound: OutputBound;
  readonly #limit: number;
  #counted = 0;
  #uncounted = "";
  #uncountedBytes = 0;
  /** Characters so far. */
  #passed = 0;

  constructor(bound: OutputBound, limit: number) {
    this.#bound = bound;
    this.#limit = limit;
  }

  /** Output that was read. */
  saw(text: string): void {
    if (text === "") return;
    this.#uncounted += text;
    this.#uncountedBytes += Buffer.byteLength(text);
    this.#passed += text.length;
  }

  /** Is it certain, without a count, that what passed and so many bytes more are within the limit? */
  admits(bytes = 0): boolean {
    return this.#counted + this.#uncountedBytes + bytes <= this.#limit;
  }

  /** Counts what passed; true where it is past the limit. */
  async isPast(): Promise<boolean> {
    const text = this.#uncounted;
    this.#counted += await this.#bound.count([text]);
    this.#uncounted = this.#uncounted.slice(text.length);
    this.#uncountedBytes = Buffer.byteLength(this.#uncounted);
    return this.#counted > this.#limit;
  }

  /**
   * Must an event be looked at before it is read, because it alone could go far past the limit? Small ones are counted
   * once they are read.
   */
  isDoubtful({ data }: SseEvent): boolean {
    if (data.length <= largeEventBytes || this.admits(data.length)) return false;
    const event = objectOf(data);
    return event !== undefined && !this.admits(Buffer.byteLength(this.#newText(event)));
  }

  /** A doubtful event with no more text than fits; the event itself where all of it does. */
  async fitting(source: SseEvent): Promise<SseEvent> {
    const event = objectOf(source.data);
    if (!event) return source;
    const text = this.#newText(event);
    const room = this.#limit - this.#counted;
    const characters = await this.#prefix(text, room);
    if (characters >= text.length) return source;
    const whole = textOfAnswer(event).length;
    const kept = cutAnswer(event, whole - text.length + characters);
    return { ...source, data: Buffer.from(JSON.stringify(kept)), frame: undefined };
  }

  /** An answer that came whole, cut at the bound where it is past the limit; undefined where it is not. */
  async cutWhole(answer: JsonObject): Promise<JsonObject | undefined> {
    // Of a failure nothing is given.
    if (answer.status === "failed") return undefined;
    const text = textOfAnswer(answer);
    if (this.admits(Buffer.byteLength(text))) return undefined;
    if ((await this.#bound.count([text], this.#limit)) <= this.#limit) return undefined;
    return cutAnswer(answer, await this.#prefix(text, this.#bound.tokens));
  }

  /** Events that show an item or the whole answer repeat what was streamed. */
  #newText(event: JsonObject): string {
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
      const count = await this.#bound.count([text.slice(0, at)], tokens);
      if (count <= tokens) fits = at;
      else exceeds = at;
    }
    return fits;
  }
}

function objectOf(data: Buffer): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(data.toString());
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
