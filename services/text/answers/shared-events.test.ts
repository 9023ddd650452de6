import { describe, expect, test } from "vitest";
import { createReplayRoom } from "./replay-room.ts";
import { type SharedEvents, shareEvents } from "./shared-events.ts";

/** A source that counts how often it was pulled. Each piece has `size` bytes, and the first byte is its number. */
function source(count: number, size = 10) {
  const state = { pulls: 0 };
  async function* pull() {
    while (state.pulls < count) yield new Uint8Array(size).fill(state.pulls++);
  }
  return { state, pull: pull() };
}

interface Reading {
  next(): Promise<Uint8Array | undefined>;
  close(): void;
}

const reading = (shared: SharedEvents): Reading => {
  const reader = shared.read();
  if (!reader) throw new Error("it cannot be joined");
  const pieces = reader.events[Symbol.asyncIterator]();
  return { next: async () => (await pieces.next()).value, close: () => reader.close() };
};
const numbersOf = async (reader: Reading) => {
  const numbers: number[] = [];
  for (let piece = await reader.next(); piece; piece = await reader.next()) {
    numbers.push(piece[0] ?? -1);
  }
  return numbers;
};

describe("a shared stream", () => {
  test("is pulled as the fastest reader wants, once for all", async () => {
    const { state, pull } = source(3);
    const shared = shareEvents(pull);
    const [fast, slow] = [reading(shared), reading(shared)];
    await fast.next();
    await fast.next();
    expect(state.pulls).toBe(2);
    expect(await numbersOf(slow)).toEqual([0, 1, 2]);
    expect(await fast.next()).toEqual(new Uint8Array(10).fill(2));
    expect(await fast.next()).toBeUndefined();
  });
  test("gives a late reader everything, also after its end", async () => {
    const shared = shareEvents(source(3).pull);
    expect(await numbersOf(reading(shared))).toEqual([0, 1, 2]);
    expect(await numbersOf(reading(shared))).toEqual([0, 1, 2]);
  });
  test("readers at the same time share a pull", async () => {
    const { state, pull } = source(1);
    const shared = shareEvents(pull);
    const pieces = await Promise.all([1, 2, 3].map(() => reading(shared).next()));
    expect(new Set(pieces).size).toBe(1);
    expect(state.pulls).toBe(1);
  });
  test("beyond its bound takes no new reader, and the fastest waits for the slowest", async () => {
    const { state, pull } = source(100);
    const shared = shareEvents(pull, { maxBytes: 35 });
    const [fast, slow] = [reading(shared), reading(shared)];
    for (let n = 0; n < 4; n++) await fast.next();
    expect(shared.read()).toBeUndefined();
    const waiting = fast.next();
    await new Promise((resolve) => setImmediate(resolve));
    expect(state.pulls).toBe(4);
    await slow.next();
    expect((await waiting)?.[0]).toBe(4);
    expect(state.pulls).toBe(5);
    const rest = await Promise.all([numbersOf(fast), numbersOf(slow)]);
    expect(rest[0]).toEqual(Array.from({ length: 95 }, (_, n) => n + 5));
    expect(rest[1]).toEqual(Array.from({ length: 99 }, (_, n) => n + 1));
  });
  test("a reader that leaves holds no other back", async () => {
    const shared = shareEvents(source(10).pull, { maxBytes: 15 });
    const [fast, slow] = [reading(shared), reading(shared)];
    await fast.next();
    await fast.next();
    const waiting = fast.next();
    slow.close();
    expect((await waiting)?.[0]).toBe(2);
    expect(await numbersOf(fast)).toHaveLength(7);
  });
  test("beyond the room of its account, or of all, takes no new reader either", async () => {
    const room = createReplayRoom(60, 40);
    const share = (accountId: string) => {
      const bytes = room.open(accountId);
      return { bytes, events: shareEvents(source(50).pull, { room: bytes }) };
    };
    const take = async (events: SharedEvents, pieces: number) => {
      const reader = reading(events);
      for (let n = 0; n < pieces; n++) await reader.next();
      return reader;
    };
    const [first, second, other] = [share("a"), share("a"), share("b")];
    await take(first.events, 3);
    const reader = await take(second.events, 2);
    // The fifth piece of ten bytes was too much. The second stream goes on for its one reader.
    expect(first.events.read()).toBeDefined();
    expect(second.events.read()).toBeUndefined();
    expect(await numbersOf(reader)).toHaveLength(48);
    // Its bytes are given back: three pieces of the first stream, three of the other.
    await take(other.events, 3);
    expect(other.events.read()).toBeDefined();
    await take(share("c").events, 0);
    const third = share("c");
    await take(third.events, 1);
    expect(third.events.read()).toBeUndefined();
    first.bytes.free();
    const fourth = share("c");
    await take(fourth.events, 3);
    expect(fourth.events.read()).toBeDefined();
  });
  test("a single reader is never held up by itself", async () => {
    expect(await numbersOf(reading(shareEvents(source(50).pull, { maxBytes: 15 })))).toHaveLength(
      50,
    );
  });
});
