// Runs one search over a changing set of open things, such as bodies or connections, in place of a timer for each.

import type { Clock } from "#kit/time/clock.ts";

/**
 * Searches a collection again and again while it holds anything. One timer serves all that it holds, because nearly all of it is over
 * long before a search finds it. Call the result where something was added.
 */
export function createSweep(
  clock: Clock,
  open: { readonly size: number },
  { everyMs, look }: { everyMs: number; look: () => void },
): () => void {
  let isRunning = false;
  const run = async () => {
    isRunning = true;
    while (open.size > 0) {
      await clock.sleep(everyMs);
      look();
    }
    isRunning = false;
  };
  return function sweep() {
    if (!isRunning) void run();
  };
}

/** A message that holds room while it comes. */
export interface ComingMessage {
  /** By how much it is later than it may be while others wait, in ms. */
  stillMs(): number;
  /** Ends it. Its room is given back. */
  end(): void;
}
