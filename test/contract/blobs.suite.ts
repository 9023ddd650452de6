import { createHash } from "node:crypto";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import { BlobExistsError, BlobNotFoundError, type BlobStore } from "#kit/store/blobs.ts";

/** The rules for every blob store. `open` gives an empty store. */
export function blobStoreContract(open: () => Promise<BlobStore>): void {
  test("what was put is read back whole, with its size and digest", async () => {
    const blobs = await open();
    const stored = await blobs.put("images/job_1/file_1", pieces("hello ", "", "world"));
    expect(stored).toEqual({ sizeBytes: 11, sha256: sha256("hello world") });
    expect(await text(await blobs.openRead("images/job_1/file_1"))).toBe("hello world");
    expect(await blobs.stat("images/job_1/file_1")).toMatchObject({ sizeBytes: 11 });
  });

  test("an empty blob is a blob", async () => {
    const blobs = await open();
    expect(await blobs.put("a/empty", pieces())).toEqual({ sizeBytes: 0, sha256: sha256("") });
    expect(await text(await blobs.openRead("a/empty"))).toBe("");
  });

  test.each([
    { range: { start: 0, end: 0 }, want: "0" },
    { range: { start: 3, end: 6 }, want: "3456" },
    { range: { start: 9, end: 9 }, want: "9" },
    { range: { start: 0, end: 9 }, want: "0123456789" },
  ])("the range $range holds $want", async ({ range, want }) => {
    const blobs = await open();
    await blobs.put("a/digits", pieces("01234", "56789"));
    expect(await text(await blobs.openRead("a/digits", range))).toBe(want);
  });

  test("a blob larger than any buffer goes through unchanged", async () => {
    const blobs = await open();
    const piece = Buffer.alloc(1 << 20, "ab");
    const stored = await blobs.put("a/large", repeated(piece, 9));
    expect(stored.sizeBytes).toBe(9 << 20);
    const hash = createHash("sha256");
    for await (const chunk of await blobs.openRead("a/large")) hash.update(chunk as Buffer);
    expect(hash.digest("hex")).toBe(stored.sha256);
  });

  test("a key is written once", async () => {
    const blobs = await open();
    await blobs.put("a/once", pieces("first"));
    await expect(blobs.put("a/once", pieces("second"))).rejects.toThrow(BlobExistsError);
    expect(await text(await blobs.openRead("a/once"))).toBe("first");
  });

  test("a source that fails leaves nothing, and its error comes back", async () => {
    const blobs = await open();
    await expect(blobs.put("a/broken", failing())).rejects.toThrow("the source broke");
    expect(await blobs.stat("a/broken")).toBeUndefined();
    expect(await listed(blobs)).toEqual([]);
    await blobs.put("a/broken", pieces("now it works"));
  });

  test("an aborted put leaves nothing", async () => {
    const blobs = await open();
    const controller = new AbortController();
    async function* source() {
      yield Buffer.from("one");
      controller.abort(new Error("stopped"));
      yield Buffer.from("two");
    }
    await expect(blobs.put("a/aborted", source(), controller.signal)).rejects.toThrow("stopped");
    expect(await blobs.stat("a/aborted")).toBeUndefined();
  });

  test("what is not there is said to be so", async () => {
    const blobs = await open();
    expect(await blobs.stat("a/none")).toBeUndefined();
    await expect(blobs.openRead("a/none")).rejects.toThrow(BlobNotFoundError);
    await blobs.delete("a/none");
  });

  test("a deleted blob is gone", async () => {
    const blobs = await open();
    await blobs.put("a/gone", pieces("x"));
    await blobs.delete("a/gone");
    expect(await blobs.stat("a/gone")).toBeUndefined();
    expect(await listed(blobs)).toEqual([]);
  });

  test("the list knows every blob, or those of a prefix", async () => {
    const blobs = await open();
    for (const key of ["images/a/1", "images/b/2", "uploads/c"]) await blobs.put(key, pieces(key));
    expect(await listed(blobs)).toEqual(["images/a/1", "images/b/2", "uploads/c"]);
    expect(await listed(blobs, "images/")).toEqual(["images/a/1", "images/b/2"]);
    const [one] = await all(blobs.list("uploads/"));
    expect(one?.sizeBytes).toBe(9);
    expect(Math.abs((one?.storedAtMs ?? 0) - Date.now())).toBeLessThan(60_000);
  });

  test.each(["", "/a", "a/", "a//b", "../a", "a/../b", "a/.b", "A", "a b", "a~b", "a\0", "é"])(
    "the key %j is refused",
    async (key) => {
      const blobs = await open();
      await expect(async () => blobs.put(key, pieces("x"))).rejects.toThrow(TypeError);
      await expect(async () => blobs.openRead(key)).rejects.toThrow(TypeError);
    },
  );
}

async function* pieces(...parts: string[]): AsyncIterable<Uint8Array> {
  for (const part of parts) yield Buffer.from(part);
}

async function* repeated(piece: Uint8Array, times: number): AsyncIterable<Uint8Array> {
  for (let i = 0; i < times; i++) yield piece;
}

async function* failing(): AsyncIterable<Uint8Array> {
  yield Buffer.from("some");
  throw new Error("the source broke");
}

/** All values of a source. */
export async function all<T>(source: AsyncIterable<T>): Promise<T[]> {
  const items: T[] = [];
  for await (const item of source) items.push(item);
  return items;
}

async function listed(blobs: BlobStore, prefix?: string): Promise<string[]> {
  return (await all(blobs.list(prefix))).map((blob) => blob.key).sort();
}

function sha256(content: string): string {
  return createHash("sha256").update(content).digest("hex");
}
