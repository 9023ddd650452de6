import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Interceptor } from "@connectrpc/connect";
import { type Logger, pino } from "pino";
import { createCatalogView } from "#common/agreements/catalog-client.ts";
import { createPeers, type Peers } from "#common/agreements/peers.ts";
import { randomIds } from "#kit/base/ids.ts";
import { createMetrics } from "#kit/base/metrics.ts";
import { createImageVerifier } from "#kit/images/index.ts";
import { createGuardedFetcher } from "#kit/outside/index.ts";
import type { WakeQueue } from "#kit/queue/port.ts";
import { accessInterceptor, tokenInterceptor } from "#kit/rpc/access.ts";
import { createDirectTransport } from "#kit/rpc/direct-transport.ts";
import { serverErrorInterceptor } from "#kit/rpc/interceptors.ts";
import { callHeaders, type Principal } from "#kit/rpc/principal.ts";
import type { RpcService, Service } from "#kit/rpc/service.ts";
import { createWorkshop } from "#kit/threads/workshop.ts";
import type { Clock } from "#kit/time/clock.ts";
import { Unit } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import type { AdmissionSchema } from "#proto/genmesh/common/v1/access_pb.ts";
import { type Job, JobKind, JobStatus } from "#proto/genmesh/media/v1/media_service_pb.ts";
import { createBilling } from "../../services/billing/index.ts";
import { createCatalog } from "../../services/catalog/index.ts";
import { createJobStore } from "../../services/media/context.ts";
import type { FailPoints } from "../../services/media/fail-points.ts";
import {
  createMedia,
  createMediaShared,
  createMediaWorker,
  type MediaWorkerDeps,
} from "../../services/media/index.ts";
import type { JobStore } from "../../services/media/jobs/store.ts";
import { createWebhookStore } from "../../services/media/webhooks/store-documents.ts";
import { createNotices } from "../../services/notices/index.ts";
import type { MediaUpstreams } from "../../services/upstreams/media/port.ts";
import { jumpClock } from "../support/jump-clock.ts";
import { until } from "../support/until.ts";
import { type OpenWorldStores, openEmbeddedStores } from "../support/world-stores.ts";
import { scriptedUpstream } from "./jobs.upstream.ts";

export const alice: Principal = { accountId: "acct_alice", keyId: "key_alice" };
export const alicesOther: Principal = { accountId: "acct_alice", keyId: "key_alice2" };
export const bob: Principal = { accountId: "acct_bob", keyId: "key_bob" };

export const shippedCatalog = fileURLToPath(new URL("../../deploy/catalog.yaml", import.meta.url));
const tokens = { mesh: ["mesh-token"], admin: "admin-token" };
const silent = pino({ level: "silent" });

/** Options of a world. */
export interface JobsWorldOptions {
  upstream?: MediaUpstreams;
  /** Default: the machine's clock, which a test can move. */
  clock?: Clock;
  /** The clock of billing, where a test must tell its sleeps from those of media. Default: `clock`. */
  billingClock?: Clock;
  /** Default: embedded, in its folder. */
  openStores?: OpenWorldStores;
  /** The folder of its state. Default: a new folder, removed at the end. */
  folder?: string;
  /** Text of the catalog. */
  catalog?: string;
  /** An existing catalog file. Default: the shipped one. */
  catalogFile?: string;
  /** Workers of each kind. Default 2. */
  workers?: NonNullable<MediaWorkerDeps["workers"]>;
  /** Running media workers. Default 1. */
  workerCount?: number;
  retentionDays?: number;
  failPoints?: FailPoints;
  queue?: WakeQueue;
  /** Stands between media and billing. */
  between?: Interceptor;
  /** Stands between the services and the store of their jobs. */
  beforeStore?: (store: JobStore) => JobStore;
  /** Do the API and the sweep run too? Default true. */
  withApi?: boolean;
  /** Default: none. */
  log?: Logger;
}

export type SubmitOptions = {
  principal?: Principal;
  key?: string;
  kind?: JobKind;
  admission?: MessageInitShape<typeof AdmissionSchema>;
};

/** Real billing, catalog and media over one database and one folder. The test plays the upstreams. */
export async function createJobsWorld(options: JobsWorldOptions = {}) {
  await using stack = new AsyncDisposableStack();
  const folder = options.folder ?? (await mkdtemp(join(tmpdir(), "genmesh-jobs-")));
  if (!options.folder) stack.defer(() => rm(folder, { recursive: true }));
  const clock = options.clock ?? jumpClock();
  const upstream = options.upstream ?? scriptedUpstream();
  const stores = stack.use(await (options.openStores ?? openEmbeddedStores)(folder, clock));
  const { database, blobs } = stores;
  const queue = options.queue ?? stores.queue;
  const services: RpcService[] = [];
  const transport = (token: string, between: Interceptor[] = []) =>
    createDirectTransport({
      services: () => services,
      clientInterceptors: [tokenInterceptor(token), ...between],
      serverInterceptors: [
        serverErrorInterceptor({ log: silent, ids: randomIds }),
        accessInterceptor(tokens),
      ],
    });
  const peers = createPeers(() => transport("mesh-token"));
  const common = {
    clock,
    ids: randomIds,
    log: options.log ?? silent,
    metrics: createMetrics(),
    database,
    peers: createPeers(() => transport("mesh-token", options.between ? [options.between] : [])),
  };
  const verifier = stack.use(
    createImageVerifier({ processes: 1, memoryMb: 512, timeoutMs: 10_000 }),
  );
  const shared = createMediaShared(common);
  const { changes } = shared;
  const { beforeStore = (store) => store } = options;
  const observed: typeof changes.observed = (store) => changes.observed(beforeStore(store));
  const catalog = stack.use(createCatalogView({ ...common, catalog: peers.catalog }));
  const media = {
    ...common,
    catalog,
    queue,
    blobs,
    upstreams: upstream,
    retentionDays: options.retentionDays ?? 30,
    shared: { ...shared, changes: { ...changes, observed } },
    ...(options.failPoints ? { failPoints: options.failPoints } : {}),
  };
  const given = options.catalogFile ?? shippedCatalog;
  const file = options.catalog === undefined ? given : join(folder, "catalog.yaml");
  if (options.catalog !== undefined) await writeFile(file, options.catalog);
  const started = async (service: Service) => {
    stack.use(service);
    services.push(...service.rpc);
    await service.start();
    return service;
  };
  const workshop = stack.use(createWorkshop());
  await started(createCatalog({ ...common, workshop, file }));
  await started(createBilling({ ...common, clock: options.billingClock ?? clock, peers }));
  const ways = { webhook: undefined, mail: undefined };
  const api = createMedia({
    ...media,
    workshop,
    verifier,
    fetcher: createGuardedFetcher({ allowPrivate: true }),
    notices: createNotices({ ...common, role: "all", ways }).methods,
    tempFolder: join(folder, "uploads"),
  });
  if (options.withApi !== false) await started(api);
  const workers: Service[] = [];
  const workersOfEach = { image: 2, video: 2, music: 2, ...options.workers };
  for (let i = 0; i < (options.workerCount ?? 1); i++) {
    workers.push(await started(createMediaWorker({ ...media, workers: workersOfEach })));
  }
  const all = options.withApi === false ? workers : [api, ...workers];
  await until("the services to be ready", () => all.every((one) => !one.notReady()));
  const owned = stack.move();
  const admin = createPeers(() => transport("admin-token"));
  return {
    ...asking(peers, admin),
    folder,
    clock,
    upstream,
    blobs,
    queue,
    peers,
    admin,
    /** Reports changes by the API and the workers. */
    changes,
    media: api,
    workers,
    /** The stored jobs. */
    store: createJobStore(database),
    webhooks: createWebhookStore(database),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

export type JobsWorld = Awaited<ReturnType<typeof createJobsWorld>>;

/** Headers of a call for a principal. */
export const as = (principal: Principal) => ({ headers: callHeaders(principal, "req_test") });

function asking(peers: Peers, admin: Peers) {
  const get = async (jobId: string, principal: Principal = alice): Promise<Job> =>
    present((await peers.media.getJob({ jobId }, as(principal))).job);
  return {
    async fund(credits: bigint, { accountId }: Principal = alice): Promise<void> {
      const operationId = randomIds.make("grant");
      const grant = { accountId, unit: Unit.CREDITS, amount: credits, operationId };
      await admin.billing.grant(grant);
    },
    async credits({ accountId }: Principal = alice) {
      const { credits } = await peers.billing.getBalance({ accountId });
      const { reserved = 0n, spent = 0n, spendable = 0n } = credits ?? {};
      return { reserved, spent, spendable };
    },
    /** Submits a body. By default a small image. */
    async submit(body: unknown = image(), options: SubmitOptions = {}) {
      const { key, admission, kind = JobKind.IMAGE, principal = alice } = options;
      const answer = await peers.media.submitJob(
        {
          kind,
          body: Buffer.from(typeof body === "string" ? body : JSON.stringify(body)),
          ...(key === undefined ? {} : { idempotencyKey: key }),
          ...(admission ? { admission } : {}),
        },
        as(principal),
      );
      return { job: present(answer.job), replayed: answer.replayed };
    },
    get,
    async cancel(jobId: string, principal: Principal = alice): Promise<Job> {
      return present((await peers.media.cancelJob({ jobId }, as(principal))).job);
    },
    /** Waits until a job has ended, by the machine's clock. */
    async ended(jobId: string, principal: Principal = alice): Promise<Job> {
      return until(
        `job ${jobId} to end`,
        async () => {
          const job = await get(jobId, principal);
          const isOver = job.status === JobStatus.COMPLETED || job.status === JobStatus.FAILED;
          return isOver ? job : undefined;
        },
        { withinMs: 60_000 },
      );
    },
  };
}

/** The body of an image job. */
export function image(more: Record<string, unknown> = {}) {
  return { model: "image-1", prompt: "a lighthouse", ...more };
}

/** The body of a video job. */
export function video(more: Record<string, unknown> = {}) {
  return { model: "svc-video-1-5", prompt: "waves", seconds: 6, resolution: "480p", ...more };
}

/** The body of a music job. */
export function music(more: Record<string, unknown> = {}) {
  return { model: "music-1", mode: "instrumental", title: "Harbour lights", ...more };
}

function present<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("the answer lacks what it is for");
  return value;
}
