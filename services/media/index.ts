import { createCatalogView } from "#kit/catalog-client.ts";
import { ErrorReason, RefusalError } from "#kit/errors.ts";
import { createFairShare } from "#kit/fair-share.ts";
import { createHoldClient } from "#kit/holds.ts";
import { createJsonReader } from "#kit/json-reader/index.ts";
import { rpcService, type Service } from "#kit/rpc/service.ts";
import { FileArea, MediaService } from "#proto/genmesh/media/v1/media_service_pb.ts";
import { createJobStore, createMediaShared, type MediaDeps, retentionMsOf } from "./context.ts";
import { noFailPoints } from "./fail-points.ts";
import { createFiles, type GeneratedFiles } from "./files/index.ts";
import { takeCensus } from "./jobs/census.ts";
import { createDriver } from "./jobs/drive.ts";
import { createJobHolds } from "./jobs/holds.ts";
import { lendOutput, locateOutput, needsReferences, outputsOwner } from "./jobs/outputs.ts";
import { createRetention } from "./jobs/retention.ts";
import { createSweeper } from "./jobs/sweeper.ts";
import { watchShare } from "./limits.ts";
import { createJobRoutes } from "./routes.ts";
import { createSpeech } from "./speech/index.ts";

export {
  createMediaShared,
  type MediaDeps,
  type MediaShared,
  type MediaWorkerDeps,
} from "./context.ts";
export { createMediaWorker } from "./worker/index.ts";

/** The media service: jobs, speech and files, and the sweeper of all three. Workers are services of their own. */
export function createMedia(deps: MediaDeps): Service {
  const { clock, ids, log, blobs, queue } = deps;
  const { events, changes } = deps.shared ?? createMediaShared(deps);
  const failPoints = deps.failPoints ?? noFailPoints;
  const retentionMs = retentionMsOf(deps);
  const catalog = createCatalogView({ catalog: deps.peers.catalog, clock, log });
  const reader = createJsonReader();
  const holdClient = createHoldClient(deps.peers.billing, deps);
  const store = changes.observed(createJobStore(deps.database));
  const [life, work, closing] = [
    new AbortController(),
    new AbortController(),
    new AbortController(),
  ];

  const speech = createSpeech({
    ...deps,
    catalog,
    holds: holdClient,
    reader,
    retentionMs: retentionMs > 0 ? retentionMs : undefined,
  });
  const generated: GeneratedFiles = {
    locate: (name, principal) =>
      name.area === FileArea.SPEECH
        ? speech.locate(name, principal)
        : locateOutput(store, name, principal, clock.now()),
    lend: (output) => lendOutput(store, output, clock.now()),
    needsReferences: async (jobId) => needsReferences(await store.find(jobId)),
  };
  const files = createFiles({ ...deps, generated });

  const holds = createJobHolds(holdClient);
  const { telemetry } = deps;
  const saga = { clock, ids, store, queue, holds, events, failPoints, retentionMs, telemetry };
  const { importer } = files;
  const driver = createDriver({ ...saga, importer, life: life.signal });
  const owners = [
    outputsOwner(store),
    { prefix: "uploads/", isReferenced: files.isReferenced },
    { prefix: "speech/", isReferenced: speech.isReferenced },
  ];
  const retention = createRetention({ ...saga, blobs, owners });
  const sweeper = createSweeper({ ...saga, driver, importer, retention });
  const jobs = createJobRoutes({
    ...saga,
    driver,
    catalog,
    changes,
    reader,
    watches: createFairShare(watchShare, { isPaying: deps.payers?.isPaying, clock }),
    closing: closing.signal,
    resolveOtherHold: speech.resolveHold,
  });
  let loops: Promise<void>[] | undefined;

  return {
    name: "media",
    rpc: [rpcService(MediaService, { ...jobs, ...files.methods, ...speech.methods })],
    async start() {
      await store.open();
      await files.start();
      await speech.start();
      loops = [sweeper.run(work.signal), retention.run(work.signal), takeCensus(saga, work.signal)];
    },
    notReady: () => (loops ? catalog.notReady() : "media: its stores are not open yet"),
    async drain(signal) {
      work.abort();
      await Promise.all(loops ?? []);
      await Promise.all([files.drain(signal), speech.drain(signal), untilIdle(driver, signal)]);
      closing.abort();
    },
    async [Symbol.asyncDispose]() {
      work.abort();
      closing.abort();
      life.abort(new RefusalError(ErrorReason.SERVICE_UNAVAILABLE));
      await Promise.all(loops ?? []);
      await driver.idle();
      await speech[Symbol.asyncDispose]();
      await files[Symbol.asyncDispose]();
      await reader[Symbol.asyncDispose]();
      await catalog[Symbol.asyncDispose]();
    },
  };
}

/** Until every submission under way has its end, or `signal` aborts. */
async function untilIdle(driver: { idle(): Promise<void> }, signal: AbortSignal): Promise<void> {
  const aborted = new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
  await Promise.race([driver.idle(), aborted]);
}
