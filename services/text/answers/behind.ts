// Cuts the beginning off a stream for a caller that lost its connection and comes back for the rest.

import { staged } from "#kit/stream/stages.ts";
import type { Seat } from "./joins.ts";

/** The blank line that ends each event. */
const eventEnd = "\n\n";

/**
 * The same seat at a stream of responses, whose caller has the events up to a `sequence_number`. They are numbered from 0, without
 * gaps.
 */
export function behind(seat: Seat, sequenceNumber: number): Seat {
  const answer = seat.answer.then((begun) => {
    if (begun.kind === "json") return begun;
    let left = sequenceNumber + 1;
    const pass = (bytes: Uint8Array) => {
      const piece = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
      let at = 0;
      for (; left > 0 && at < piece.length; left--) at = piece.indexOf(eventEnd, at) + 2;
      return piece.subarray(at);
    };
    return { ...begun, events: staged(begun.events, { pass }) };
  });
  // A caller that left does not get the refusal.
  answer.catch(() => {});
  return { answer, joined: true, leave: seat.leave };
}
