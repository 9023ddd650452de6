import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { readInTurns } from "#kit/base/in-turns.ts";
import { openNamelessFile } from "./nameless-file.ts";

const folder = await mkdtemp(join(tmpdir(), "genmesh-nameless-"));
afterAll(() => rm(folder, { recursive: true }));

test("a file without a name is streamed again after a reader left early", async () => {
  await using file = await openNamelessFile(folder);
  expect(await readdir(folder)).toEqual([]);
  expect(await readInTurns(file.stream())).toHaveLength(0);
  const bytes = Buffer.alloc(300_000, "many bytes ");
  await file.append(bytes.subarray(0, 1_000));
  await file.append(bytes.subarray(1_000));
  for await (const piece of file.stream()) {
    expect(bytes.subarray(0, piece.length).equals(piece)).toBe(true);
    break;
  }
  expect((await readInTurns(file.stream())).equals(bytes)).toBe(true);
  expect((await file.whole()).equals(bytes)).toBe(true);
});
