import type { PreparedRequest } from "../request/prepare.ts";
import type { TokenCounter } from "./count.ts";
import { estimateInput, guessText } from "./input-bound.ts";

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

/** A tally at zero. `onFailure` hears of what could not be counted. */
export function createTally(
  request: Pick<PreparedRequest, "body" | "images" | "items" | "guessedInput">,
  counter: TokenCounter,
  onFailure: (error: unknown) => void,
): Tally {
  /** Not counted: what is being counted, and what came since that began. */
  let pending = "";
  let tail = "";
  let uncounted = 0;
  let outputTokens = 0;
  let inputTokens: number | undefined;
  let countingInput: Promise<number> | undefined;
  let countingOutput: Promise<unknown> = Promise.resolve();
  const guessInput = () => inputTokens ?? request.guessedInput;
  const guessOutput = () => outputTokens + guessText(pending) + guessText(tail);

  const countInput = async () => {
    try {
      const { body, images, items } = request;
      inputTokens = await estimateInput(body, images, items, counter);
    } catch (error) {
      countingInput = undefined;
      onFailure(error);
    }
    return guessInput();
  };
  const countOutput = async () => {
    if (tail === "") return outputTokens;
    pending = tail;
    tail = "";
    uncounted = 0;
    try {
      outputTokens += await counter.count([pending]);
    } catch (error) {
      tail = pending + tail;
      pending = "";
      onFailure(error);
      return guessOutput();
    }
    pending = "";
    return outputTokens;
  };
  return {
    get uncounted() {
      return uncounted;
    },
    add(text) {
      tail += text;
      uncounted += text.length;
    },
    input() {
      countingInput ??= countInput();
      return countingInput;
    },
    output() {
      const counted = countingOutput.then(countOutput);
      countingOutput = counted;
      return counted;
    },
    guess: () => [guessInput(), guessOutput()],
  };
}
