import { describe, expect, test } from "vitest";
import { ErrorReason } from "#kit/base/errors.ts";
import { migrate } from "#kit/store/mongo/migrate.ts";
import { maxPinsPerFile } from "../../services/media/files/limits.ts";
import type { FileStore } from "../../services/media/files/store.ts";
import { createMongoFileStore } from "../../services/media/files/store-mongo.ts";
import {
  type FileDocument,
  filesCollection,
  filesMongoSchema,
} from "../../services/media/files/store-mongo-docs.ts";
import { describeMongo } from "../support/mongo.ts";
import { accountId, fileStoreContract, newFile, ready, t0 } from "./files.suite.ts";

await describeMongo(
  "account files in MongoDB",
  (mongo) => {
    const open = async (name = mongo.newName()): Promise<[FileStore, FileStore]> => {
      const [one, two] = [mongo.connect(name), mongo.connect(name)];
      await migrate(one, [filesMongoSchema]);
      return [createMongoFileStore(one), createMongoFileStore(two)];
    };
    fileStoreContract(() => open());

    describe("pins in the documents of files", () => {
      const first = { jobId: "job_1", index: 0 };

      test("a job that takes another file under an index lets go of the first", async () => {
        const [store, other] = await open();
        for (const name of ["a", "b", "c"]) await ready(store, newFile(name));
        await store.pin(accountId, "file_b", first);
        await store.pin(accountId, "file_a", { jobId: "job_1", index: 1 });
        await other.pin(accountId, "file_a", first);
        expect(await used(other)).toEqual({ 0: "file_a", 1: "file_a" });
        expect(await store.pinsOf("file_b")).toEqual([]);
        // The place changes back, and then two files want it at once.
        await store.pin(accountId, "file_b", first);
        expect(await used(store)).toEqual({ 0: "file_b", 1: "file_a" });
        const both = ["file_b", "file_c"].map((fileId) => store.pin(accountId, fileId, first));
        expect((await Promise.all(both)).every(Boolean)).toBe(true);
        const won = (await used(store))[0] ?? "";
        expect(await store.pinsOf(won)).toEqual(["job_1"]);
        await store.unpin("job_1", t0);
        for (const name of ["a", "b", "c"]) expect(await store.pinsOf(`file_${name}`)).toEqual([]);
      });

      test("a file that has all the pins it may have takes no more, and keeps those", async () => {
        const name = mongo.newName();
        const [store] = await open(name);
        await ready(store, newFile("a"));
        const pins = Array.from({ length: maxPinsPerFile - 1 }, (_, i) => ({
          jobId: `other_${i}`,
          index: 0,
          n: 0,
        }));
        const files = mongo.raw(name).collection<FileDocument>(filesCollection);
        await files.updateOne({ _id: "file_a" }, { $set: { pins } });
        expect(await store.pin(accountId, "file_a", first)).toMatchObject({ state: "ready" });
        await expect(store.pin(accountId, "file_a", { ...first, index: 1 })).rejects.toMatchObject({
          reason: ErrorReason.SERVICE_UNAVAILABLE,
        });
        expect(await used(store)).toEqual({ 0: "file_a" });
        expect(await store.pinsOf("file_a")).toHaveLength(maxPinsPerFile);
        await store.unpin("other_7", t0);
        expect(await store.pinsOf("file_a")).toHaveLength(maxPinsPerFile - 1);
      });

      test("letting go while files are deleted leaves no pin, and all that is deleted due", async () => {
        const [store, other] = await open();
        const all = Array.from({ length: 6 }, (_, i) => newFile(`r${i}`));
        for (const [index, file] of all.entries()) {
          await ready(store, file);
          await store.pin(accountId, file.fileId, { jobId: "job_1", index });
        }
        await Promise.all([
          store.unpin("job_1", t0),
          ...all.map(({ fileId }) => other.remove(accountId, fileId, t0)),
        ]);
        for (const { fileId } of all) expect(await store.pinsOf(fileId)).toEqual([]);
        expect(await store.due(t0, 10)).toHaveLength(all.length);
      });

      async function used(store: FileStore): Promise<Record<number, string>> {
        const pinned = await store.pinned("job_1");
        return Object.fromEntries([...pinned].map(([index, { fileId }]) => [index, fileId]));
      }
    });

    // This test is the last, because it checks the queries of the tests above.
    test("every query is served by a declared index, and every index serves one", async () => {
      const { shapes, unserved, unused, scans } = await mongo.judgeQueries(filesMongoSchema);
      expect(shapes.length).toBeGreaterThan(10);
      expect(unserved).toEqual([]);
      expect(unused).toEqual([]);
      expect(scans).toEqual([]);
    });
  },
  { inTurn: true },
);
