// Declares the metrics of a process, and exports them for Prometheus. `figures.ts` keeps their numbers.

import { collectDefaultMetrics, type Metric, Registry } from "prom-client";
import { Count, Figures, type MetricReading, Spread } from "./figures.ts";

type Labels = readonly string[];

/** The metrics that a process exports at `/metrics`. Each process (or each world in a test) has its own, so nothing is global. */
export interface Metrics {
  counter<const L extends Labels>(name: string, help: string, labels: L): Figures<L, Count>;
  gauge<const L extends Labels>(name: string, help: string, labels: L): Figures<L, Count>;
  histogram<const L extends Labels>(
    name: string,
    help: string,
    labels: L,
    buckets?: readonly number[],
  ): Figures<L, Spread>;
  /** Prometheus text. */
  text(): Promise<string>;
  readonly contentType: string;
  /** Every metric with its values of this moment. */
  read(): Promise<MetricReading[]>;
  /** One metric with its values of this moment. Undefined where no metric has that name. */
  readOne(name: string): Promise<MetricReading | undefined>;
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
  // Prometheus' client asks a metric for its name and its values alone. Its types tell only of its own classes.
  const registered = <F>(metric: F): F => {
    registry.registerMetric(metric as unknown as Metric);
    return metric;
  };
  const count = () => new Count();
  return {
    counter: (name, help, labels) =>
      registered(new Figures({ name, help, type: "counter", labels }, count)),
    gauge: (name, help, labels) =>
      registered(new Figures({ name, help, type: "gauge", labels }, count)),
    histogram: (name, help, labels, buckets = secondsBuckets) =>
      registered(new Figures({ name, help, type: "histogram", labels }, () => new Spread(buckets))),
    text: () => registry.metrics(),
    contentType: registry.contentType,
    read: async () => (await registry.getMetricsAsJSON()) as unknown as MetricReading[],
    readOne: async (name) =>
      (await registry.getSingleMetric(name)?.get()) as unknown as MetricReading | undefined,
  };
}
