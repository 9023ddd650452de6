import { parentPort } from "node:worker_threads";
import { countTokens } from "gpt-tokenizer/encoding/o200k_base";
import { muteThread } from "#kit/threads/thread.ts";
import { mostTokens, type Tokens } from "./most.ts";
import type { Batch } from "./thread.ts";

/** The entry of the counting thread: answers each batch with its tokens. What goes wrong ends the thread. */

// Text that looks like a control token is text.
const plain = { allowedSpecial: new Set<string>(), disallowedSpecial: new Set<string>() };

const port = parentPort;
if (port === null) throw new Error("this file is the entry of a counting thread");
muteThread();
port.on("message", ({ pieces, limit, withMost }: Batch) => {
  const sum: Tokens = { tokens: 0, most: 0 };
  for (const piece of pieces) {
    const tokens = countTokens(piece, plain);
    sum.tokens += tokens;
    sum.most += withMost ? mostTokens(piece, tokens) : tokens;
    if (sum.tokens > limit) break;
  }
  port.postMessage(sum);
});
