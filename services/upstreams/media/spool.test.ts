import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { systemClock } from "#kit/time/clock.ts";
import { generateLimits } from "./limits.ts";
import { createMemory } from "./memory.ts";
import { spool } from "./spool.ts";

const tempDir = await mkdtemp(join(tmpdir(), "genmesh-spool-"));
afterAll(() => rm(tempDir, { recursive: true }));

const mib = 1024 * 1024;
const task = (accountId: string) => ({ accountId, signal: AbortSignal.timeout(30_000) });

async function* chunks(bytes: number) {
  for (let left = bytes; left > 0; left -= mib) yield Buffer.alloc(Math.min(left, mib), left % 251);
}

test("bytes take room when they are loaded, by their number, and until they are disposed of", async () => {
  const memory = createMemory({ clock: systemClock });
  const { images } = memory;
  const { places, each } = generateLimits.imagesInMemory;
  const own = task("one");
  const spooled = await spool({ memory, tempDir }, own, chunks(10 * mib + 5), {
    maxBytes: 32 * mib,
  });
  expect(await readdir(tempDir)).toEqual([]);
  // Takes all of it.
  using _most = images.takeFree("other", each.places);
  using rest = images.takeFree("one", places - each.places);
  expect(rest).toBeDefined();
  const loading = spooled.load();
  expect(images.lacking()).toEqual(["one"]);
  rest?.shrink(places - each.places - (10 * mib + 4));
  expect(images.lacking()).toEqual(["one"]);
  rest?.shrink(places - each.places - (10 * mib + 5));
  const loaded = await loading;
  const expected: Buffer[] = [];
  for await (const chunk of chunks(10 * mib + 5)) expected.push(chunk);
  expect(loaded.bytes.equals(Buffer.concat(expected))).toBe(true);
  await spooled[Symbol.asyncDispose]();
  expect(images.takeFree("two", 1)).toBeUndefined();
  loaded[Symbol.dispose]();
  expect(images.takeFree("two", 10 * mib + 5)).toBeDefined();
});

test("few bytes take no room until it is wanted", async () => {
  const memory = createMemory({ clock: systemClock });
  const { images } = memory;
  const { places, each } = generateLimits.imagesInMemory;
  const bounds = { maxBytes: 32 * mib, freeBytes: 2 * mib };
  await using few = await spool({ memory, tempDir }, task("one"), chunks(2 * mib), bounds);
  await using more = await spool({ memory, tempDir }, task("one"), chunks(2 * mib + 1), bounds);
  using _most = images.takeFree("other", each.places);
  using rest = images.takeFree("one", places - each.places);
  using loaded = await few.load();
  const holding = loaded.hold();
  const loading = more.load();
  expect(images.lacking()).toEqual(["one"]);
  rest?.[Symbol.dispose]();
  await holding;
  using loadedMore = await loading;
  expect([loaded.bytes.length, loadedMore.bytes.length]).toEqual([2 * mib, 2 * mib + 1]);
});

test("a source that breaks off leaves nothing, and its error comes out", async () => {
  const memory = createMemory({ clock: systemClock });
  async function* broken() {
    yield Buffer.alloc(10);
    throw new Error("broken off");
  }
  const spooling = spool({ memory, tempDir }, task("one"), broken(), { maxBytes: mib });
  await expect(spooling).rejects.toThrow("broken off");
  expect(await readdir(tempDir)).toEqual([]);
});
