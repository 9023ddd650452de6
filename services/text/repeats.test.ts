import { afterEach, beforeEach, expect, test, vi } from "vitest";
import {
  events,
  type Feed,
  feed,
  jsonAnswer,
  type ScriptedUpstreams,
  scriptedUpstreams,
} from "../../test/contract/usage.upstream.ts";
import { createTextWorld, type Streamed, type TextWorld } from "../../test/contract/usage.world.ts";
import { repeatWaitMs } from "./base/limits.ts";

const ask = { model: "chat-1", input: "Tell me of the sea." };
const asStream = { ...ask, stream: true };
const key = { key: "one" };

let world: TextWorld;
let upstreams: ScriptedUpstreams;
let current: Feed;

beforeEach(async () => {
  upstreams = scriptedUpstreams(async ({ signal }) => {
    current = feed(signal);
    current.push(events.begin());
    return current.answer;
  });
  world = await createTextWorld({ upstreams });
});
afterEach(() => world[Symbol.asyncDispose]());

test("upstream is closed when no repeat comes after the last one has left, not before", async () => {
  const [one, two] = [1, 2].map(() => world.stream("RESPONSES", asStream, key)) as [
    Streamed,
    Streamed,
  ];
  await one.next();
  await two.next();
  await one[Symbol.asyncDispose]();
  current.push(events.delta("more"));
  expect(await two.next()).toContain("more");
  expect(current.isAborted).toBe(false);
  await two[Symbol.asyncDispose]();
  current.push(events.delta("more"));
  await world.clock.advance(repeatWaitMs - 1);
  expect(current.isAborted).toBe(false);
  await world.clock.advance(1);
  await vi.waitFor(() => expect(current.isAborted).toBe(true), { timeout: 10_000, interval: 1 });
  // The first count of a process starts its thread.
  await vi.waitFor(async () => expect((await world.wallet()).reserved).toBe(0n), 40_000);
  // Its idempotency key is free: the same request is a new one.
  upstreams.script = async () => jsonAnswer();
  expect((await world.ask("RESPONSES", ask, key)).replayed).toBe(false);
});

test("the last of several forms to leave closes upstream", async () => {
  const stream = world.stream("RESPONSES", asStream, key);
  await stream.next();
  const gone = new AbortController();
  const json = world.ask("RESPONSES", ask, { ...key, signal: gone.signal });
  await new Promise((resolve) => setImmediate(resolve));
  await stream[Symbol.asyncDispose]();
  expect(current.isAborted).toBe(false);
  gone.abort();
  await expect(json).rejects.toThrow();
  expect(current.isAborted).toBe(false);
  await world.clock.advance(repeatWaitMs);
  expect(current.isAborted).toBe(true);
});

test("a stream that ends while no caller is there is charged whole, and read by its repeat", async () => {
  const stream = world.stream("RESPONSES", asStream, key);
  const first = await stream.next();
  await stream[Symbol.asyncDispose]();
  current.push(events.delta("Hello"), events.end({ text: "Hello" }));
  await vi.waitFor(async () =>
    expect(await world.wallet()).toMatchObject({ reserved: 0n, spent: 311n }),
  );
  const again = world.stream("RESPONSES", asStream, key);
  const text = await again.rest();
  expect(text.startsWith(first ?? "-")).toBe(true);
  expect(text.endsWith("[DONE]\n\n")).toBe(true);
  expect(again.replayed()).toBe(true);
  expect(upstreams.sent).toHaveLength(1);
  expect(await world.wallet()).toMatchObject({ reserved: 0n, spent: 311n });
});

test("a caller that comes before the time is over keeps the stream, and its own leaving begins it anew", async () => {
  await using first = world.stream("RESPONSES", asStream, key);
  await first.next();
  await first[Symbol.asyncDispose]();
  await world.clock.advance(repeatWaitMs - 1);
  const second = world.stream("RESPONSES", asStream, key);
  await second.next();
  await world.clock.advance(repeatWaitMs);
  expect(current.isAborted).toBe(false);
  await second[Symbol.asyncDispose]();
  await world.clock.advance(repeatWaitMs - 1);
  expect(current.isAborted).toBe(false);
  await world.clock.advance(1);
  expect(current.isAborted).toBe(true);
  expect(upstreams.sent).toHaveLength(1);
});

test("a stream without a key is closed at once", async () => {
  const stream = world.stream("RESPONSES", asStream);
  await stream.next();
  await stream[Symbol.asyncDispose]();
  expect(current.isAborted).toBe(true);
});
