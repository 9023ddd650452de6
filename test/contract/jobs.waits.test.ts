import { describe, expect, onTestFinished, test } from "vitest";
import { ErrorReason, RefusalError } from "#kit/errors.ts";
import { JobStatus } from "#proto/genmesh/media/v1/media_service_pb.ts";
import { jumpClock } from "../support/jump-clock.ts";
import { openEmbeddedStores } from "../support/world-stores.ts";
import { scriptedUpstream, succeed } from "./jobs.upstream.ts";
import { upstreamWaitsContract } from "./jobs.waits.suite.ts";
import { createJobsWorld, image } from "./jobs.world.ts";

describe("waits for upstreams on SQLite", () => upstreamWaitsContract(createJobsWorld));

test("images that were paid for wait for a blob store that is away", async () => {
  let refusals = 0;
  const clock = jumpClock();
  const upstream = scriptedUpstream(async (task) => {
    await task.sending();
    return succeed(task);
  });
  const world = await createJobsWorld({
    clock,
    upstream,
    catalog: `upstreams: { one: { protocol: openai, baseUrl: "http://127.0.0.1:9/v1" } }
models: [{ id: image-1, kind: image, upstream: one, creditPrice: 5, sizes: [64x64] }]
`,
    openStores: async (folder, time) => {
      const stores = await openEmbeddedStores(folder, time);
      const put: typeof stores.blobs.put = (...args) => {
        if (refusals++ < 4) throw new RefusalError(ErrorReason.SERVICE_UNAVAILABLE);
        return stores.blobs.put(...args);
      };
      const blobs = Object.assign(Object.create(stores.blobs), { put });
      return { ...stores, blobs, [Symbol.asyncDispose]: () => stores[Symbol.asyncDispose]() };
    },
  });
  onTestFinished(() => world[Symbol.asyncDispose]());
  await world.fund(5n);
  const { job } = await world.submit(image());
  expect((await world.ended(job.jobId)).status).toBe(JobStatus.COMPLETED);
  expect(upstream.tasks).toHaveLength(1);
  expect(refusals).toBe(5);
});
