import { propagation, ROOT_CONTEXT, type Span, trace } from "@opentelemetry/api";
import { describe, expect, test } from "vitest";
import { createLogger } from "#kit/base/logger.ts";
import { createMetrics } from "#kit/base/metrics.ts";
import { createMemoryQueue } from "#kit/queue/memory.ts";
import { tracedQueue } from "#kit/telemetry/queue.ts";
import {
  beginTrace,
  failSpan,
  isTraced,
  joinTrace,
  runIn,
  startSpan,
  traced,
  traceFields,
  traceHeaders,
} from "#kit/telemetry/spans.ts";
import { systemClock } from "#kit/time/clock.ts";
import { type Collector, startCollector } from "../../test/support/otlp.ts";
import { promptly } from "../../test/support/promptly.ts";
import type { SamplerConfig, TelemetryConfig } from "./config-telemetry.ts";
import { startTelemetry } from "./telemetry.ts";
import { forwardLine } from "./telemetry-logs.ts";

const log = createLogger("silent");
const always = { ratio: 1, isParentBased: true };
const below = { family: "blob", name: "put blob" } as const;

/** Begins a trace as the edge does. */
function request(): Span {
  return beginTrace({ family: "http.server", name: "GET /v1/x" }, ROOT_CONTEXT);
}

function start(config: TelemetryConfig, metrics = createMetrics()): AsyncDisposable {
  return startTelemetry(config, { log, metrics });
}

function configFor(collector: Collector, sampler: SamplerConfig = always): TelemetryConfig {
  const common = { headers: {}, timeoutMs: 1_000, intervalMs: 60_000 };
  return {
    traces: { ...common, url: `${collector.url}/v1/traces`, sampler, accounts: "id" },
    metrics: { ...common, url: `${collector.url}/v1/metrics` },
    logs: { ...common, url: `${collector.url}/v1/logs` },
    resource: { "service.name": "test" },
  };
}

describe("telemetry", () => {
  test("sends the lines of the log with their traces, and none once it has ended", async () => {
    await using collector = await startCollector();
    const lines: string[] = [];
    const write = (line: string) => void lines.push(line);
    const told = createLogger("info", { write }, traceFields, forwardLine);
    told.info("too early");
    const span = request();
    {
      await using _telemetry = start(configFor(collector));
      const traced = request();
      runIn(traced, () => told.warn({ jobId: "job_1" }, "a word"));
    }
    told.info("too late");
    const sent = Buffer.concat(collector.logs).toString("latin1");
    expect(sent).toContain("a word");
    expect(sent).toContain("job_1");
    expect(sent).not.toMatch(/too (?:early|late)/);
    expect(lines).toHaveLength(3);
    expect(JSON.parse(lines[1] ?? "").trace_id).toMatch(/^[0-9a-f]{32}$/);
    expect(span.isRecording()).toBe(false);
  });

  test("is nothing where no collector is configured", async () => {
    const span = request();
    expect(span.isRecording()).toBe(false);
    await runIn(span, async () => {
      expect(isTraced()).toBe(false);
      expect(traceHeaders()).toEqual({});
      expect(traceFields()).toEqual({});
      expect(await traced(below, async (inner) => inner.isRecording())).toBe(false);
    });
  });

  test("sends what is left when it ends, and leaves the process as it was", async () => {
    await using collector = await startCollector();
    {
      const metrics = createMetrics();
      await using _telemetry = start(configFor(collector), metrics);
      metrics.counter("genmesh_things_total", "Things.", ["what"]).of("a").value += 3;
      request().end();
      expect(collector.spans).toEqual([]);
    }
    expect(collector.spans.map(({ name }) => name)).toEqual(["GET /v1/x"]);
    expect(collector.metrics()).toEqual([
      expect.objectContaining({
        name: "genmesh_things_total",
        attributes: { what: "a" },
        value: 3,
      }),
    ]);
    expect(request().isRecording()).toBe(false);
  });

  test("is there once in a process", async () => {
    await using collector = await startCollector();
    await using _telemetry = start(configFor(collector));
    expect(() => start(configFor(collector))).toThrow("has its telemetry already");
  });

  test("ends in time, though the collector does not answer", async () => {
    await using collector = await startCollector();
    const { traces, ...rest } = configFor(collector);
    if (!traces) throw new Error("no traces");
    // No program listens on the discard port of a documentation address, so connecting takes for ever.
    const silent = { ...traces, url: "http://192.0.2.1:9/v1/traces", timeoutMs: 60_000 };
    const telemetry = start({ ...rest, traces: silent });
    request().end();
    await promptly(6_000, async () => telemetry[Symbol.asyncDispose]());
  });

  test("keeps to the active span, across waiting, and begins none without one", async () => {
    await using collector = await startCollector();
    {
      await using _telemetry = start(configFor(collector));
      expect(startSpan(below).isRecording()).toBe(false);
      const span = request();
      await runIn(span, async () => {
        await new Promise((resolve) => setImmediate(resolve));
        expect(trace.getActiveSpan()).toBe(span);
        const inner = startSpan(below);
        failSpan(inner, "Broken");
        inner.end();
        inner.end();
        failSpan(inner, "too late");
      });
      expect(trace.getActiveSpan()).toBeUndefined();
      span.end();
    }
    const [inner, outer] = collector.spans;
    expect(inner).toMatchObject({ parentId: outer?.spanId, failed: true });
    expect(inner?.attributes).toEqual({ "error.type": "Broken" });
    expect(collector.spans).toHaveLength(2);
  });

  test("records nothing below what is not sampled, and says so to the next", async () => {
    await using collector = await startCollector();
    {
      await using _telemetry = start(configFor(collector, { ratio: 0, isParentBased: true }));
      const span = request();
      expect(span.isRecording()).toBe(false);
      runIn(span, () => {
        expect(traceHeaders().traceparent).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-00$/);
        expect(isTraced()).toBe(false);
        expect(startSpan(below)).toBe(span);
      });
      // The beginning of a trace decides, even where it was elsewhere.
      const sampled = `00-${"1".repeat(32)}-${"2".repeat(16)}-01`;
      const startIn = (traceparent: string) =>
        startSpan(below, propagation.extract(ROOT_CONTEXT, { traceparent })).end();
      startIn(sampled);
      joinTrace({ traceparent: sampled }, () => startSpan(below).end());
      startIn(sampled.replace(/1$/, "0"));
      startIn("nonsense");
    }
    expect(collector.spans.map(({ parentId }) => parentId)).toEqual(Array(2).fill("2".repeat(16)));
  });

  test("goes through the queue, beside what is published", async () => {
    await using collector = await startCollector();
    {
      await using _telemetry = start(configFor(collector));
      await using memory = createMemoryQueue({ clock: systemClock });
      const queue = tracedQueue(memory, "memory");
      await using receiver = queue.subscribe("jobs-image");
      const span = request();
      await runIn(span, () => queue.publish("jobs-image", "job_1"));
      span.end();
      const delivery = await receiver.next(new AbortController().signal);
      expect(delivery.headers.traceparent).toContain(span.spanContext().traceId);
      await delivery.ack();
      await queue.publish("jobs-image", "job_2");
      const plain = await receiver.next(new AbortController().signal);
      expect(plain.headers).toEqual({});
      await plain.ack();
    }
    const byName = new Map(collector.spans.map((span) => [span.name, span]));
    expect(byName.get("process jobs-image")?.parentId).toBe(byName.get("send jobs-image")?.spanId);
    expect(collector.spans).toHaveLength(3);
  });
});
