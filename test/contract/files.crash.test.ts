import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createImageVerifier, type ImageVerifier } from "#kit/images/index.ts";
import { noise, plain } from "#kit/images/samples.fixture.ts";
import { storeLeaseMs } from "../../services/media/files/limits.ts";
import { type Mortal, mortal } from "./files.mortal.ts";
import { alice, createFilesWorld, type FilesWorld, newGround, uploadOf } from "./files.world.ts";

let verifier: ImageVerifier;
let images: [Buffer, Buffer, Buffer];

beforeAll(async () => {
  verifier = createImageVerifier({ processes: 1, memoryMb: 768, timeoutMs: 20_000 });
  images = await Promise.all([
    noise(30, 20).png().toBuffer(),
    plain(31, 20).png().toBuffer(),
    plain(32, 20).jpeg().toBuffer(),
  ]);
});
afterAll(() => verifier[Symbol.asyncDispose]());

const job = { ...alice, jobId: "job_1" };
const signal = new AbortController().signal;

/** Makes every change of the storage. `done` gets the answered ones. */
async function live({ client, files }: FilesWorld, done: Set<string>): Promise<void> {
  const first = await client.uploadFile(uploadOf(images[0], { idempotencyKey: "k1" }));
  done.add("first");
  await client.uploadFile(uploadOf(images[1]));
  done.add("second");
  const fileId = first.file?.fileId ?? "";
  const url = `data:image/jpeg;base64,${images[2].toString("base64")}`;
  const references = [
    { kind: "url" as const, url, param: "a" },
    { kind: "file" as const, fileId, param: "b" },
    { kind: "url" as const, url, param: "c" },
  ];
  await files.importer.importAll(job, references, signal);
  done.add("imported");
  await client.deleteFile({ fileId });
  done.add("deleted");
  await files.importer.unpin(job);
  done.add("unpinned");
  await files.sweep();
}

/** The invariants of docs/money.md about files: C9 and C10. */
async function expectWhole(world: FilesWorld): Promise<void> {
  const { files } = await world.client.listFiles({});
  expect(await world.quotaOf()).toEqual({ used: await world.listedQuota(), reserved: 0 });
  for (const { fileId, sizeBytes } of files) {
    const { content } = await world.client.readFile({ fileId });
    expect(BigInt(content.length)).toBe(sizeBytes);
  }
  for (const key of await world.blobKeys()) expect(await world.files.isReferenced(key)).toBe(true);
}

async function dieAt(at: number, when: "before" | "after"): Promise<boolean> {
  await using ground = await newGround();
  const death: Mortal = mortal(at, when);
  const doomed = await createFilesWorld({ ground, verifier, wrap: death.wrap });
  // This ends after the sweep at the start.
  await doomed.files.sweep();
  death.arm();
  const done = new Set<string>();
  const life = live(doomed, done).catch(() => {});
  await Promise.race([death.died, life]);
  // The dead process never ends by itself, and no test waits for it.
  const ended = doomed.files[Symbol.asyncDispose]();
  if (!death.isDead()) await ended;
  await death.atRest();
  await doomed.closeStores();

  await using world = await createFilesWorld({ ground, verifier });
  await ground.clock.advance(storeLeaseMs + 1);
  await world.files.sweep();
  await expectWhole(world);

  // Answered changes are stored. Others can be repeated, and are made once.
  const again = await world.client.uploadFile(uploadOf(images[0], { idempotencyKey: "k1" }));
  if (done.has("first") && !done.has("imported")) expect(again.replayed).toBe(true);
  if (done.has("deleted")) expect(again.replayed).toBe(false);
  const sizes = (await world.client.listFiles({})).files.map((file) => Number(file.sizeBytes));
  expect(sizes.filter((size) => size === images[0].length)).toHaveLength(1);
  if (done.has("second")) expect(sizes).toContain(images[1].length);
  const url = `data:image/jpeg;base64,${images[2].toString("base64")}`;
  await world.files.importer.importAll(job, [{ kind: "url", url, param: "a" }], signal);
  await expectWhole(world);

  // In the end nothing is left.
  await world.files.importer.unpin(job);
  await world.files.sweep();
  const { files } = await world.client.listFiles({});
  expect(files.filter((file) => Number(file.sizeBytes) === images[2].length)).toHaveLength(1);
  expect(await world.blobKeys()).toHaveLength(files.length);
  expect(await world.keptOf()).toBe(0);
  await expectWhole(world);
  return death.isDead();
}

describe("killed at any step and opened again", () => {
  test.each(["before", "after"] as const)(
    "%s it is made, used is the sum of what is seen",
    async (when) => {
      let steps = 0;
      while (await dieAt(steps + 1, when)) steps++;
      // Three stored files have five changes each. Deletions and pins add some.
      expect(steps).toBeGreaterThan(20);
    },
    120_000,
  );
});
