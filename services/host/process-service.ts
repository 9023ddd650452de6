// Answers `genmesh status` and the console about this process: its stores, its backlogs, its readiness. It reads metrics, and
// asks no store.

import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { MetricReading } from "#kit/base/figures.ts";
import type { Metrics } from "#kit/base/metrics.ts";
import { type RpcService, rpcService } from "#kit/rpc/service.ts";
import { ProcessService } from "#proto/genmesh/common/v1/process_service_pb.ts";
import type { Config } from "./config.ts";
import type { HostContext, Readiness } from "./context.ts";
import { version } from "./version.ts";

/** Metrics with the answers. Alerts use the same ones. */
const source = {
  storeUp: "genmesh_store_up",
  queueUp: "genmesh_queue_connected",
  jobs: "genmesh_media_jobs",
  oldestJob: "genmesh_media_oldest_job_seconds",
  webhooks: "genmesh_media_webhooks_waiting",
  wallets: "genmesh_billing_wallets_uncounted",
  catalog: "genmesh_catalog_file_valid",
} as const;

/** The method by which an operator asks a process about itself. */
export function processService(context: HostContext, notReady: Readiness): RpcService {
  const { clock, config, ids, metrics } = context;
  const processId = ids.make("process", 12);
  const startTime = timestampFromMs(clock.now());
  return rpcService(ProcessService, {
    async getProcess() {
      const [catalog] = await valuesOf(metrics, source.catalog);
      return {
        ...{ processId, role: config.role, version, startTime, notReady: notReady() ?? "" },
        stores: await storesOf(config, metrics),
        backlogs: await backlogsOf(metrics),
        ...(catalog ? { isCatalogValid: catalog.value === 1 } : {}),
      };
    },
  });
}

/** The servers and disks that the process watches, and the embedded stores, which are up as long as it runs. */
async function storesOf({ database, blobs, queue }: Config, metrics: Metrics) {
  const watched = await valuesOf(metrics, source.storeUp);
  const [queueUp] = await valuesOf(metrics, source.queueUp);
  const isUp = new Map(watched.map(({ labels, value }) => [`${labels.store}`, value === 1]));
  if (queueUp) isUp.set("queue", queueUp.value === 1);
  const named = Object.entries({ database, blobs, queue }).flatMap(([name, store]) =>
    store ? [{ name, kind: store.kind, isUp: isUp.get(name) ?? true }] : [],
  );
  const disks = [...isUp].filter(([name]) => !named.some((one) => one.name === name));
  return [...named, ...disks.map(([name, isUp]) => ({ name, kind: "", isUp }))];
}

async function backlogsOf(metrics: Metrics) {
  const ages = await valuesOf(metrics, source.oldestJob);
  const jobs = (await valuesOf(metrics, source.jobs)).map(({ labels, value }) => {
    const { kind, state } = labels;
    const age = ages.find((one) => one.labels.kind === kind && one.labels.state === state);
    const oldestSeconds = BigInt(Math.round(age?.value ?? 0));
    return { subject: "jobs", kind: `${kind}`, state: `${state}`, count: value, oldestSeconds };
  });
  const others = (["webhooks", "wallets"] as const).map(async (subject) =>
    (await valuesOf(metrics, source[subject])).map(({ value }) => ({
      ...{ subject, kind: "", state: "waiting", count: value, oldestSeconds: 0n },
    })),
  );
  const all = [...jobs, ...(await Promise.all(others)).flat()];
  return all.map((one) => ({ ...one, count: BigInt(one.count) }));
}

async function valuesOf(metrics: Metrics, name: string): Promise<MetricReading["values"]> {
  return (await metrics.readOne(name))?.values ?? [];
}
