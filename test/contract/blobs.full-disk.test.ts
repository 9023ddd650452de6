import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ErrorReason } from "#kit/base/errors.ts";
import { randomIds } from "#kit/base/ids.ts";
import { openFolderBlobs } from "#kit/store/blobs/folder.ts";
import { spool } from "#kit/store/blobs/s3-spool.ts";
import { systemClock } from "#kit/time/clock.ts";
import { createSpooler } from "../../services/media/files/spool.ts";

/** The folder of a file system of 4 MiB. */
let folder: string;
let small: string;
let whyNot: string | undefined;
const room = 4 * 1024 * 1024;
const clock = systemClock;
const ids = randomIds;
const away = { reason: ErrorReason.SERVICE_UNAVAILABLE, cause: { code: "ENOSPC" } };

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "genmesh-full-"));
  small = join(folder, "small");
  await mkdir(small);
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", `size=${room}`, "tmpfs", small], { stdio: "pipe" });
    whyNot = undefined;
  } catch (error) {
    whyNot = `a small file system cannot be mounted here: ${(error as Error).message.split("\n")[1]}`;
  }
});
afterEach(async () => {
  if (whyNot === undefined) execFileSync("umount", ["--lazy", small]);
  await rm(folder, { recursive: true });
});

async function* bytes(count: number): AsyncIterable<Uint8Array> {
  const chunk = Buffer.alloc(256 * 1024);
  for (let left = count; left > 0; left -= chunk.length) yield chunk.subarray(0, left);
}

test("a folder on a full disk is away, keeps nothing of it, and takes the same key with room", async ({
  skip,
}) => {
  if (whyNot !== undefined) skip(whyNot);
  const blobs = await openFolderBlobs({ folder: join(small, "blobs"), clock, ids });
  await expect(blobs.put("a/large", bytes(2 * room))).rejects.toMatchObject(away);
  expect(await readdir(join(small, "blobs", ".unfinished"))).toEqual([]);
  expect(await blobs.stat("a/large")).toBeUndefined();
  const filler = join(small, "filler");
  await expect(writeFile(filler, Buffer.alloc(2 * room))).rejects.toMatchObject({ code: "ENOSPC" });
  await expect(blobs.put("a/small", bytes(100_000))).rejects.toMatchObject(away);
  await rm(filler);
  expect(await blobs.put("a/small", bytes(100_000))).toMatchObject({ sizeBytes: 100_000 });
});

test("what waits on a full disk for S3, or as an upload, is refused as away", async ({ skip }) => {
  if (whyNot !== undefined) skip(whyNot);
  const options = { folder: small, ids, signal: undefined };
  await expect(spool(bytes(2 * room), options)).rejects.toMatchObject(away);
  const uploads = createSpooler({ folder: small, clock, ids });
  const tooLarge = () => new RangeError("too large");
  await expect(uploads.take(bytes(2 * room), 4 * room, tooLarge)).rejects.toMatchObject(away);
});

test("a source's own error stays its own, with any code", async ({ skip }) => {
  if (whyNot !== undefined) skip(whyNot);
  const blobs = await openFolderBlobs({ folder: join(small, "blobs"), clock, ids });
  const own = Object.assign(new Error("the source's"), { code: "ENOSPC" });
  async function* source(): AsyncIterable<Uint8Array> {
    yield Buffer.from("some");
    throw own;
  }
  await expect(blobs.put("a/source", source())).rejects.toBe(own);
});
