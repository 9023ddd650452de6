// Gathers what all code of a process shares, such as settings, log, clock, ids and threads, for each service that it builds. The log and
// the metrics of a program come from `serve.ts`, which needs them before anything can fail.

import { type Ids, randomIds } from "#kit/base/ids.ts";
import type { Logger } from "#kit/base/logger.ts";
import { createMetrics, type Metrics } from "#kit/base/metrics.ts";
import type { Service } from "#kit/rpc/service.ts";
import { createPayers, type Payers } from "#kit/share/payers.ts";
import { createInferences, type Inferences } from "#kit/telemetry/inference.ts";
import { createWorkshop, type Workshop } from "#kit/threads/workshop.ts";
import { type Clock, type CorrectedClock, correctedClock } from "#kit/time/clock.ts";
import type { Config } from "./config.ts";

/** Values that a process gets from outside beside its configuration. The overrides are for tests. */
export interface ProcessOptions {
  log: Logger;
  /** Aborts a start that is under way. */
  signal: AbortSignal;
  clock?: Clock;
  ids?: Ids;
  /** Default: a new registry. */
  metrics?: Metrics;
}

/** The parts that everything in a process shares. */
export interface HostContext {
  config: Config;
  log: Logger;
  clock: Clock;
  /** The same clock, so that it can be corrected. */
  correctedClock: CorrectedClock;
  ids: Ids;
  metrics: Metrics;
  inferences: Inferences;
  /** Each hold of this process fills it. Code that shares something between accounts reads it. */
  payers: Payers;
  /** Threads for what would keep the event loop. The start of the process owns and closes them. */
  workshop: Workshop;
}

/** Makes it. */
export function createHostContext(config: Config, options: ProcessOptions): HostContext {
  const { metrics = createMetrics({ processMetrics: true }) } = options;
  const clock = correctedClock(options.clock);
  return {
    config,
    log: options.log,
    clock,
    correctedClock: clock,
    ids: options.ids ?? randomIds,
    metrics,
    inferences: createInferences({
      metrics,
      timesChunks: config.telemetry?.metrics !== undefined,
    }),
    payers: createPayers({ clock }),
    workshop: createWorkshop(),
  };
}

/** Begins to send traces and metrics. Where no collector is configured, OpenTelemetry's SDK is not loaded at all. */
export async function openTelemetry(
  { telemetry }: Config,
  deps: { log: Logger; metrics: Metrics },
): Promise<AsyncDisposable | undefined> {
  if (!telemetry) return undefined;
  const { startTelemetry } = await import("./telemetry.ts");
  return startTelemetry(telemetry, deps);
}

/** Undefined when requests will be served. Otherwise the reason. */
export type Readiness = () => string | undefined;

/** The services' own answers. `isDraining` comes before them. */
export function readinessOf(services: readonly Service[], isDraining: () => boolean): Readiness {
  return () =>
    isDraining()
      ? "stopping"
      : services.map((one) => one.notReady()).find((why) => why !== undefined);
}

/** Milliseconds between two checks of a part that is not ready yet. */
const readyPollMs = 20;
/** After this many ms a process that still waits logs the reason, and again as often. */
const saysWhyMs = 10_000;

/** Resolves when requests will be served. Until then it logs now and then what it waits for. */
export async function untilReady(
  { clock, log }: HostContext,
  notReady: Readiness,
  signal: AbortSignal,
): Promise<void> {
  let saidAtMs = clock.steady();
  for (let reason = notReady(); reason !== undefined; reason = notReady()) {
    if (clock.steady() - saidAtMs >= saysWhyMs) {
      saidAtMs = clock.steady();
      log.warn({ reason }, "not ready yet");
    }
    await clock.sleep(readyPollMs, signal);
  }
}
