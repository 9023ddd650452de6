// Counts the tokens of texts inside a thread. `count.ts` starts it there.

import { countTokens } from "gpt-tokenizer/encoding/o200k_base";
import { mostTokens, type Tokens } from "./most.ts";

/** Pieces of text whose tokens are added up until they exceed `limit`. */
export interface Batch {
  pieces: readonly string[];
  limit: number;
  /** Is the count of other vocabularies needed too? */
  withMost: boolean;
}

// Text that looks like a control token is treated as text.
const plain = { allowedSpecial: new Set<string>(), disallowedSpecial: new Set<string>() };

/** Counts a batch in a thread. */
export function inThread({ pieces, limit, withMost }: Batch): Tokens {
  const sum: Tokens = { tokens: 0, most: 0 };
  for (const piece of pieces) {
    const tokens = countTokens(piece, plain);
    sum.tokens += tokens;
    sum.most += withMost ? mostTokens(piece, tokens) : tokens;
    if (sum.tokens > limit) break;
  }
  return sum;
}
