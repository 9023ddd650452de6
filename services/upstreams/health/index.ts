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
 * How upstreams did lately, at every process that uses them. Each process reads its part off the metrics that /metrics shows
 * and the alerts are made of, and reports it where the others find it: workers have no port that a peer could ask.
 */
export interface UpstreamHealth extends Disposable {
  /** Of the last five minutes. `processes`: how many told of them, this one included. */
  read(): Promise<{ upstreams: UpstreamFigures[]; processes: number }>;
}

/** Milliseconds that are looked back. */
const windowMs = 5 * 60_000;
/** Milliseconds between two reports of a process: as often as the console asks. */
export const reportMs = 10_000;
/** Milliseconds for which a report counts: a process that has missed three is gone. */
export const reportCountsMs = 3 * reportMs + 5_000;

/** Makes it, and begins to report; ends with its disposal. */
export function createUpstreamHealth(deps: {
  metrics: Metrics;
  clock: Clock;
  log: Logger;
  store: HealthStore;
  /** Names this process among all. */
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
        // The next report says as much.
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
