import { buffer } from "node:stream/consumers";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { ErrorReason } from "#kit/base/errors.ts";
import { createImageVerifier, type ImageVerifier } from "#kit/images/index.ts";
import { noise, plain, withPngSize } from "#kit/images/samples.fixture.ts";
import { FileArea } from "#proto/genmesh/media/v1/media_service_pb.ts";
import type { OpenWorldStores } from "../support/world-stores.ts";
import {
  alice,
  alicesOther,
  bob,
  createFilesWorld,
  expectNothingIn,
  type FilesWorld,
  type FilesWorldOptions,
  type Ground,
  newGround,
  quotaOfSizes,
  sent,
  uncompressed,
  uploadOf,
} from "./files.world.ts";

const refusal = (reason: number, more: object = {}) => expect.objectContaining({ reason, ...more });

/** The rules for storing files, on any stores. */
export function fileServiceContract(openStores?: OpenWorldStores): void {
  let verifier: ImageVerifier;
  let ground: Ground;
  let world: FilesWorld;
  let png: Buffer;

  beforeAll(async () => {
    verifier = createImageVerifier({ processes: 1, memoryMb: 768, timeoutMs: 20_000 });
    png = await noise().png().toBuffer();
  });
  afterAll(() => verifier[Symbol.asyncDispose]());
  beforeEach(async () => {
    ground = await newGround();
    world = await createFilesWorld({ ground, verifier, openStores });
  });
  afterEach(async () => {
    await world[Symbol.asyncDispose]();
    await ground[Symbol.asyncDispose]();
  });

  async function reopen(options: Partial<FilesWorldOptions>): Promise<void> {
    await world[Symbol.asyncDispose]();
    world = await createFilesWorld({ ground, verifier, openStores, ...options });
  }

  async function upload(bytes: Uint8Array, header: Parameters<typeof uploadOf>[1] = {}) {
    const { file, replayed } = await world.client.uploadFile(uploadOf(bytes, header));
    if (!file) throw new Error("no file");
    return { ...file, replayed };
  }

  describe("an upload", () => {
    test.each(["png", "jpeg", "webp"] as const)(
      "%s is stored, counted and read back",
      async (format) => {
        const bytes = await noise().toFormat(format).toBuffer();
        const file = await upload(bytes, { fileName: "Katze 🐈.PNG", purpose: "vision" });
        expect(file).toMatchObject({
          fileId: expect.stringMatching(/^file_[a-z0-9]{24}$/),
          fileName: "Katze 🐈.PNG",
          purpose: "vision",
          mimeType: `image/${format}`,
          sizeBytes: BigInt(bytes.length),
          width: 120,
          height: 80,
          replayed: false,
        });
        expect(await world.quotaOf()).toEqual({ used: quotaOfSizes(bytes.length), reserved: 0 });
        expect(await world.spooled()).toEqual([]);
        const { fileId } = file;
        const { replayed: _, ...stored } = file;
        expect((await world.client.getFile({ fileId })).file).toMatchObject(stored);
        expect((await world.client.listFiles({})).files).toMatchObject([stored]);
        const read = await world.client.readFile({ fileId });
        expect(bytes.equals(read.content)).toBe(true);
        expect(read.mimeType).toBe(`image/${format}`);
        const located = await world.client.locateFile({ area: FileArea.UPLOADS, fileId });
        const blob = await buffer(await world.blobs.openRead(located.blobKey));
        expect(blob.equals(bytes)).toBe(true);
        const suffix = { png: "PNG", jpeg: "PNG.jpg", webp: "PNG.webp" }[format];
        expect(located.fileName.toLowerCase()).toBe(`katze 🐈.${suffix}`.toLowerCase());
        expect(located.sha256).toBe(file.sha256);
      },
    );

    const html = Buffer.from("<html><script>alert(1)</script></html>");
    test.each<[string, () => Buffer | Promise<Buffer>, number]>([
      ["no bytes", () => Buffer.alloc(0), ErrorReason.INVALID_IMAGE],
      ["HTML", () => html, ErrorReason.INVALID_IMAGE],
      ["a GIF", () => plain(8, 8).gif().toBuffer(), ErrorReason.INVALID_IMAGE],
      ["a PNG's head alone", () => png.subarray(0, 200), ErrorReason.INVALID_IMAGE],
      [
        "a PNG without its end",
        () => png.subarray(0, png.length - 3_000),
        ErrorReason.INVALID_IMAGE,
      ],
      [
        "a PNG that claims 60 megapixels",
        () => withPngSize(png, 10_000, 6_000),
        ErrorReason.INVALID_IMAGE,
      ],
      ["20 MiB and a byte", () => Buffer.alloc(20 * 1024 * 1024 + 1), ErrorReason.IMAGE_TOO_LARGE],
    ])("of %s is refused and leaves nothing", async (_, make, reason) => {
      await expect(upload(await make())).rejects.toEqual(refusal(reason, { param: "file" }));
      await expectNothingIn(world);
    });

    test("that breaks off leaves nothing", async () => {
      async function* broken() {
        yield* uploadOf(png.subarray(0, 10_000));
        throw new Error("the sender is gone");
      }
      await expect(world.client.uploadFile(broken())).rejects.toThrow();
      await expectNothingIn(world);
    });

    test("whose sender falls silent and leaves, leaves nothing", async () => {
      const left = new AbortController();
      async function* silent() {
        yield* uploadOf(png.subarray(0, 10_000));
        left.abort();
        await new Promise(() => {});
      }
      await expect(world.client.uploadFile(silent(), { signal: left.signal })).rejects.toThrow();
      await world.files.drain(new AbortController().signal);
      await expectNothingIn(world);
    });

    test("that breaks the protocol is refused", async () => {
      const header = { part: { case: "header" as const, value: { fileName: "a", purpose: "b" } } };
      const chunk = { part: { case: "chunk" as const, value: png } };
      const large = { part: { case: "chunk" as const, value: new Uint8Array(1_048_577) } };
      for (const messages of [[], [chunk], [header, header], [header, large], [header, {}]]) {
        await expect(world.client.uploadFile(sent(messages))).rejects.toEqual(
          refusal(ErrorReason.INVALID_ARGUMENT),
        );
      }
      await expect(upload(png, { purpose: "" })).rejects.toEqual(
        refusal(ErrorReason.MISSING_REQUIRED_PARAMETER, { param: "purpose" }),
      );
      await expect(upload(png, { purpose: "p".repeat(65) })).rejects.toEqual(
        refusal(ErrorReason.INVALID_VALUE, { param: "purpose" }),
      );
      await expectNothingIn(world);
    });
  });

  describe("the quota", () => {
    test("of a hundred uploads racing for room for ten, ten are stored", async () => {
      const large = await uncompressed(400, 300);
      expect(large.length).toBeGreaterThan(300_000);
      await reopen({ quotaBytes: quotaOfSizes(large.length) * 10 + 5 });
      const ends = await Promise.allSettled(Array.from({ length: 100 }, () => upload(large)));
      const refused = ends.flatMap((end) => (end.status === "rejected" ? [end.reason] : []));
      expect(refused).toHaveLength(90);
      for (const reason of refused) {
        expect(reason).toEqual(refusal(ErrorReason.UPLOAD_QUOTA_EXCEEDED, { param: "file" }));
      }
      expect(await world.quotaOf()).toEqual({ used: quotaOfSizes(large.length) * 10, reserved: 0 });
      expect(await world.listedBytes()).toBe(large.length * 10);
      expect(await world.blobKeys()).toHaveLength(10);
      expect(await world.spooled()).toEqual([]);
    });

    test("deleting frees room at once, also where a job keeps the bytes", async () => {
      await reopen({ quotaBytes: quotaOfSizes(png.length) });
      const { fileId } = await upload(png);
      const job = { ...alice, jobId: "job_1" };
      const signal = new AbortController().signal;
      await world.files.importer.importAll(job, [{ kind: "file", fileId, param: "p" }], signal);
      await expect(upload(png)).rejects.toEqual(refusal(ErrorReason.UPLOAD_QUOTA_EXCEEDED));
      await world.client.deleteFile({ fileId });
      expect(await world.quotaOf()).toEqual({ used: 0, reserved: 0 });
      await upload(png);
      expect(await world.blobKeys()).toHaveLength(2);
      await world.files.importer.unpin(job);
      await world.files.sweep();
      expect(await world.blobKeys()).toHaveLength(1);
    });
  });

  describe("an upload's idempotency key", () => {
    test("gives the same file for the same fields and bytes, and 422 for others", async () => {
      const key = { idempotencyKey: "k" };
      const first = await upload(png, key);
      const again = await upload(png, key);
      expect(again).toEqual({ ...first, replayed: true });
      const reused = refusal(ErrorReason.IDEMPOTENCY_KEY_REUSED);
      const other = await plain(10, 10).png().toBuffer();
      await expect(upload(other, key)).rejects.toEqual(reused);
      await expect(upload(png, { ...key, purpose: "other" })).rejects.toEqual(reused);
      await expect(upload(png, { ...key, fileName: "other.png" })).rejects.toEqual(reused);
      expect(await world.blobKeys()).toHaveLength(1);
      const elsewhere = await world.clientOf(alicesOther).uploadFile(uploadOf(png, key));
      expect(elsewhere.file?.fileId).not.toBe(first.fileId);
      await reopen({});
      expect(await upload(png, key)).toEqual({ ...first, replayed: true });
    });

    test("makes one file of fifty at once", async () => {
      const all = await Promise.all(
        Array.from({ length: 50 }, () => upload(png, { idempotencyKey: "k" })),
      );
      expect(new Set(all.map(({ fileId }) => fileId)).size).toBe(1);
      expect(all.filter(({ replayed }) => !replayed)).toHaveLength(1);
      expect(await world.quotaOf()).toEqual({ used: quotaOfSizes(png.length), reserved: 0 });
      expect(await world.blobKeys()).toHaveLength(1);
    });

    test("is free again after a refusal, and after deletion", async () => {
      const key = { idempotencyKey: "k" };
      await expect(upload(Buffer.from("no"), key)).rejects.toThrow();
      await reopen({ quotaBytes: 10 });
      await expect(upload(png, key)).rejects.toEqual(refusal(ErrorReason.UPLOAD_QUOTA_EXCEEDED));
      await reopen({});
      const { fileId } = await upload(png, key);
      await world.client.deleteFile({ fileId });
      const again = await upload(png, key);
      expect(again.replayed).toBe(false);
      expect(again.fileId).not.toBe(fileId);
    });

    test("is refused where it is empty or too long", async () => {
      for (const idempotencyKey of ["", "k".repeat(256)]) {
        await expect(upload(png, { idempotencyKey })).rejects.toEqual(
          refusal(ErrorReason.INVALID_IDEMPOTENCY_KEY),
        );
      }
    });

    test("answers what is recorded although the edge refuses; what is not, is not even read", async () => {
      const first = await upload(png, { idempotencyKey: "k" });
      const admission = {
        refuseWith: ErrorReason.RATE_LIMIT_EXCEEDED,
        refusalMessage: "Slow down.",
      };
      expect(await upload(png, { idempotencyKey: "k", admission })).toMatchObject({
        fileId: first.fileId,
        replayed: true,
      });
      let read = 0;
      async function* counted(header: object) {
        for await (const message of uploadOf(png, header)) {
          read++;
          yield message;
        }
      }
      // From a gateway that is newer than this build.
      const newer = { ...admission, refuseWith: 60_000 as ErrorReason };
      for (const [header, reason] of [
        [{ admission }, ErrorReason.RATE_LIMIT_EXCEEDED],
        [{ admission, idempotencyKey: "other" }, ErrorReason.RATE_LIMIT_EXCEEDED],
        [{ admission: newer }, ErrorReason.PERMISSION_DENIED],
        [{ admission: newer, idempotencyKey: "other" }, ErrorReason.PERMISSION_DENIED],
      ] as const) {
        read = 0;
        await expect(world.client.uploadFile(counted(header))).rejects.toEqual(
          refusal(reason, { message: "Slow down." }),
        );
        expect(read).toBe(1);
      }
    });
  });

  describe("a file", () => {
    test("of another account, deleted, or that never was: the same refusal everywhere", async () => {
      const { fileId } = await upload(png);
      const deleted = await upload(await plain(9, 9).png().toBuffer());
      await world.client.deleteFile({ fileId: deleted.fileId });
      const cases = [
        { client: world.clientOf(bob), fileId },
        { client: world.client, fileId: deleted.fileId },
        { client: world.client, fileId: "file_none" },
        { client: world.client, fileId: "" },
      ];
      const refusals: unknown[] = [];
      for (const { client, fileId } of cases) {
        const area = FileArea.UPLOADS;
        const ends = await Promise.allSettled([
          client.getFile({ fileId }),
          client.readFile({ fileId }),
          client.deleteFile({ fileId }),
          client.locateFile({ area, fileId }),
          client.locateFile({ area: FileArea.IMAGES, parentId: "job_1", fileId }),
          client.locateFile({ area: FileArea.UNSPECIFIED, fileId }),
          client.locateFile({ area: 99 as FileArea, fileId }),
        ]);
        for (const end of ends) {
          if (end.status === "rejected") {
            refusals.push({ ...end.reason, message: end.reason.message });
          }
        }
      }
      expect(refusals).toHaveLength(28);
      const reasons = new Set(refusals.map((one) => JSON.stringify(one)));
      expect(reasons.size).toBe(1);
      expect(refusals[0]).toMatchObject({ reason: ErrorReason.FILE_NOT_FOUND });
      const named = { area: FileArea.UPLOADS, parentId: "job_1", fileId };
      await expect(world.client.locateFile(named)).rejects.toEqual(
        refusal(ErrorReason.FILE_NOT_FOUND),
      );
    });

    test("belongs to the account, whichever of its keys uploaded it", async () => {
      const { fileId } = await upload(png);
      const other = world.clientOf(alicesOther);
      expect((await other.getFile({ fileId })).file?.fileId).toBe(fileId);
      await other.deleteFile({ fileId });
      await expect(world.client.getFile({ fileId })).rejects.toEqual(
        refusal(ErrorReason.FILE_NOT_FOUND),
      );
    });

    test("is listed newest first, in pages, on behind a deleted one", async () => {
      const ids: string[] = [];
      for (const [i, purpose] of ["a", "b", "a", "b"].entries()) {
        await ground.clock.advance(1_000);
        ids.unshift((await upload(png, { purpose, fileName: `${i}.png` })).fileId);
      }
      const list = async (query: Parameters<typeof world.client.listFiles>[0]) => {
        const { files, hasMore } = await world.client.listFiles(query);
        return [files.map(({ fileId }) => fileId), hasMore];
      };
      expect(await list({})).toEqual([ids, false]);
      expect(await list({ ascending: true })).toEqual([ids.toReversed(), false]);
      expect(await list({ purpose: "a" })).toEqual([[ids[1], ids[3]], false]);
      expect(await list({ pageSize: 2 })).toEqual([ids.slice(0, 2), true]);
      await world.client.deleteFile({ fileId: ids[1] ?? "" });
      expect(await list({ pageSize: 2, after: ids[1] ?? "" })).toEqual([ids.slice(2), false]);
      await expect(list({ after: "file_none" })).rejects.toEqual(
        refusal(ErrorReason.INVALID_VALUE, { param: "after" }),
      );
      await expect(list({ pageSize: 1_001 })).rejects.toEqual(
        refusal(ErrorReason.INVALID_ARGUMENT),
      );
    });

    test("of a job or speech is located by the key that made it", async () => {
      const asked: unknown[] = [];
      const file = { blobKey: "images/x", mimeType: "image/png", sizeBytes: 3, sha256: "d" };
      await reopen({
        generated: {
          async locate(name, principal) {
            asked.push([name, principal.keyId]);
            return { ...file, createdAt: 5 };
          },
        },
      });
      const name = { area: FileArea.IMAGES, parentId: "job_1", fileId: "file_1" };
      expect(await world.client.locateFile(name)).toMatchObject({
        ...file,
        sizeBytes: 3n,
        fileName: "file_1.png",
      });
      expect(asked).toEqual([[name, alice.keyId]]);
    });
  });
}
