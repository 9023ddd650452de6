import type { PreparedRequest } from "../request/prepare.ts";
import type { TokenCounter } from "./count.ts";
import { estimateInput } from "./input-bound.ts";

/** Counts what a running request has used. Only what is asked for is counted: most requests are told by upstream. */
export interface Tally {
  /** Characters of output that are not counted yet. */
  readonly uncounted: number;
  /** Output that went past. */
  add(text: string): void;
  /** Input tokens; counted once. */
  input(): Promise<number>;
  /** Output tokens so far. */
  output(): Promise<number>;
}

/** A tally at zero. */
export function createTally(
  request: Pick<PreparedRequest, "body" | "images" | "items">,
  counter: TokenCounter,
): Tally {
  let tail = "";
  let outputTokens = 0;
  let inputTokens: Promise<number> | undefined;
  let counting: Promise<void> = Promise.resolve();
  return {
    get uncounted() {
      return tail.length;
    },
    add(text) {
      tail += text;
    },
    input() {
      inputTokens ??= estimateInput(request.body, request.images, request.items, counter);
      return inputTokens;
    },
    async output() {
      const text = tail;
      tail = "";
      counting = counting.then(async () => {
        outputTokens += await counter.count([text]);
      });
      await counting;
      return outputTokens;
    },
  };
}
