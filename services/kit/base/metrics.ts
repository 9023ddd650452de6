import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";

/** A metric as it stands. */
export interface MetricReading {
  name: string;
  help: string;
  type: "counter" | "gauge" | "histogram" | "summary";
  /** A histogram's are those of its series (`_bucket` with `le`, `_sum`, `_count`), which `metricName` tells apart. */
  values: {
    labels: Partial<Record<string, string | number>>;
    value: number;
    metricName?: string;
  }[];
}

/** What a process exports at `/metrics`. One a process (or a world in a test), so nothing is global. */
export interface Metrics {
  counter<L extends string>(name: string, help: string, labels: readonly L[]): Counter<L>;
  gauge<L extends string>(name: string, help: string, labels: readonly L[]): Gauge<L>;
  histogram<L extends string>(
    name: string,
    help: string,
    labels: readonly L[],
    buckets?: number[],
  ): Histogram<L>;
  /** Prometheus text. */
  text(): Promise<string>;
  readonly contentType: string;
  /** Every metric as it stands. */
  read(): Promise<MetricReading[]>;
  /** One metric as it stands; undefined where there is none of that name. */
  readOne(name: string): Promise<MetricReading | undefined>;
}

/**
 * A metric's child for label values in their declared order, looked up once: each look-up by names costs as much as the
 * rest of what is counted. For labels of few values: children are kept.
 */
export function childrenOf<C>(metric: {
  labels(...values: string[]): C;
}): (...values: string[]) => C {
  const children = new Map<string, C>();
  return (...values) => {
    const name = values.length === 1 ? (values[0] ?? "") : values.join(" ");
    const known = children.get(name);
    if (known) return known;
    const child = metric.labels(...values);
    children.set(name, child);
    return child;
  };
}

/** Seconds: from a cached answer to a long stream. */
const secondsBuckets = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

/**
 * Milliseconds between two looks at the event loop's lag, which the lag that is told includes. The usual 10 were a quarter
 * of the CPU time of a process with nothing to do; what an operator is woken for begins at 250.
 */
const loopLagResolutionMs = 50;

/** Makes an empty registry; `processMetrics` adds Node's own (memory, event loop, GC). */
export function createMetrics({ processMetrics = false } = {}): Metrics {
  const registry = new Registry();
  if (processMetrics) {
    collectDefaultMetrics({
      register: registry,
      eventLoopMonitoringPrecision: loopLagResolutionMs,
    });
  }
  const registers = [registry];
  return {
    counter: (name, help, labelNames) => new Counter({ name, help, labelNames, registers }),
    gauge: (name, help, labelNames) => new Gauge({ name, help, labelNames, registers }),
    histogram: (name, help, labelNames, buckets = secondsBuckets) =>
      new Histogram({ name, help, labelNames, buckets, registers }),
    text: () => registry.metrics(),
    contentType: registry.contentType,
    read: async () => (await registry.getMetricsAsJSON()) as unknown as MetricReading[],
    readOne: async (name) =>
      (await registry.getSingleMetric(name)?.get()) as unknown as MetricReading | undefined,
  };
}
