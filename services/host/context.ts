import { type Ids, randomIds } from "#kit/base/ids.ts";
import type { Logger } from "#kit/base/logger.ts";
import { createMetrics, type Metrics } from "#kit/base/metrics.ts";
import type { Service } from "#kit/rpc/service.ts";
import { createPayers, type Payers } from "#kit/share/payers.ts";
import { createInferences, type Inferences } from "#kit/telemetry/inference.ts";
import { createWorkshop, type Workshop } from "#kit/threads/workshop.ts";
import { type Clock, type CorrectedClock, correctedClock } from "#kit/time/clock.ts";
import type { Config } from "./config.ts";

/** What a process takes from outside beside its configuration; the overrides are for tests. */
export interface ProcessOptions {
  log: Logger;
  /** Aborts a start that is under way. */
  signal: AbortSignal;
  clock?: Clock;
  ids?: Ids;
  /** Default: a registry of its own. */
  metrics?: Metrics;
}

/** What every part of a process shares. */
export interface HostContext {
  config: Config;
  log: Logger;
  clock: Clock;
  /** The same one, to be set right. */
  correctedClock: CorrectedClock;
  ids: Ids;
  metrics: Metrics;
  inferences: Inferences;
  /** Filled by every hold of this process, read where something is shared between accounts. */
  payers: Payers;
  /** Threads for what would keep the event loop. What starts the process closes them. */
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
    inferences: createInferences({ metrics }),
    payers: createPayers({ clock }),
    workshop: createWorkshop(),
  };
}

/** Begins to send traces and metrics. Where no collector is configured, nothing of OpenTelemetry's SDK is loaded. */
export async function openTelemetry(
  { telemetry }: Config,
  deps: { log: Logger; metrics: Metrics },
): Promise<AsyncDisposable | undefined> {
  if (!telemetry) return undefined;
  const { startTelemetry } = await import("./telemetry.ts");
  return startTelemetry(telemetry, deps);
}

/** Undefined when requests will be served; else why not. */
export type Readiness = () => string | undefined;

/** The services' own word; `isDraining` comes before it. */
export function readinessOf(services: readonly Service[], isDraining: () => boolean): Readiness {
  return () =>
    isDraining()
      ? "stopping"
      : services.map((one) => one.notReady()).find((why) => why !== undefined);
}

/** Milliseconds between two looks at what is not ready yet. */
const readyPollMs = 20;
/** Milliseconds after which a process that still waits says for what; then again as often. */
const saysWhyMs = 10_000;

/** Resolves when requests will be served; what it waits for is said now and then. */
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
