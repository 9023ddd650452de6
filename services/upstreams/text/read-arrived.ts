// Reads the rest of an answer that had arrived when its caller left, because the usage may be in it.

import { turn } from "#kit/base/in-turns.ts";
import { consume } from "#kit/stream/push-stream.ts";
import type { HttpBody } from "#kit/upstream/client.ts";
import { arrived, arrivedBytesATurn, justArrived, maxArrivedBytes, queued } from "./limits.ts";
import type { AnswerEvent } from "./port.ts";

type Batch = readonly AnswerEvent[];

/** The body of the answer that is read on. */
export interface ArrivingBody {
  body: Pick<HttpBody, "isHeldBack">;
  close(): void;
  /** Bytes of the body that have come so far. */
  bytes(): number;
}

/**
 * Reads the part of an answer that has arrived when its caller leaves, and then closes its upstream: see `StreamAnswer.readArrived`.
 */
export function readArrived(
  batches: AsyncIterable<Batch>,
  { body, close, bytes }: ArrivingBody,
  note: (events: Batch) => void,
): Promise<void> {
  const isHeldBack = body.isHeldBack();
  const { ms, quietMs } = isHeldBack ? arrived : justArrived;
  const fromMs = performance.now();
  const from = bytes();
  let moves = 0;
  // Timers run before sockets are read. On a busy machine, bytes may wait that came long before, so sockets are read once more.
  const closeIfQuiet = () => {
    const before = moves;
    setImmediate(() => moves === before && close());
  };
  const quiet = setTimeout(closeIfQuiet, quietMs);
  let lookedAt = from;
  const closeUnlessQueued = () => {
    const came = bytes() - lookedAt;
    lookedAt = bytes();
    const isQueue = isHeldBack && came >= queued.leastBytes;
    if (isQueue && performance.now() - fromMs < queued.ms) look = lookLater(queued.lookMs);
    else close();
  };
  const lookLater = (afterMs: number) => setTimeout(closeUnlessQueued, afterMs);
  let look = lookLater(ms);
  const moved = () => {
    moves++;
    quiet.refresh();
  };
  let turnedAt = from;
  const take = (events: Batch) => {
    note(events);
    moved();
    if (bytes() - from >= maxArrivedBytes) return false;
    if (bytes() - turnedAt < arrivedBytesATurn) return true;
    turnedAt = bytes();
    return turn().then(moved);
  };
  return (
    consume(batches, take)
      // The stream broke, or nothing more came. The events that were read count.
      .catch(() => {})
      .finally(() => {
        clearTimeout(quiet);
        clearTimeout(look);
      })
  );
}
