import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { setTimeout } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ErrorReason, isRefusal } from "#kit/base/errors.ts";
import { randomIds } from "#kit/base/ids.ts";
import { createLogger } from "#kit/base/logger.ts";
import { createMetrics, type Metrics } from "#kit/base/metrics.ts";
import type { BlobStore } from "#kit/store/blobs.ts";
import { systemClock } from "#kit/time/clock.ts";
import { all } from "../../../../test/contract/blobs.suite.ts";
import { openFolderBlobs } from "./folder.ts";
import { openS3Blobs } from "./s3.ts";
import { timedBlobs } from "./timed.ts";

let folder: string;
let metrics: Metrics;
let blobs: BlobStore;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "genmesh-timed-"));
  metrics = createMetrics();
  const store = await openFolderBlobs({ folder, clock: systemClock, ids: randomIds });
  blobs = timedBlobs(store, metrics, "file");
});
afterEach(() => rm(folder, { recursive: true, force: true }));

/** "operation outcome times" of each count. */
async function counted(where: Metrics = metrics): Promise<string[]> {
  const [reading] = await where.read();
  const counts = (reading?.values ?? []).filter((one) => one.metricName?.endsWith("_count"));
  return counts.map(({ labels, value }) => `${labels.operation} ${labels.outcome} ${value}`).sort();
}

/** Seconds of all puts together. */
async function putSeconds(): Promise<number> {
  const [reading] = await metrics.read();
  return reading?.values.find((one) => one.metricName?.endsWith("_sum"))?.value ?? Number.NaN;
}

test("every operation is counted by its outcome, and does what it did", async () => {
  expect(await blobs.put("a/one", source("bytes"))).toMatchObject({ sizeBytes: 5 });
  await expect(blobs.put("a/one", source("other"))).rejects.toThrow("taken");
  expect(String(await buffer(await blobs.openRead("a/one", { start: 1, end: 2 })))).toBe("yt");
  await expect(blobs.openRead("a/two")).rejects.toThrow("no such blob");
  expect((await blobs.stat("a/one"))?.sizeBytes).toBe(5);
  expect(await blobs.stat("a/two")).toBeUndefined();
  expect((await all(blobs.list("a/"))).map(({ key }) => key)).toEqual(["a/one"]);
  for await (const _ of blobs.list()) break;
  await blobs.delete("a/one");
  expect(await counted()).toEqual([
    "delete ok 1",
    "list left 1",
    "list ok 1",
    "open absent 1",
    "open ok 1",
    "put ok 1",
    "put taken 1",
    "stat absent 1",
    "stat ok 1",
  ]);
});

test("a put whose source fails, or that its caller no longer wants, is not the store's fault", async () => {
  await expect(blobs.put("a/one", broken())).rejects.toThrow("the caller left");
  const left = AbortSignal.abort(new Error("late"));
  await expect(blobs.put("a/two", source("bytes"), left)).rejects.toThrow("late");
  expect(await counted()).toEqual(["put left 2"]);
});

test("the time that a source takes is not the store's", async () => {
  const begunMs = performance.now();
  await blobs.put("a/slow", slow());
  const allMs = performance.now() - begunMs;
  expect(await putSeconds()).toBeLessThanOrEqual((allMs - sourceMs) / 1_000);
});

test("a store that is away is told from one that fails", async () => {
  const s3 = await openS3Blobs({
    // No server listens there.
    url: "s3+http://key:secret@127.0.0.1:9/bucket",
    readOnly: true,
    clock: { ...systemClock, now: impatient() },
    ids: randomIds,
    log: createLogger("silent"),
  });
  const ofS3 = createMetrics();
  const away = await timedBlobs(s3, ofS3, "s3")
    .stat("a/one")
    .catch((error) => error);
  expect(isRefusal(away, ErrorReason.SERVICE_UNAVAILABLE)).toBe(true);
  await s3[Symbol.asyncDispose]();
  await rm(folder, { recursive: true });
  await expect(blobs.put("a/one", source("bytes"))).rejects.toThrow("ENOENT");
  expect(await counted(ofS3)).toEqual(["stat away 1"]);
  expect(await counted()).toEqual(["put failed 1"]);
});

async function* source(text: string) {
  yield Buffer.from(text);
}

async function* broken() {
  yield Buffer.from("by");
  throw new Error("the caller left");
}

/** Milliseconds that {@link slow} takes at least. */
const sourceMs = 50;

async function* slow() {
  const begunMs = performance.now();
  // The test is about time itself.
  while (performance.now() - begunMs < sourceMs) await setTimeout(sourceMs);
  yield Buffer.from("bytes");
}

/** A clock that moves a second at each call, so that attempts are few. */
function impatient(): () => number {
  let now = 0;
  return () => {
    now += 1_000;
    return now;
  };
}
