// Puts the metrics of `/metrics` into OpenTelemetry's form. `telemetry.ts` sends them.

import { type HrTime, ValueType } from "@opentelemetry/api";
import { emptyResource } from "@opentelemetry/resources";
import {
  AggregationTemporality,
  type DataPoint,
  DataPointType,
  type Histogram,
  type MetricData,
  type MetricProducer,
} from "@opentelemetry/sdk-metrics";
import type { MetricReading } from "#kit/base/figures.ts";
import type { Metrics } from "#kit/base/metrics.ts";
import { type MetricName, metricNames } from "#kit/telemetry/schema.ts";

/** The metrics of `/metrics` for OTLP, under the conventions' names. Each event is counted once, so that both forms agree. */
export function otlpMetricsOf(metrics: Metrics): MetricProducer {
  const begun = hrTime(Date.now());
  return {
    async collect() {
      const ended = hrTime(Date.now());
      const times = { startTime: begun, endTime: ended };
      const read = await metrics.read();
      const scopeMetrics = [
        { scope: { name: "genmesh" }, metrics: read.flatMap((one) => metricOf(one, times)) },
      ];
      return { resourceMetrics: { resource: emptyResource(), scopeMetrics }, errors: [] };
    },
  };
}

interface Times {
  startTime: HrTime;
  endTime: HrTime;
}

/** A metric in OTLP's form. None where its kind does not exist there. */
function metricOf(reading: MetricReading, times: Times): MetricData[] {
  const known = metricNames[reading.name];
  const common = {
    descriptor: {
      name: known?.name ?? reading.name,
      description: reading.help,
      unit: known?.unit ?? "",
      valueType: ValueType.DOUBLE,
    },
    aggregationTemporality: AggregationTemporality.CUMULATIVE,
  };
  const points = (): DataPoint<number>[] =>
    reading.values.map(({ labels, value }) => ({
      ...times,
      attributes: attributesOf(labels, known),
      value,
    }));
  switch (reading.type) {
    case "counter": {
      const sum = { dataPointType: DataPointType.SUM, isMonotonic: true } as const;
      return [{ ...common, ...sum, dataPoints: points() }];
    }
    case "gauge":
      return [{ ...common, dataPointType: DataPointType.GAUGE, dataPoints: points() }];
    case "histogram": {
      const dataPoints = histograms(reading, known, times);
      return [{ ...common, dataPointType: DataPointType.HISTOGRAM, dataPoints }];
    }
    default:
      return [];
  }
}

/** Prometheus includes lower buckets in the count of each bucket. OTLP does not. */
function histograms(
  { name, values }: MetricReading,
  known: MetricName | undefined,
  times: Times,
): DataPoint<Histogram>[] {
  const series = new Map<string, { labels: Labels; histogram: Histogram; below: number }>();
  for (const { labels, value, metricName } of values) {
    const { le, ...own } = labels;
    const key = JSON.stringify(own, Object.keys(own).sort());
    const found = series.get(key) ?? { labels: own, histogram: emptyHistogram(), below: 0 };
    series.set(key, found);
    const { buckets } = found.histogram;
    if (metricName === `${name}_sum`) found.histogram.sum = value;
    else if (metricName === `${name}_count`) found.histogram.count = value;
    else {
      if (le !== "+Inf") buckets.boundaries.push(Number(le));
      buckets.counts.push(value - found.below);
      found.below = value;
    }
  }
  return [...series.values()].map(({ labels, histogram }) => ({
    ...times,
    attributes: attributesOf(labels, known),
    value: histogram,
  }));
}

type Labels = MetricReading["values"][number]["labels"];

function emptyHistogram() {
  return { buckets: { boundaries: [] as number[], counts: [] as number[] }, sum: 0, count: 0 };
}

function attributesOf(labels: Labels, known: MetricName | undefined): Labels {
  const found: Labels = {};
  for (const [label, value] of Object.entries(labels)) {
    if (value === undefined || value === "") continue;
    const name = known?.attributes[label] ?? label;
    found[name] = name === "http.response.status_code" ? Number(value) : value;
  }
  return found;
}

function hrTime(ms: number): HrTime {
  return [Math.floor(ms / 1_000), Math.round((ms % 1_000) * 1_000_000)];
}
