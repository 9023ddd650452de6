import type { Socket } from "node:net";
import type { Places } from "#kit/share/fair-share.ts";
import { freeMessageBytes, messageStepBytes } from "./limits.ts";

/** The steps that the bound takes with a connection. */
interface UnfinishedOptions {
  room(bytes: number): Places | Promise<Places>;
  /** Reads nothing of the connection meanwhile. */
  wait(until: Promise<unknown>): void;
  /** There is no room for the message. */
  refused(): void;
}

/**
 * Takes room for the bytes of a message that is not complete, as they come. Call `finished` with each message, and at the end of the
 * connection.
 */
export function boundUnfinished(
  raw: Socket,
  { room, wait, refused }: UnfinishedOptions,
): { finished(): void } {
  let came = 0;
  let taken = freeMessageBytes;
  let places: Places[] = [];
  /** Changes with each message, so that room that comes too late is given back. */
  let message = 0;
  const keep = (place: Places, of: number) => {
    if (of === message) places.push(place);
    else place[Symbol.dispose]();
  };
  // Before the listener of ws, in which messages become complete.
  raw.prependListener("data", (chunk: Buffer) => {
    came += chunk.length;
    while (came > taken) {
      taken += messageStepBytes;
      const of = message;
      const place = room(messageStepBytes);
      if (place instanceof Promise) wait(place.then((late) => keep(late, of), refused));
      else keep(place, of);
    }
  });
  return {
    finished() {
      came = 0;
      taken = freeMessageBytes;
      message++;
      for (const place of places) place[Symbol.dispose]();
      places = [];
    },
  };
}
