import { expect, test } from "vitest";
import { createImageVerifier } from "#kit/images/index.ts";
import { plain } from "#kit/images/samples.fixture.ts";
import { createFilesWorld, newGround, uploadOf } from "./files.world.ts";

test("a file takes at least what it takes of the disk, so that there are only so many", async () => {
  await using verifier = createImageVerifier({ processes: 1, memoryMb: 256, timeoutMs: 20_000 });
  await using ground = await newGround();
  await using world = await createFilesWorld({ ground, verifier, quotaBytes: 40 * 1024 });
  const tiny = await plain(1, 1).png().toBuffer();
  expect(tiny.length).toBeLessThan(200);
  const { file } = await world.client.uploadFile(uploadOf(tiny));
  for (let i = 1; i < 5; i++) await world.client.uploadFile(uploadOf(tiny));
  await expect(world.client.uploadFile(uploadOf(tiny))).rejects.toThrow();
  // The caller sees the file's own size.
  expect(await world.listedBytes()).toBe(tiny.length * 5);
  await world.client.deleteFile({ fileId: file?.fileId ?? "" });
  await world.client.uploadFile(uploadOf(tiny));
});
