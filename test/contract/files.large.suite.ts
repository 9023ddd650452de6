import { expect, test } from "vitest";
import { ErrorReason } from "#kit/base/errors.ts";
import { createImageVerifier } from "#kit/images/index.ts";
import { plain } from "#kit/images/samples.fixture.ts";
import { heldBytes } from "../support/held-bytes.ts";
import type { OpenWorldStores } from "../support/world-stores.ts";
import {
  createFilesWorld,
  expectNothingIn,
  newGround,
  uncompressed,
  uploadOf,
} from "./files.world.ts";

const pool = { processes: 1, memoryMb: 768, timeoutMs: 20_000 };

/** The rules for storing large files, on any stores. */
export function largeFilesContract(openStores?: OpenWorldStores): void {
  test("an upload of 51 megapixels is refused, one of 49 is not", async () => {
    await using verifier = createImageVerifier(pool);
    await using ground = await newGround();
    await using world = await createFilesWorld({ ground, verifier, openStores });
    const upload = async (width: number) =>
      world.client.uploadFile(uploadOf(await plain(width, 5_000).png().toBuffer()));
    await expect(upload(10_200)).rejects.toEqual(
      expect.objectContaining({
        reason: ErrorReason.INVALID_IMAGE,
        message: expect.stringContaining("50 megapixels"),
      }),
    );
    await expectNothingIn(world);
    const { file } = await upload(9_800);
    expect([file?.width, file?.height]).toEqual([9_800, 5_000]);
  });

  test("sixteen uploads of 20 MiB at once hold a few chunks each in memory", async () => {
    await using verifier = createImageVerifier(pool);
    await using ground = await newGround();
    await using world = await createFilesWorld({ ground, verifier, openStores });
    const large = await uncompressed(2_640, 2_640);
    expect(large.length).toBeGreaterThan(19.8 * 1024 ** 2);
    const before = heldBytes();
    let most = 0;
    // Only now and then, because each look stops the process for a garbage collection.
    const watch = setInterval(() => {
      most = Math.max(most, heldBytes() - before);
    }, 1_000);
    const ends = await Promise.all(
      Array.from({ length: 16 }, () => world.client.uploadFile(uploadOf(large))),
    );
    clearInterval(watch);
    expect(ends.every(({ file }) => Number(file?.sizeBytes) === large.length)).toBe(true);
    expect(most).toBeGreaterThan(0);
    expect(most).toBeLessThan(80 * 1024 ** 2);
  });
}
