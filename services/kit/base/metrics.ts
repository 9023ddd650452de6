import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";

/** A metric with its values of this moment. */
export interface MetricReading {
  name: string;
  help: string;
  type: "counter" | "gauge" | "histogram" | "summary";
  /** A histogram has the values of its series (`_bucket` with `le`, `_sum`, `_count`), which `metricName` tells apart. */
  values: {
    labels: Partial<Record<string, string | number>>;
    value: number;
    metricName?: string;
  }[];
}

/** The metrics that a process exports at `/metrics`. Each process (or each world in a test) has its own, so nothing is global. */
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
  /** Every metric with its values of this moment. */
  read(): Promise<MetricReading[]>;
  /** One metric with its values of this moment. Undefined where no metric has that name. */
  readOne(name: string): Promise<MetricReading | undefined>;
}

/**
 * A metric's child for label values in their declared order. It is looked up once, because each look-up by names costs as much as
 * the rest of the counting. For labels with few values, because children are kept.
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

/** Seconds, from a cached answer to a long stream. */
const secondsBuckets = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

/**
 * Milliseconds between two measurements of the event loop's lag. The reported lag includes them. The usual 10 took a quarter of
 * the CPU time of an idle process. Alerts to an operator begin at 250.
 */
const loopLagResolutionMs = 50;

/** Makes an empty registry. `processMetrics` adds Node's own metrics (memory, event loop, GC). */
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
