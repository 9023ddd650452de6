import { setImmediate as nextTurn } from "node:timers/promises";

/** Counts tokens where a number has to be right rather than quick: estimates and refusals. */
export interface TokenCounter {
  /** Tokens of all texts together. Stops, with a number above `limit`, once that is exceeded. */
  count(texts: readonly string[], limit?: number): Promise<number>;
}

/**
 * Characters counted in one go. The tokenizer takes time in the square of an unbroken run (64 KiB of one letter: 3 s),
 * so runs are cut; a cut adds one token at most, and is laid before a space, where it adds none, if there is one near.
 */
const sliceLength = 512;
const lookBack = 64;
/** Slices after which the event loop gets a turn: about 5 ms of the worst text. */
const slicesATurn = 32;

// Text that looks like a control token is text.
const plain = { allowedSpecial: new Set<string>(), disallowedSpecial: new Set<string>() };

/** A counter with the o200k_base vocabulary, which takes 300 ms and 60 MB to load: with the first count. */
export function createTokenCounter(): TokenCounter {
  let loading: Promise<(text: string) => number> | undefined;
  const load = async () => {
    const { countTokens } = await import("gpt-tokenizer/encoding/o200k_base");
    return (text: string) => countTokens(text, plain);
  };
  return {
    async count(texts, limit = Number.POSITIVE_INFINITY) {
      loading ??= load();
      const countOf = await loading;
      let sum = 0;
      let slices = 0;
      for (const text of texts) {
        for (const slice of slicesOf(text)) {
          sum += countOf(slice);
          if (sum > limit) return sum;
          if (++slices % slicesATurn === 0) await nextTurn();
        }
      }
      return sum;
    },
  };
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
