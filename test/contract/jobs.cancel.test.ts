import { describe, expect, onTestFinished, test } from "vitest";
import { ErrorReason, RefusalError } from "#kit/base/errors.ts";
import { until } from "../support/until.ts";
import { openEmbeddedStores } from "../support/world-stores.ts";
import { cancelContract } from "./jobs.cancel.suite.ts";
import { deleteContract } from "./jobs.delete.suite.ts";
import { alice, as, createJobsWorld } from "./jobs.world.ts";

describe("cancelling on SQLite", () => cancelContract(createJobsWorld));
describe("deleting on SQLite", () => deleteContract(createJobsWorld));

test("a blob store that is away leaves nothing behind of a deleted job", async () => {
  let isAway = true;
  const world = await createJobsWorld({
    openStores: async (folder, time) => {
      const stores = await openEmbeddedStores(folder, time);
      const remove: typeof stores.blobs.delete = (key) => {
        if (isAway) throw new RefusalError(ErrorReason.SERVICE_UNAVAILABLE);
        return stores.blobs.delete(key);
      };
      return { ...stores, blobs: { ...stores.blobs, delete: remove } };
    },
  });
  onTestFinished(() => world[Symbol.asyncDispose]());
  await world.fund(10n);
  const { jobId } = (await world.submit()).job;
  await world.ended(jobId);
  const key = (await world.store.find(jobId))?.outputs[0]?.blobKey ?? "";
  await world.peers.media.deleteJob({ jobId }, as(alice));
  await expect(world.get(jobId)).rejects.toMatchObject({ reason: ErrorReason.JOB_NOT_FOUND });
  expect(await world.blobs.stat(key)).toBeDefined();
  isAway = false;
  await until("the bytes to go", async () => !(await world.blobs.stat(key)), { withinMs: 60_000 });
  await until(
    "the record to follow",
    async () => (await world.store.find(jobId))?.outputs.length === 0,
  );
});
