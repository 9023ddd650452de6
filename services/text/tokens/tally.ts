import type { PreparedRequest } from "../request/prepare.ts";
import { guessText, type TokenCounter } from "./count.ts";
import { estimateInput } from "./input-bound.ts";

/** Counts what a running request has used. Only what is asked for is counted: most requests are told by upstream. */
export interface Tally {
  /** Characters of output for which nobody has asked yet. */
  readonly uncounted: number;
  /** Output that went past. */
  add(text: string): void;
  /** Input tokens; counted once. Never rejects: what cannot be counted is guessed, and tried again when asked again. */
  input(): Promise<number>;
  /** Output tokens so far; each text is counted once. Never rejects, as `input`. */
  output(): Promise<number>;
  /** Input and output tokens so far without waiting: what is not counted is guessed. */
  guess(): [input: number, output: number];
}

type Counted = Pick<PreparedRequest, "body" | "images" | "items" | "guessedInput">;

/** A tally at zero. `onFailure` hears of what could not be counted. */
export function createTally(
  request: Counted,
  counter: TokenCounter,
  onFailure: (error: unknown) => void,
): Tally {
  return new RequestTally(request, counter, onFailure);
}

/** A class, because every request makes one, and an object of closures costs many times as much. */
class RequestTally implements Tally {
  readonly #request: Counted;
  readonly #counter: TokenCounter;
  readonly #onFailure: (error: unknown) => void;
  /** Not counted: what is being counted, and what came since that began. */
  #pending = "";
  #tail = "";
  #outputTokens = 0;
  #inputTokens: number | undefined;
  #countingInput: Promise<number> | undefined;
  #countingOutput: Promise<unknown> | undefined;
  uncounted = 0;

  constructor(request: Counted, counter: TokenCounter, onFailure: (error: unknown) => void) {
    this.#request = request;
    this.#counter = counter;
    this.#onFailure = onFailure;
  }

  add(text: string): void {
    this.#tail += text;
    this.uncounted += text.length;
  }

  input(): Promise<number> {
    this.#countingInput ??= this.#countInput();
    return this.#countingInput;
  }

  output(): Promise<number> {
    const before = this.#countingOutput ?? Promise.resolve();
    const counted = before.then(() => this.#countOutput());
    this.#countingOutput = counted;
    return counted;
  }

  guess(): [input: number, output: number] {
    return [this.#guessInput(), this.#guessOutput()];
  }

  #guessInput(): number {
    return this.#inputTokens ?? this.#request.guessedInput;
  }

  #guessOutput(): number {
    return this.#outputTokens + guessText(this.#pending) + guessText(this.#tail);
  }

  async #countInput(): Promise<number> {
    try {
      const { body, images, items } = this.#request;
      this.#inputTokens = await estimateInput(body, images, items, this.#counter);
    } catch (error) {
      this.#countingInput = undefined;
      this.#onFailure(error);
    }
    return this.#guessInput();
  }

  async #countOutput(): Promise<number> {
    if (this.#tail === "") return this.#outputTokens;
    this.#pending = this.#tail;
    this.#tail = "";
    this.uncounted = 0;
    try {
      this.#outputTokens += await this.#counter.count([this.#pending]);
    } catch (error) {
      this.#tail = this.#pending + this.#tail;
      this.#pending = "";
      this.#onFailure(error);
      return this.#guessOutput();
    }
    this.#pending = "";
    return this.#outputTokens;
  }
}
