// Has tokens counted by a thread (`in-thread.ts`), which accounts share fairly, because counting would block every other request.
// `most.ts` says what another vocabulary may make of a count, `input-bound.ts` bounds a prompt without counting, and `tally.ts` adds up the tokens of a running request by this counter.

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

/** Tokens could not be counted. The error holds nothing of the text. */
export class CountError extends Error {
  override readonly name = "CountError";
}

/** Counts tokens exactly, in one vocabulary: for estimates, refusals, and answers whose upstream reports no usage. */
export interface TokenCounter {
  /**
   * Counts the tokens of all texts together. Stops once they exceed `limit`, with a number above it. Rejects with {@link CountError}
   * where they cannot be counted. Counts of different accounts have the same share of the thread.
   */
  count(texts: readonly string[], limit?: number, accountId?: string): Promise<number>;
  /** Counts the same tokens, and the most that another vocabulary may make of the texts. Rejects like `count`. */
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
 * Characters that are counted in one step. The tokenizer takes time in the square of an unbroken run (64 KiB of one letter: 3 s), so
 * runs are cut. A cut adds one token at most. Before a space it adds none, so a cut is made there if one is near.
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
 * A counter with the o200k_base vocabulary, in a thread of the workshop. Loading it takes 300 ms, a megabyte of text about as long.
 * Accounts take turns, a batch each, and so do the counts of one account. So neither a long prompt nor an account with many counts
 * makes a short count of another wait.
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

/** Tokens of all texts by count. Where they cannot be counted, they are guessed from their bytes. Never rejects. */
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

/** Tokens of a text by a guess, for a text that cannot be counted. */
export function guessText(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / bytesPerToken);
}

/** Bytes of one token of English text, in the vocabularies of today. */
export const bytesPerToken = 4;

/** Slices of all texts, in the batches that the thread gets. */
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
    // Only the near text is searched. A search in the whole text would go back to its beginning, slice by slice.
    const near = text.slice(end - lookBack + 1, end + 1).lastIndexOf(" ");
    const to = near >= 0 ? end - lookBack + 1 + near : wholeCharacter(text, end);
    yield text.slice(from, to);
    from = to;
  }
  if (from < text.length) yield text.slice(from);
}

/** The same place, or one before it where it lies between the halves of a surrogate pair. */
function wholeCharacter(text: string, at: number): number {
  const code = text.charCodeAt(at);
  return code >= 0xdc00 && code <= 0xdfff ? at - 1 : at;
}
