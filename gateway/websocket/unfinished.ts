// Bounds the memory of messages that have not come completely. The WebSocket library has no such bound.

import type { Socket } from "node:net";
import type { Places } from "#kit/share/fair-share.ts";
import { bodyBytesAMs } from "../limits.ts";
import type { ComingMessage } from "../sweep.ts";
import { freeMessageBytes, messageStepBytes } from "./limits.ts";

/** The steps that the bound takes with a connection. */
interface UnfinishedOptions {
  room(bytes: number, coming: ComingMessage): Places | Promise<Places>;
  /** Reads nothing of the connection meanwhile. */
  wait(until: Promise<unknown>): void;
  /** There is no room for the message. */
  refused(): void;
  /** The time of the monotonic clock, in ms. */
  nowMs(): number;
}

/** The room that a message took while it came. */
export interface TakenRoom extends Disposable {
  bytes: number;
}

/**
 * Takes room for the bytes of a message that is not complete, as they come. Call `finished` with each message, and at the end of the
 * connection. It hands over the room.
 */
export function boundUnfinished(
  raw: Socket,
  { room, wait, refused, nowMs }: UnfinishedOptions,
): { finished(): TakenRoom } {
  let came = 0;
  let taken = freeMessageBytes;
  let places: Places[] = [];
  /** Changes with each message, so that room that comes too late is given back. */
  let message = 0;
  /** The time at which the bytes so far would have come at the slowest pace that is allowed while others wait. */
  let paceAtMs = 0;
  const keep = (place: Places, of: number) => {
    if (of === message) places.push(place);
    else place[Symbol.dispose]();
  };
  const comingOf = (of: number): ComingMessage => ({
    stillMs: () => (of !== message || raw.readableFlowing === false ? 0 : nowMs() - paceAtMs),
    end: refused,
  });
  // Before the listener of ws, in which messages become complete.
  raw.prependListener("data", (chunk: Buffer) => {
    const now = nowMs();
    paceAtMs = came === 0 ? now : Math.min(now, paceAtMs + chunk.length / bodyBytesAMs);
    came += chunk.length;
    while (came > taken) {
      taken += messageStepBytes;
      const of = message;
      const place = room(messageStepBytes, comingOf(of));
      if (!(place instanceof Promise)) {
        keep(place, of);
        continue;
      }
      const late = place.then((later) => {
        // The connection was not read in the meantime.
        paceAtMs = nowMs();
        keep(later, of);
      });
      wait(late.catch(refused));
    }
  });
  return {
    finished() {
      const kept = places;
      came = 0;
      taken = freeMessageBytes;
      message++;
      places = [];
      return {
        bytes: kept.length * messageStepBytes,
        [Symbol.dispose]() {
          for (const place of kept) place[Symbol.dispose]();
        },
      };
    },
  };
}
