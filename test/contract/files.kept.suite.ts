import { expect, test } from "vitest";
import { ErrorReason } from "#kit/base/errors.ts";
import { createImageVerifier } from "#kit/images/index.ts";
import { noise } from "#kit/images/samples.fixture.ts";
import { goneKeptMs } from "../../services/media/files/limits.ts";
import type { OpenWorldStores } from "../support/world-stores.ts";
import { alice, createFilesWorld, newGround, quotaOfSizes, uploadOf } from "./files.world.ts";

/** The rules for deleted files that jobs still use, on any stores. */
export function keptFilesContract(openStores?: OpenWorldStores): void {
  test("deleted bytes that jobs keep are at most a second quota on disk", async () => {
    const png = await noise().png().toBuffer();
    const size = quotaOfSizes(png.length);
    await using verifier = createImageVerifier({ processes: 1, memoryMb: 256, timeoutMs: 20_000 });
    await using ground = await newGround();
    await using world = await createFilesWorld({
      ground,
      verifier,
      openStores,
      quotaBytes: 2 * size,
    });
    const full = (param: string) =>
      expect.objectContaining({ reason: ErrorReason.UPLOAD_QUOTA_EXCEEDED, param });
    const signal = new AbortController().signal;
    const jobOf = (i: number) => ({ ...alice, jobId: `job_${i}` });
    const upload = async () => (await world.client.uploadFile(uploadOf(png))).file?.fileId ?? "";
    const useAndDelete = async (i: number) => {
      const fileId = await upload();
      const references = [{ kind: "file" as const, fileId, param: "p" }];
      await world.files.importer.importAll(jobOf(i), references, signal);
      await world.client.deleteFile({ fileId });
    };
    for (let i = 0; i < 4; i++) await useAndDelete(i);
    expect(await world.quotaOf()).toEqual({ used: 0, reserved: 0 });
    expect(await world.keptOf()).toBe(4 * size);

    await expect(upload()).rejects.toEqual(full("file"));
    const url = `data:image/png;base64,${png.toString("base64")}`;
    const imported = [{ kind: "url" as const, url, param: "p" }];
    await expect(world.files.importer.importAll(jobOf(9), imported, signal)).rejects.toEqual(
      full("p"),
    );
    expect(await world.blobKeys()).toHaveLength(4);

    // The end of a job makes room.
    await world.files.importer.unpin(jobOf(0));
    await world.files.sweep();
    expect(await world.keptOf()).toBe(3 * size);
    await upload();
    await expect(upload()).rejects.toEqual(full("file"));
  });

  test("deleted files keep their places for an hour, and then all go", async () => {
    await using verifier = createImageVerifier({ processes: 1, memoryMb: 256, timeoutMs: 20_000 });
    await using ground = await newGround();
    await using world = await createFilesWorld({ ground, verifier, openStores });
    const { store, quota } = world.stores;
    const now = world.clock.now();
    const places = Array.from({ length: 350 }, (_, i) => ({
      fileId: `file_${i}`,
      storageId: `storage_${i}`,
    }));
    const ofFile = {
      accountId: alice.accountId,
      origin: "upload",
      fileName: "",
      purpose: "",
    } as const;
    const ofImage = { mimeType: "image/png", sizeBytes: 1, sha256: "", width: 1, height: 1 };
    // A few at a time, because they share one document of the quota.
    while (places.length > 0) {
      await Promise.all(
        places.splice(0, 10).map(async (place) => {
          await store.begin({ ...place, ...ofFile, ...ofImage, createdAt: now, leaseUntil: now });
          await store.drop(place, now + 7_200_000);
          await store.erase(place, now + goneKeptMs);
          await quota.release({ accountId: alice.accountId, chargeId: place.storageId }, now);
        }),
      );
    }
    await world.clock.leap(3_600_001);
    await world.files.sweep();
    expect(goneKeptMs).toBe(3_600_000);
    expect(await store.forget(Number.MAX_SAFE_INTEGER, 10_000)).toBe(0);
    expect(await quota.forget(Number.MAX_SAFE_INTEGER, 10_000)).toBe(0);
  });
}
