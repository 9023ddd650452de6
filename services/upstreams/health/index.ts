// Tells operators how each upstream does now, over all processes that use it. `history.ts` has the last days.

import type { Logger } from "#kit/base/logger.ts";
import type { Metrics } from "#kit/base/metrics.ts";
import type { Clock } from "#kit/time/clock.ts";
import {
  type Counted,
  endedSince,
  readEnded,
  readStanding,
  sumOf,
  type UpstreamFigures,
  type UpstreamReport,
} from "./figures.ts";
import type { HealthStore } from "./store.ts";

/**
 * The recent state of upstreams, over all processes that use them. Each process reads its part from the metrics that /metrics shows and
 * the alerts use. It writes a report where the others find it, because workers have no port that a peer could call.
 */
export interface UpstreamHealth extends Disposable {
  /** Figures of the last five minutes. `processes`: how many sent reports, this one included. */
  read(): Promise<{ upstreams: UpstreamFigures[]; processes: number }>;
}

/** Milliseconds of the past that the figures cover. */
const windowMs = 5 * 60_000;
/** Milliseconds between two reports of a process. The console asks as often. */
export const reportMs = 10_000;
/** Milliseconds for which a report counts. A process that has missed three reports is gone. */
export const reportCountsMs = 3 * reportMs + 5_000;

/** Makes it, and begins to report. Disposing ends that. */
export function createUpstreamHealth(deps: {
  metrics: Metrics;
  clock: Clock;
  log: Logger;
  store: HealthStore;
  /** The name of this process among all. */
  process: string;
}): UpstreamHealth {
  const { metrics, clock, log, store, process } = deps;
  const kept: { atMs: number; counted: Counted }[] = [];
  const own = async (): Promise<UpstreamReport[]> => {
    const [counted, standing] = await Promise.all([readEnded(metrics), readStanding(metrics)]);
    const atMs = clock.steady();
    while (kept[0] && atMs - kept[0].atMs > windowMs) kept.shift();
    const ended = endedSince(counted, kept[0]?.counted ?? new Map());
    return [...new Set([...ended.keys(), ...standing.keys()])].map((name) => ({
      ...{ name, requests: 0, errors: {}, answeredWithin: {}, inFlight: 0, busiest: 0 },
      ...ended.get(name),
      ...standing.get(name),
    }));
  };
  const over = new AbortController();
  const run = async () => {
    for (let hasReported = false; !over.signal.aborted; ) {
      kept.push({ atMs: clock.steady(), counted: await readEnded(metrics) });
      try {
        if (!hasReported) await store.forget(clock.now() - windowMs);
        await store.report(process, await own(), clock.now());
        hasReported = true;
      } catch (error) {
        // The next report holds the same figures.
        log.debug({ err: error }, "how upstreams do could not be reported");
      }
      await clock.sleep(reportMs, over.signal).catch(() => {});
    }
  };
  void run();
  return {
    async read() {
      const others = await store.others(process, clock.now() - reportCountsMs);
      const all = [await own(), ...others];
      return { upstreams: sumOf(all.flat()), processes: all.length };
    },
    // A report that is under way ends with its store.
    [Symbol.dispose]: () => over.abort(),
  };
}
