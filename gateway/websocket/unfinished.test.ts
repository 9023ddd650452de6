import { EventEmitter } from "node:events";
import type { Socket } from "node:net";
import { expect, test } from "vitest";
import { manualClock } from "#kit/time/clock.ts";
import { BodyReader } from "../body.ts";
import { boundUnfinished } from "./unfinished.ts";

const mib = 1024 * 1024;
const signal = new AbortController().signal;

/** A connection on which a message comes, and the memory for 64 MiB of bodies. */
function begin() {
  const clock = manualClock();
  const payers = { isPaying: () => true };
  const bodies = new BodyReader({ clock, maxBytesInFlight: 64 * mib, payers, onHeld() {} });
  const raw = Object.assign(new EventEmitter(), { readableFlowing: true });
  let ended = 0;
  const unfinished = boundUnfinished(raw as unknown as Socket, {
    room: (bytes, coming) => bodies.room("slow", bytes, signal, coming),
    wait() {},
    refused: () => {
      ended++;
    },
    nowMs: () => clock.steady(),
  });
  const comes = (bytes: number) => raw.emit("data", { length: bytes });
  return { clock, bodies, unfinished, comes, ended: () => ended };
}

test("a message that stalls gives way to another account's body", async () => {
  const { clock, bodies, comes, ended } = begin();
  comes(64 * mib);
  const other = Promise.resolve(bodies.room("other", mib, signal));
  await clock.advance(500);
  expect(ended()).toBe(0);
  await clock.advance(3_000);
  expect(ended()).toBeGreaterThan(0);
  await expect(other).resolves.toBeDefined();
});

test("a complete message keeps the room that it took", async () => {
  const { clock, bodies, unfinished, comes, ended } = begin();
  comes(64 * mib);
  const taken = unfinished.finished();
  expect(taken.bytes).toBe(64 * mib);
  let isIn = false;
  const other = Promise.resolve(bodies.room("other", mib, signal)).then(() => {
    isIn = true;
  });
  await clock.advance(3_000);
  expect([isIn, ended()]).toEqual([false, 0]);
  taken[Symbol.dispose]();
  await other;
  expect(isIn).toBe(true);
});
