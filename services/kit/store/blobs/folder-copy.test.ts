import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { copyFolderBlobs } from "./folder-copy.ts";

/** A disk of its own on Linux, where it is there. */
const otherDisk = "/dev/shm";
const deviceOf = (path: string) =>
  stat(path).then(
    ({ dev }) => dev,
    () => undefined,
  );
const isOther = ![undefined, await deviceOf(tmpdir())].includes(await deviceOf(otherDisk));

const stack = new AsyncDisposableStack();
afterAll(() => stack.disposeAsync());
let from: string;

async function folderIn(parent: string): Promise<string> {
  const path = await mkdtemp(join(parent, "genmesh-copies-"));
  stack.defer(() => rm(path, { recursive: true }));
  return path;
}

beforeAll(async () => {
  from = await folderIn(tmpdir());
  for (const shard of ["0a", "ff", ".unfinished"]) await mkdir(join(from, shard));
  await writeFile(join(from, "0a/outputs~a"), "first");
  await writeFile(join(from, "ff/uploads~b"), "second");
  await writeFile(join(from, ".unfinished/put_c"), "half");
  // As an earlier version may have left it.
  await chmod(join(from, "ff/uploads~b"), 0o644);
});

describe.each([
  ["on one disk", tmpdir(), true],
  ["on another disk", otherDisk, isOther],
])("%s", (_, parent, isThere) => {
  test.skipIf(!isThere)("every whole blob is copied, for this user alone", async () => {
    const to = join(await folderIn(parent), "copy");
    expect(await copyFolderBlobs(from, to)).toEqual({ count: 2, bytes: 11 });
    expect((await readdir(to, { recursive: true })).sort()).toEqual([
      ...["0a", "0a/outputs~a", "ff", "ff/uploads~b"],
    ]);
    expect(await readFile(join(to, "ff/uploads~b"), "utf8")).toBe("second");
    const modes = { "": 0o700, "0a": 0o700, "0a/outputs~a": 0o600, "ff/uploads~b": 0o600 };
    for (const [path, mode] of Object.entries(modes)) {
      expect((await stat(join(to, path))).mode & 0o777).toBe(mode);
    }
    expect((await stat(join(to, "0a/outputs~a"))).dev).toBe(await deviceOf(parent));
  });
});
