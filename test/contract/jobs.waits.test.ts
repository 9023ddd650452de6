import { buffer } from "node:stream/consumers";
import { describe, expect, onTestFinished, test } from "vitest";
import { ErrorReason, RefusalError } from "#kit/base/errors.ts";
import { JobStatus } from "#proto/genmesh/media/v1/media_service_pb.ts";
import { jumpClock } from "../support/jump-clock.ts";
import { openEmbeddedStores } from "../support/world-stores.ts";
import { lostAnswersContract } from "./jobs.lost-answers.suite.ts";
import { scriptedUpstream, succeed } from "./jobs.upstream.ts";
import { upstreamWaitsContract } from "./jobs.waits.suite.ts";
import { createJobsWorld, image } from "./jobs.world.ts";

/** A real image of one pixel. */
const pixel =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

describe("waits for upstreams on SQLite", () => upstreamWaitsContract(createJobsWorld));
describe("lost answers on SQLite", () => lostAnswersContract(createJobsWorld));

test("a blob store that is away costs a job nothing: neither its references nor what was made", async () => {
  let refusals = 0;
  let reads = 0;
  const clock = jumpClock();
  const upstream = scriptedUpstream(async (task) => {
    for (const { open } of task.references) await buffer(await open());
    await task.sending();
    return succeed(task);
  });
  const world = await createJobsWorld({
    clock,
    upstream,
    catalog: `upstreams: { one: { protocol: openai, baseUrl: "http://127.0.0.1:9/v1" } }
models: [{ id: image-1, kind: image, upstream: one, creditPrice: 5, sizes: [64x64], maxReferences: 1 }]
`,
    openStores: async (folder, time) => {
      const stores = await openEmbeddedStores(folder, time);
      const put: typeof stores.blobs.put = (...args) => {
        const isOutput = args[0].startsWith("outputs/");
        if (isOutput && refusals++ < 4) throw new RefusalError(ErrorReason.SERVICE_UNAVAILABLE);
        return stores.blobs.put(...args);
      };
      const openRead: typeof stores.blobs.openRead = (...args) => {
        if (reads++ < 4) throw new RefusalError(ErrorReason.SERVICE_UNAVAILABLE);
        return stores.blobs.openRead(...args);
      };
      const blobs = Object.assign(Object.create(stores.blobs), { put, openRead });
      return { ...stores, blobs, [Symbol.asyncDispose]: () => stores[Symbol.asyncDispose]() };
    },
  });
  onTestFinished(() => world[Symbol.asyncDispose]());
  await world.fund(5n);
  const input_reference = { image_url: `data:image/png;base64,${pixel}` };
  const { job } = await world.submit(image({ input_reference }));
  expect((await world.ended(job.jobId)).status).toBe(JobStatus.COMPLETED);
  expect(upstream.tasks).toHaveLength(1);
  expect([reads, refusals]).toEqual([5, 5]);
});
