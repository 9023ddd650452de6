// Builds the media service from its parts, and starts and stops its loops: sweeping, retention, webhooks. The host is its caller.
// Workers are built in `worker/index.ts`.

import { holdClientOf } from "#common/agreements/hold-wire.ts";
import { whenAborted } from "#kit/base/abort.ts";
import { ErrorReason, RefusalError } from "#kit/base/errors.ts";
import { createJsonReader } from "#kit/json-reader/index.ts";
import { rpcService, type Service } from "#kit/rpc/service.ts";
import { createFairShare } from "#kit/share/fair-share.ts";
import { FileArea, MediaService } from "#proto/genmesh/media/v1/media_service_pb.ts";
import { createJobStore, createMediaShared, type MediaDeps, retentionMsOf } from "./context.ts";
import { createEraseAccountRoute } from "./erase-account.ts";
import { noFailPoints } from "./fail-points.ts";
import { createFiles, type GeneratedFiles } from "./files/index.ts";
import { takeCensus } from "./jobs/census.ts";
import { createDriver } from "./jobs/drive.ts";
import { createJobHolds } from "./jobs/job-holds.ts";
import {
  createRetention,
  lendOutput,
  locateOutput,
  needsReferences,
  outputsOwner,
} from "./jobs/outputs.ts";
import { createSweeper } from "./jobs/sweeper.ts";
import { createQueuePlaces } from "./jobs/waiting-jobs.ts";
import { watchShare } from "./limits.ts";
import { createJobRoutes } from "./routes.ts";
import { createSpeech } from "./speech/index.ts";
import { createWebhooks } from "./webhooks/index.ts";

export {
  createMediaShared,
  type MediaDeps,
  type MediaShared,
  type MediaWorkerDeps,
} from "./context.ts";
export { createMediaWorker } from "./worker/index.ts";

/** The media service: jobs, speech and files, and the sweeper of all three. Workers are separate services. */
export function createMedia(deps: MediaDeps): Service {
  const [life, work, closing] = [
    new AbortController(),
    new AbortController(),
    new AbortController(),
  ];
  const parts = createParts(deps, { life: life.signal, closing: closing.signal });
  const { store, speech, files, webhooks, driver, methods } = parts;
  let loops: Promise<void>[] | undefined;

  return {
    name: "media",
    rpc: [rpcService(MediaService, methods)],
    async start() {
      await store.open();
      await webhooks.open();
      await files.start();
      await speech.start();
      loops = parts.loops(work.signal);
    },
    notReady: () => (loops ? deps.catalog.notReady() : "media: its stores are not open yet"),
    async drain(signal) {
      work.abort();
      await Promise.all(loops ?? []);
      await Promise.all([
        files.drain(signal),
        speech.drain(signal),
        untilIdle(driver, signal),
        untilIdle(webhooks, signal),
      ]);
      closing.abort();
    },
    async [Symbol.asyncDispose]() {
      work.abort();
      closing.abort();
      life.abort(new RefusalError(ErrorReason.SERVICE_UNAVAILABLE));
      await webhooks[Symbol.asyncDispose]();
      await Promise.all(loops ?? []);
      await driver.idle();
      await speech[Symbol.asyncDispose]();
      await files[Symbol.asyncDispose]();
    },
  };
}

/** The parts of the service. `life` lasts until no job may be driven any longer, `closing` until no caller may watch one. */
function createParts(
  deps: MediaDeps,
  { life, closing }: { life: AbortSignal; closing: AbortSignal },
) {
  const { clock, ids, blobs, queue, catalog, upstreams } = deps;
  const { events, changes, leaseTime } = deps.shared ?? createMediaShared(deps);
  const failPoints = deps.failPoints ?? noFailPoints;
  const retentionMs = retentionMsOf(deps);
  const reader = createJsonReader(deps.workshop);
  const holdClient = holdClientOf(deps);
  const store = changes.observed(createJobStore(deps.database));

  const speech = createSpeech({
    ...deps,
    holds: holdClient,
    leaseTime,
    reader,
    retentionMs: retentionMs > 0 ? retentionMs : undefined,
  });
  const generated: GeneratedFiles = {
    locate: (name, principal) =>
      name.area === FileArea.SPEECH
        ? speech.locate(name, principal)
        : locateOutput(store, name, principal, clock.now()),
    lend: (output) => lendOutput(store, output, clock.now()),
    needsReferences: async (jobId) => needsReferences(await store.findWithoutText(jobId)),
  };
  const files = createFiles({ ...deps, generated });

  const holds = createJobHolds(holdClient);
  const { importer } = files;
  const saga = {
    ...{ clock, ids, store, queue, holds, events, failPoints, retentionMs },
    ...{ blobs, importer, upstreams },
  };
  const driver = createDriver({ ...saga, life });
  const owners = [
    outputsOwner(store),
    { prefix: "uploads/", isReferenced: files.isReferenced },
    { prefix: "speech/", isReferenced: speech.isReferenced },
  ];
  const retention = createRetention({ ...saga, owners });
  const webhooks = createWebhooks({ ...deps, jobs: store, failPoints });
  const { announce } = webhooks;
  const sweeper = createSweeper({ ...saga, leaseTime, driver, retention, announce });
  const erasing = createEraseAccountRoute({
    ...saga,
    announce,
    eraseFiles: files.eraseAccount,
    eraseSpeeches: speech.eraseOf,
    eraseWebhooks: webhooks.eraseAccount,
  });
  const jobs = createJobRoutes({
    ...saga,
    announce,
    driver,
    catalog,
    changes,
    places: createQueuePlaces({ ...saga, catalog }),
    reader,
    watches: createFairShare(watchShare, { isPaying: deps.payers?.isPaying, clock }),
    closing,
    resolveOtherHold: speech.resolveHold,
  });
  return {
    ...{ store, speech, files, webhooks, driver },
    methods: {
      ...jobs,
      ...erasing,
      ...files.methods,
      ...speech.methods,
      ...webhooks.methods,
      ...deps.notices,
    },
    loops: (work: AbortSignal) => [
      sweeper.run(work),
      retention.run(work),
      takeCensus(saga, work),
      webhooks.run(work),
    ],
  };
}

/** Waits for the work under way to end, or for `signal` to abort. */
async function untilIdle(work: { idle(): Promise<void> }, signal: AbortSignal): Promise<void> {
  await Promise.race([work.idle(), whenAborted(signal)]);
}
