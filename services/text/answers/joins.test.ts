import { expect, test } from "vitest";
import type { Stop } from "#kit/base/stop.ts";
import { manualClock } from "#kit/time/clock.ts";
import { UnderWay } from "../base/under-way.ts";
import { type Begin, createJoins, type Seat } from "./joins.ts";
import { createReplayRoom } from "./replay-room.ts";

/** Begins a stream of pieces of ten bytes. */
const streamOf = (pieces: number): Begin => {
  async function* events() {
    for (let n = 0; n < pieces; n++) yield new Uint8Array(10);
  }
  return async () => ({ kind: "events", events: events(), replayed: false, ignored: [] });
};
/** Reads this many pieces. */
const take = async (seat: Seat, pieces: number) => {
  const answer = await seat.answer;
  if (answer.kind !== "events") throw new TypeError("no stream");
  const reader = answer.events[Symbol.asyncIterator]();
  for (let n = 0; n < pieces; n++) await reader.next();
};

test("what is kept for a caller that takes nothing counts, also once the stream has ended", async () => {
  const running = new UnderWay<Stop>();
  const joins = createJoins(running, manualClock(0), createReplayRoom(1_000, 40));
  // Its callers do not repeat it.
  const how = { accountId: "acct_1", isStream: false };
  const ask = (name: string, pieces: number) => joins.take(name, how, streamOf(pieces));
  const [quick, slow] = [ask("one", 3), ask("one", 3)];
  expect(slow.joined).toBe(true);
  await Promise.all([take(quick, 4), slow.answer]);
  await running.whenNone();
  quick.leave();
  // Thirty bytes of the first and twenty of the second are more than the account may have.
  const second = ask("two", 9);
  await take(second, 2);
  expect(joins.join("two")).toBeUndefined();
  slow.leave();
  const third = ask("three", 9);
  second.leave();
  await take(third, 2);
  expect(joins.join("three")).toBeDefined();
});
