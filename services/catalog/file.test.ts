import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { manualClock } from "#kit/time/clock.ts";
import {
  type CatalogRead,
  catalogReader,
  type FileRead,
  readCatalogFile,
  watchCatalog,
} from "./file.ts";
import { maxFileBytes, pollMs } from "./limits.ts";

let folder: string;
let path: string;
let seen: FileRead[];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "genmesh-watch-"));
  path = join(folder, "catalog.yaml");
  seen = [];
});
afterEach(() => rm(folder, { recursive: true }));

/** A watch of `path` that has seen the present file. */
async function watching(clock = manualClock()) {
  const known = await readCatalogFile(path);
  return watchCatalog({
    read: catalogReader(path),
    clock,
    known,
    changed: (read) => seen.push(read),
  });
}

describe("a watched file", () => {
  test("that stays as it is says nothing", async () => {
    await writeFile(path, "one");
    const watch = await watching();
    for (let i = 0; i < 4; i++) await watch.look();
    expect(seen).toEqual([]);
  });

  test("is judged once for each change, also of equal length and date", async () => {
    await writeFile(path, "one");
    const watch = await watching();
    await writeFile(path, "two");
    for (let i = 0; i < 4; i++) await watch.look();
    expect(seen).toEqual([{ text: "two" }]);
    await writeFile(path, "one");
    for (let i = 0; i < 4; i++) await watch.look();
    expect(seen).toEqual([{ text: "two" }, { text: "one" }]);
  });

  test("is not judged while half of it is written", async () => {
    await writeFile(path, "one");
    const watch = await watching();
    await writeFile(path, "tw");
    await watch.look();
    await writeFile(path, "two");
    await watch.look();
    await watch.look();
    expect(seen).toEqual([{ text: "two" }]);
  });

  test("that never comes to rest is judged at the third look", async () => {
    await writeFile(path, "0");
    const watch = await watching();
    for (const text of ["1", "2", "3"]) {
      await writeFile(path, text);
      await watch.look();
    }
    expect(seen).toEqual([{ text: "3" }]);
  });

  test("may be away between two looks, but is missed when it stays away", async () => {
    await writeFile(path, "one");
    const watch = await watching();
    await rm(path);
    await watch.look();
    await writeFile(path, "one");
    await watch.look();
    expect(seen).toEqual([]);
    await rm(path);
    for (let i = 0; i < 4; i++) await watch.look();
    expect(seen).toEqual([{ fault: "the file cannot be read (ENOENT)" }]);
  });

  test("is seen through the swapped links of a mounted ConfigMap", async () => {
    for (const name of ["..1", "..2"]) {
      await mkdir(join(folder, name));
      await writeFile(join(folder, name, "catalog.yaml"), name);
    }
    await symlink("..1", join(folder, "..data"));
    await symlink(join("..data", "catalog.yaml"), path);
    const watch = await watching();
    await symlink("..2", join(folder, "..new"));
    await rename(join(folder, "..new"), join(folder, "..data"));
    await watch.look();
    await watch.look();
    expect(seen).toEqual([{ text: "..2" }]);
  });

  test("is looked at every 500 ms until the signal aborts", async () => {
    await writeFile(path, "one");
    const clock = manualClock();
    const slept: number[] = [];
    const stop = new AbortController();
    const watch = await watching({
      ...clock,
      sleep: async (ms) => {
        slept.push(ms);
        if (slept.length === 3) stop.abort();
      },
    });
    await watch.run(stop.signal);
    expect(slept).toEqual([pollMs, pollMs, pollMs]);
    expect(pollMs).toBe(500);
  });
});

test("a look that takes long does not bring back what a later one has replaced", async () => {
  const numbers: (number | undefined)[] = [];
  const slow = Promise.withResolvers<CatalogRead>();
  const reads = [slow.promise, Promise.resolve({ text: "new", number: 2 })];
  const watch = watchCatalog({
    read: async () => (await reads.shift()) ?? { fault: "read too often" },
    clock: manualClock(),
    known: { text: "old", number: 1 },
    changed: ({ number }) => numbers.push(number),
  });
  const looks = [watch.look(), watch.look()];
  await new Promise((resolve) => setImmediate(resolve));
  slow.resolve({ text: "old", number: 1 });
  await Promise.all(looks);
  expect(numbers).toEqual([2]);
});

describe("reading refuses, in words and without rejecting", () => {
  test("a folder", async () => {
    await mkdir(path);
    expect((await readCatalogFile(path)).fault).toMatch(/regular file/);
  });

  test("what is too large", async () => {
    await writeFile(path, Buffer.alloc(maxFileBytes, "#"));
    expect((await readCatalogFile(path)).fault).toBeUndefined();
    await writeFile(path, Buffer.alloc(maxFileBytes + 1, "#"));
    expect((await readCatalogFile(path)).fault).toMatch(/more than 1048576 bytes/);
  });

  test("what is no UTF-8", async () => {
    await writeFile(path, Buffer.from([0x61, 0xff]));
    expect((await readCatalogFile(path)).fault).toMatch(/UTF-8/);
  });
});
