import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { createFairShare } from "#kit/share/fair-share.ts";
import { UnkeptSpeechError } from "../../upstreams/media/port.ts";
import { takeRoom } from "./room.ts";

const mib = 1024 * 1024;
const { signal } = new AbortController();

/** Ten MiB in all, six for one account. */
const createMemory = (waitMs = 50) =>
  createFairShare({ places: 10 * mib, each: { places: 6 * mib, waiting: 64 }, waitMs });

/** Can an account have this many bytes now? */
function isFree(memory: ReturnType<typeof createMemory>, bytes: number, accountId = "acc_9") {
  using places = memory.takeFree(accountId, bytes);
  return places !== undefined;
}

describe("the room of a sound in memory", () => {
  test("is what was reckoned, then what came, then free again", async () => {
    const memory = createMemory();
    const room = await takeRoom(memory, { accountId: "acc_1", mostBytes: 6 * mib }, signal);
    await room.reach(6 * mib);
    expect(isFree(memory, 5 * mib)).toBe(false);
    room.shrink(4 * mib);
    expect(isFree(memory, 6 * mib)).toBe(true);
    room[Symbol.dispose]();
    expect(isFree(memory, 6 * mib, "acc_1")).toBe(true);
  });

  test("grows with what comes beyond it, and all of it is given back", async () => {
    const memory = createMemory();
    const room = await takeRoom(memory, { accountId: "acc_1", mostBytes: mib }, signal);
    for (const size of [1.2, 2, 3.7, 5.5]) await room.reach(size * mib);
    expect(isFree(memory, mib, "acc_1")).toBe(false);
    room.shrink(1.5 * mib);
    expect(isFree(memory, 4.5 * mib, "acc_1")).toBe(true);
    expect(isFree(memory, 4.6 * mib, "acc_1")).toBe(false);
    room[Symbol.dispose]();
    expect(isFree(memory, 6 * mib, "acc_1")).toBe(true);
  });

  test("of two that wait for each other's is given up by the first, and the other goes on", async () => {
    const memory = createMemory();
    const take = () => takeRoom(memory, { accountId: "acc_1", mostBytes: 3 * mib }, signal);
    const rooms = [await take(), await take()];
    const grow = async (room = rooms.pop()) => {
      using own = room;
      await own?.reach(4 * mib);
    };
    const first = grow();
    await delay(20);
    const ended = await Promise.allSettled([first, grow()]);
    expect(ended.map(({ status }) => status)).toEqual(["rejected", "fulfilled"]);
    await expect(first).rejects.toBeInstanceOf(UnkeptSpeechError);
    expect(isFree(memory, 6 * mib, "acc_1")).toBe(true);
  });

  test("is not taken any more once the speech has ended", async () => {
    const memory = createMemory(10_000);
    const other = memory.takeFree("acc_1", 4 * mib);
    const room = await takeRoom(memory, { accountId: "acc_1", mostBytes: 2 * mib }, signal);
    const growing = room.reach(3 * mib);
    room[Symbol.dispose]();
    await expect(growing).rejects.toThrow("the speech has ended");
    await expect(room.reach(3 * mib)).rejects.toThrow("the speech has ended");
    other?.[Symbol.dispose]();
    expect(isFree(memory, 6 * mib, "acc_1")).toBe(true);
  });

  test("is given back where it is given in the moment in which the speech ends", async () => {
    const memory = createMemory(10_000);
    const other = memory.takeFree("acc_1", 4 * mib);
    const room = await takeRoom(memory, { accountId: "acc_1", mostBytes: 2 * mib }, signal);
    const growing = room.reach(3 * mib);
    other?.[Symbol.dispose]();
    room[Symbol.dispose]();
    await expect(growing).rejects.toThrow("the speech has ended");
    expect(isFree(memory, 6 * mib, "acc_1")).toBe(true);
  });

  test("is not waited for by a caller that has left", async () => {
    const memory = createMemory(10_000);
    using _all = memory.takeFree("acc_1", 6 * mib);
    const left = new AbortController();
    const asked = takeRoom(memory, { accountId: "acc_1", mostBytes: mib }, left.signal);
    const reason = new Error("left");
    left.abort(reason);
    await expect(asked).rejects.toBe(reason);
  });
});
