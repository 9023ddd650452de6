import { mkdir, mkdtemp, readdir, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { afterEach, describe, expect, test } from "vitest";
import { randomIds } from "#kit/base/ids.ts";
import { openFolderBlobs } from "#kit/store/blobs/folder.ts";
import { systemClock } from "#kit/time/clock.ts";
import { blobStoreContract } from "./blobs.suite.ts";

const folders: string[] = [];
async function freshFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "genmesh-blobs-"));
  folders.push(folder);
  return folder;
}
afterEach(async () => {
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true });
});

const openIn = (folder: string) => openFolderBlobs({ folder, clock: systemClock, ids: randomIds });

describe("a folder", () => {
  blobStoreContract(async () => openIn(await freshFolder()));

  test("of several writers of one key exactly one wins, and its bytes are whole", async () => {
    const blobs = await openIn(await freshFolder());
    const contents = Array.from({ length: 8 }, (_, i) => Buffer.alloc(300_000, i + 1));
    const ends = await Promise.allSettled(
      contents.map((content) => blobs.put("a/raced", one(content))),
    );
    const winner = ends.findIndex((end) => end.status === "fulfilled");
    expect(ends.filter((end) => end.status === "fulfilled")).toHaveLength(1);
    const read = await buffer(await blobs.openRead("a/raced"));
    expect(read.equals(contents[winner] ?? Buffer.alloc(0))).toBe(true);
  });

  test("survives being opened again; what a dead process left unfinished is removed", async () => {
    const folder = await freshFolder();
    await (await openIn(folder)).put("a/kept", one(Buffer.from("kept")));
    const scratch = join(folder, ".unfinished");
    await mkdir(scratch, { recursive: true });
    await writeFile(join(scratch, "put_old"), "half");
    await utimes(join(scratch, "put_old"), 1_000, 1_000);
    await writeFile(join(scratch, "put_new"), "another writer's");
    const again = await openIn(folder);
    expect(await readdir(scratch)).toEqual(["put_new"]);
    expect((await again.stat("a/kept"))?.sizeBytes).toBe(4);
  });
});

async function* one(content: Uint8Array): AsyncIterable<Uint8Array> {
  yield content;
}
