import { createFairShare } from "#kit/share/fair-share.ts";
import type { ThreadTask, Workshop } from "#kit/threads/workshop.ts";
import {
  countTurnWaitMs,
  maxCounts,
  tokenAnswerTimeoutMs,
  tokenBatchCharacters,
  tokenBatchesAtOnce,
  tokenBatchPieces,
  tokenBatchTries,
} from "../base/limits.ts";
import type { inThread } from "./in-thread.ts";
import type { Tokens } from "./most.ts";

/** Tokens could not be counted. Says nothing of the text. */
export class CountError extends Error {
  override readonly name = "CountError";
}

/** Counts tokens where a number has to be right rather than quick: estimates and refusals. */
export interface TokenCounter {
  /**
   * Tokens of all texts together. Stops, with a number above `limit`, once that is exceeded. Rejects with
   * {@link CountError} where they cannot be counted. Counts of different accounts have the same share of the thread.
   */
  count(texts: readonly string[], limit?: number, accountId?: string): Promise<number>;
  /** The same tokens, and as many as another vocabulary may make of them. Rejects as `count`. */
  measure(texts: readonly string[], accountId?: string): Promise<Tokens>;
}

/** The same counter, for one account. */
export function counterFor(accountId: string, counter: TokenCounter): TokenCounter {
  return {
    count: (texts, limit) => counter.count(texts, limit, accountId),
    measure: (texts) => counter.measure(texts, accountId),
  };
}

/**
 * Characters counted in one go. The tokenizer takes time in the square of an unbroken run (64 KiB of one letter: 3 s),
 * so runs are cut; a cut adds one token at most, and is laid before a space, where it adds none, if there is one near.
 */
const sliceLength = 512;
const lookBack = 64;

const counting: ThreadTask = {
  name: "counting",
  lane: "short",
  module: new URL("./in-thread.ts", import.meta.url),
  answerTimeoutMs: tokenAnswerTimeoutMs,
  tries: tokenBatchTries,
  toError: (why) => new CountError(why),
};

/**
 * A counter with the o200k_base vocabulary, in a thread of the workshop: loading it takes 300 ms, a megabyte of text about as
 * long. Accounts take turns, a batch each, and so do the counts of one: neither a long prompt nor an account that has
 * many counted keeps another's short one waiting.
 */
export function createTokenCounter(
  workshop: Workshop,
  { answerTimeoutMs = tokenAnswerTimeoutMs } = {},
): TokenCounter & AsyncDisposable {
  const task = { ...counting, answerTimeoutMs };
  const turns = createFairShare(
    {
      places: tokenBatchesAtOnce,
      each: { places: tokenBatchesAtOnce, waiting: maxCounts },
      waitMs: countTurnWaitMs,
    },
    {
      full: () => new CountError("too many counts are under way"),
      late: () => new CountError("the counting thread has too much to do"),
    },
  );
  const closing = new AbortController();
  let counts = 0;
  const counted = async (texts: readonly string[], accountId: string, limit?: number) => {
    if (counts >= maxCounts) throw new CountError("too many counts are under way");
    counts++;
    try {
      const sum: Tokens = { tokens: 0, most: 0 };
      for (const pieces of batchesOf(texts)) {
        using _turn = await turns.take(accountId, closing.signal);
        const left = (limit ?? Number.POSITIVE_INFINITY) - sum.tokens;
        const batch = { pieces, limit: left, withMost: limit === undefined };
        const { tokens, most } = await workshop.run<typeof inThread>(task, batch);
        sum.tokens += tokens;
        sum.most += most;
        if (tokens > left) break;
      }
      return sum;
    } finally {
      counts--;
    }
  };
  return {
    async count(texts, limit = Number.POSITIVE_INFINITY, accountId = "") {
      return (await counted(texts, accountId, limit)).tokens;
    },
    measure: (texts, accountId = "") => counted(texts, accountId),
    async [Symbol.asyncDispose]() {
      closing.abort(new CountError("the counting thread is closed"));
    },
  };
}

/** Tokens of all texts by count, or, where they cannot be counted, by a guess from their bytes. Never rejects. */
export async function countOrGuess(
  counter: TokenCounter,
  texts: readonly string[],
  limit?: number,
): Promise<number> {
  try {
    return await counter.count(texts, limit);
  } catch {
    return texts.reduce((sum, text) => sum + guessText(text), 0);
  }
}

/** Tokens of a text by a guess, where they cannot be counted. */
export function guessText(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / bytesPerToken);
}

/** Of English text, in the vocabularies of today. */
export const bytesPerToken = 4;

/** Slices of all texts, as many together as the thread is given at once. */
function* batchesOf(texts: readonly string[]): Iterable<string[]> {
  let batch: string[] = [];
  let characters = 0;
  for (const text of texts) {
    for (const slice of slicesOf(text)) {
      batch.push(slice);
      characters += slice.length;
      if (characters < tokenBatchCharacters && batch.length < tokenBatchPieces) continue;
      yield batch;
      batch = [];
      characters = 0;
    }
  }
  if (batch.length > 0) yield batch;
}

/** `text` in parts of at most {@link sliceLength} characters. */
export function* slicesOf(text: string): Iterable<string> {
  let from = 0;
  while (text.length - from > sliceLength) {
    const end = from + sliceLength;
    // Only what is near is looked at: from the whole text a search would go back to its beginning, slice by slice.
    const near = text.slice(end - lookBack + 1, end + 1).lastIndexOf(" ");
    const to = near >= 0 ? end - lookBack + 1 + near : wholeCharacter(text, end);
    yield text.slice(from, to);
    from = to;
  }
  if (from < text.length) yield text.slice(from);
}

/** Not between the halves of a surrogate pair. */
function wholeCharacter(text: string, at: number): number {
  const code = text.charCodeAt(at);
  return code >= 0xdc00 && code <= 0xdfff ? at - 1 : at;
}
