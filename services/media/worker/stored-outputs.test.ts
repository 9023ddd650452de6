import { Readable } from "node:stream";
import { expect, test, vi } from "vitest";
import { type Ids, randomIds } from "#kit/base/ids.ts";
import type { BlobStore } from "#kit/store/blobs.ts";
import { systemClock } from "#kit/time/clock.ts";
import type { JobEvents } from "../events.ts";
import { noFailPoints } from "../fail-points.ts";
import type { Job, JobOutput } from "../jobs/job.ts";
import { outputKey } from "../jobs/outputs.ts";
import type { JobStore } from "../jobs/store.ts";
import { createMarks } from "./marks.ts";
import { createStoredOutputs } from "./stored-outputs.ts";

const job = { jobId: "job_a", fence: 2, state: "running", outputs: [] } as unknown as Job;

/** Ids in their order: `output_0`, `output_1`. */
function countingIds(): Ids {
  let made = 0;
  return { make: (prefix) => `${prefix}_${made++}`, secret: () => "" };
}

/** An attempt that has stored two outputs, and the answer of the job store about it. */
async function attempt(find: () => Promise<Partial<Job> | undefined>) {
  const blobs = new Set<string>();
  const store = { find: vi.fn(find) };
  const trouble = vi.fn();
  const stored = createStoredOutputs(job, new AbortController().signal, {
    clock: systemClock,
    ids: countingIds(),
    store: store as unknown as JobStore,
    blobs: {
      async put(key: string, source: AsyncIterable<Uint8Array>) {
        for await (const _ of source);
        blobs.add(key);
        return { sizeBytes: 1, sha256: "" };
      },
      delete: async (key: string) => void blobs.delete(key),
    } as unknown as BlobStore,
    events: { trouble } as unknown as JobEvents,
    failPoints: noFailPoints,
    marks: createMarks({
      clock: systemClock,
      catalog: { current: vi.fn() },
      events: { marked: vi.fn(), markFailed: vi.fn() },
      marking: undefined,
    }),
  });
  for (const byte of [1, 2]) await stored.store(Uint8Array.of(byte), "image/png");
  return { blobs, stored, find: store.find, trouble };
}

const [first, second] = ["outputs/job_a/2-output_0", "outputs/job_a/2-output_1"];
const outputs = [{ blobKey: second }] as JobOutput[];

test("what was never offered to the job is removed without a look at it", async () => {
  const { blobs, stored, find } = await attempt(async () => job);
  await stored.discard();
  expect([...blobs]).toEqual([]);
  expect(find).not.toHaveBeenCalled();
});

test("what the job got, as far as its worker heard, is not looked for either", async () => {
  const { blobs, stored, find } = await attempt(async () => job);
  stored.offered();
  stored.won(outputs);
  await stored.discard();
  expect([...blobs]).toEqual([second]);
  expect(find).not.toHaveBeenCalled();
});

test.each<[string, Partial<Job> | undefined, string[]]>([
  ["may still get it: the offer may be on its way", job, [first, second]],
  ["got it, and the answer was lost", { ...job, state: "settling", outputs }, [second]],
  ["is completed with it", { ...job, state: "completed", outputs }, [second]],
  ["was cancelled", { ...job, state: "failing" }, []],
  ["has another worker", { ...job, fence: 3 }, []],
  ["waits for another worker", { ...job, state: "queued" }, []],
  ["was deleted", { ...job, state: "deleted" }, []],
  ["is forgotten", undefined, []],
])("what was offered to a job that %s", async (_, found, left) => {
  const { blobs, stored } = await attempt(async () => found);
  stored.offered();
  await stored.discard();
  expect([...blobs].sort()).toEqual(left);
});

test("what was offered stays where the job cannot be looked at", async () => {
  const { blobs, stored, trouble } = await attempt(() => Promise.reject(new Error("away")));
  stored.offered();
  await stored.discard();
  expect([...blobs].sort()).toEqual([first, second]);
  expect(trouble).toHaveBeenCalledOnce();
});

test("what is stored when the attempt is over does not stay", async () => {
  const { blobs, stored } = await attempt(async () => job);
  const gate = Promise.withResolvers<Uint8Array>();
  async function* slow() {
    yield await gate.promise;
  }
  const late = stored.store(Readable.from(slow()), "video/mp4");
  await stored.discard();
  gate.resolve(Uint8Array.of(3));
  await expect(late).rejects.toThrow("the attempt is over");
  expect([...blobs]).toEqual([]);
  await expect(stored.store(Uint8Array.of(4), "image/png")).rejects.toThrow("the attempt is over");
});

test("a name is not had twice, even where a restored database gives a fence a second time", () => {
  expect(outputKey(job, randomIds)).not.toBe(outputKey(job, randomIds));
});
