// Keeps the last days of each upstream by the hour, for operators in the console. `index.ts` has the state of now.

import type { Logger } from "#kit/base/logger.ts";
import type { Metrics } from "#kit/base/metrics.ts";
import type { Clock } from "#kit/time/clock.ts";
import type { HistoryStore } from "./history-store.ts";
import {
  type HourRow,
  historyOf,
  hourSeconds,
  type RowCounts,
  readRows,
  rowsSince,
  type UpstreamHistory,
} from "./hours.ts";

/**
 * The last days of upstreams, by the hour, over all processes that use them. Each process adds what its metrics have counted to rows
 * that all share. So no request waits for a write. A process that is killed loses its last minute. Disposing writes what is left.
 */
export interface UpstreamHistoryKeeper extends AsyncDisposable {
  /** The figures of the last `hours` hours, the present one included. With what this process has counted up to now. */
  read(hours: number): Promise<UpstreamHistory[]>;
}

/** Milliseconds between two writes of a process, and so for which the answers of another process lack its counts. */
export const writeMs = 60_000;
/** Hours that are kept: a week and a day, so that a week is whole. */
export const keptHours = 8 * 24;
/** Milliseconds that the end of a process waits for its last write. */
const lastWriteMs = 2_000;

/** Makes it, and begins to write. */
export function createUpstreamHistory(deps: {
  metrics: Metrics;
  clock: Clock;
  log: Logger;
  store: HistoryStore;
}): UpstreamHistoryKeeper {
  const { clock, log, store } = deps;
  const over = new AbortController();
  const writer = createWriter(deps);
  const run = async () => {
    while (!over.signal.aborted) {
      try {
        await writer.write();
      } catch (error) {
        // The next write has the same counts.
        log.debug({ err: error }, "the hours of upstreams could not be written");
      }
      await clock.sleep(writeMs, over.signal).catch(() => {});
    }
  };
  const running = run();
  return {
    async read(hours) {
      await writer.write();
      const first = hourOf(clock) - (hours - 1) * hourSeconds;
      const rows: HourRow[] = [];
      for await (const some of store.since(first)) rows.push(...some);
      const starts = Array.from({ length: hours }, (_, at) => first + at * hourSeconds);
      return historyOf(rows, starts);
    },
    async [Symbol.asyncDispose]() {
      over.abort();
      const last = running.then(() => writer.write()).catch(() => {});
      const waited = new AbortController();
      await Promise.race([last, clock.sleep(lastWriteMs, waited.signal).catch(() => {})]);
      waited.abort();
    },
  };
}

/** Writes what was counted since the last write, one write after the other. */
function createWriter({ metrics, clock, store }: Parameters<typeof createUpstreamHistory>[0]) {
  /** The counts of this process that the store has. */
  const written = new Map<string, RowCounts>();
  let isOpen = false;
  let forgotten = 0;
  /** Counts belong to the hour in which their minute began. */
  let hour = hourOf(clock);
  let last = Promise.resolve();
  const writeNow = async () => {
    if (!isOpen) await store.open();
    isOpen = true;
    const counted = await readRows(metrics);
    for (const [name, row] of rowsSince(counted, written)) {
      await store.add({ ...row, hour });
      written.set(name, counted.get(name) ?? row);
    }
    hour = hourOf(clock);
    if (forgotten === hour) return;
    await store.forget(hour - keptHours * hourSeconds);
    forgotten = hour;
  };
  return {
    write(): Promise<void> {
      const next = last.then(writeNow);
      last = next.catch(() => {});
      return next;
    },
  };
}

function hourOf(clock: Clock): number {
  return Math.floor(clock.now() / 1_000 / hourSeconds) * hourSeconds;
}
