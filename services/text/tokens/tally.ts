// Adds up what a running request has used, for checkpoints and for ends without reported usage.

import type { PreparedRequest } from "../request/prepared.ts";
import { guessText, type TokenCounter } from "./count.ts";
import { type EstimatedInput, estimateInput } from "./input-bound.ts";
import type { Tokens } from "./most.ts";

/** Counts the tokens that a running request has used. It counts only on request, because most upstreams report their usage. */
export interface Tally {
  /** Characters of output whose count was not requested yet. */
  readonly uncounted: number;
  /** Adds output that passed. */
  add(text: string): void;
  /** Input tokens, which are counted once. Never rejects: where counting fails they are guessed, and the next call counts again. */
  input(): Promise<number>;
  /** Output tokens so far. Each text is counted once. Never rejects, like `input`. */
  output(): Promise<number>;
  /** Input and output tokens so far, without waiting. Texts that are not counted are guessed. */
  guess(): [input: number, output: number];
  /**
   * The most tokens that another vocabulary may make of them (see {@link Tokens.most}), without waiting. Texts that are not counted are
   * guessed.
   */
  most(): [input: number, output: number];
}

type Counted = EstimatedInput & Pick<PreparedRequest, "guessedInput" | "tokensAsSuch">;

/** A tally at zero. `onFailure` gets the errors of counts that failed. */
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
  /** Text without a count. `#pending` is being counted, and `#tail` came after that began. */
  #pending = "";
  #tail = "";
  readonly #output: Tokens = { tokens: 0, most: 0 };
  #input: Tokens | undefined;
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

  most(): [input: number, output: number] {
    const { guessedInput, mediaTokens } = this.#request;
    const guessed = guessedInput + mediaTokens.most - mediaTokens.estimate;
    const input = this.#input?.most ?? guessed;
    return [input, this.#output.most + this.#guessUncounted()];
  }

  #guessInput(): number {
    return this.#input?.tokens ?? this.#request.guessedInput;
  }

  #guessOutput(): number {
    return this.#output.tokens + this.#guessUncounted();
  }

  #guessUncounted(): number {
    return guessText(this.#pending) + guessText(this.#tail);
  }

  async #countInput(): Promise<number> {
    try {
      const { tokensAsSuch = 0 } = this.#request;
      const { tokens, most } = await estimateInput(this.#request, this.#counter);
      this.#input = { tokens: tokens + tokensAsSuch, most: most + tokensAsSuch };
    } catch (error) {
      this.#countingInput = undefined;
      this.#onFailure(error);
    }
    return this.#guessInput();
  }

  async #countOutput(): Promise<number> {
    if (this.#tail === "") return this.#output.tokens;
    this.#pending = this.#tail;
    this.#tail = "";
    this.uncounted = 0;
    try {
      const { tokens, most } = await this.#counter.measure([this.#pending]);
      this.#output.tokens += tokens;
      this.#output.most += most;
    } catch (error) {
      this.#tail = this.#pending + this.#tail;
      this.#pending = "";
      this.#onFailure(error);
      return this.#guessOutput();
    }
    this.#pending = "";
    return this.#output.tokens;
  }
}
