import { describe, expect, test } from "vitest";
import { type Collector, startCollector } from "../../../test/support/otlp.ts";
import { systemClock } from "../clock.ts";
import { createLogger } from "../logger.ts";
import { createMetrics } from "../metrics.ts";
import { createMemoryQueue } from "../queue/memory.ts";
import type { SamplerConfig, TelemetryConfig } from "./config.ts";
import { createInferences, followedStream } from "./inference.ts";
import { tracedQueue } from "./queue.ts";
import { startTelemetry, traceFields } from "./start.ts";

const log = createLogger("silent");
const always = { ratio: 1, isParentBased: true };
const root = { family: "http.server", name: "GET /v1/x", root: true } as const;
const below = { family: "blob", name: "put blob" } as const;

function configFor(collector: Collector, sampler: SamplerConfig = always): TelemetryConfig {
  const common = { headers: {}, timeoutMs: 1_000, intervalMs: 60_000 };
  return {
    traces: { ...common, url: `${collector.url}/v1/traces`, sampler },
    metrics: { ...common, url: `${collector.url}/v1/metrics` },
    resource: { "service.name": "test" },
  };
}

describe("telemetry", () => {
  test("is nothing where nobody listens", async () => {
    await using telemetry = await startTelemetry(undefined, { log });
    expect(telemetry.isOn).toBe(false);
    const span = telemetry.start(root);
    expect(span).toMatchObject({ isRecording: false, headers: undefined });
    expect(telemetry.run(span, () => telemetry.active())).toBeUndefined();
    expect(traceFields(telemetry)).toEqual({});
  });

  test("sends what is left when it ends", async () => {
    await using collector = await startCollector();
    {
      await using telemetry = await startTelemetry(configFor(collector), { log });
      const metrics = createMetrics();
      telemetry.exportMetrics(metrics);
      metrics.counter("genmesh_things_total", "Things.", ["what"]).inc({ what: "a" }, 3);
      telemetry.start(root).end();
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
  });

  test("ends in time, though the collector does not answer", async () => {
    await using collector = await startCollector();
    const { traces, ...rest } = configFor(collector);
    if (!traces) throw new Error("no traces");
    // Nothing listens on the discard port of a documentation address: connecting takes for ever.
    const silent = { ...traces, url: "http://192.0.2.1:9/v1/traces", timeoutMs: 60_000 };
    const telemetry = await startTelemetry({ ...rest, traces: silent }, { log });
    telemetry.start(root).end();
    const beganAt = performance.now();
    await telemetry[Symbol.asyncDispose]();
    expect(performance.now() - beganAt).toBeLessThan(6_000);
  });

  test("keeps to the active span, across waiting, and begins none without one", async () => {
    await using collector = await startCollector();
    {
      await using telemetry = await startTelemetry(configFor(collector), { log });
      expect(telemetry.start(below).isRecording).toBe(false);
      const span = telemetry.start(root);
      await telemetry.run(span, async () => {
        await new Promise((resolve) => setImmediate(resolve));
        expect(telemetry.active()).toBe(span);
        const inner = telemetry.start(below);
        inner.fail("Broken");
        inner.end();
        inner.end();
        inner.set({ "error.type": "too late" });
      });
      expect(telemetry.active()).toBeUndefined();
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
      const config = configFor(collector, { ratio: 0, isParentBased: true });
      await using telemetry = await startTelemetry(config, { log });
      const span = telemetry.start(root);
      expect(span.isRecording).toBe(false);
      expect(span.headers?.traceparent).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-00$/);
      telemetry.run(span, () => expect(telemetry.start(below)).toBe(span));
      // Of a trace that was begun elsewhere its beginning decides.
      const sampled = `00-${"1".repeat(32)}-${"2".repeat(16)}-01`;
      telemetry.start(below, { traceparent: sampled }).end();
      telemetry.join({ traceparent: sampled }, () => telemetry.start(below).end());
      telemetry.start(below, { traceparent: sampled.replace(/1$/, "0") }).end();
      telemetry.start(below, { traceparent: "nonsense" }).end();
    }
    expect(collector.spans.map(({ parentId }) => parentId)).toEqual(Array(2).fill("2".repeat(16)));
  });

  test("goes through the queue, beside what is published", async () => {
    await using collector = await startCollector();
    {
      await using telemetry = await startTelemetry(configFor(collector), { log });
      await using memory = createMemoryQueue({ clock: systemClock });
      const queue = tracedQueue(memory, telemetry, "memory");
      await using receiver = queue.subscribe("jobs-image");
      const span = telemetry.start(root);
      await telemetry.run(span, () => queue.publish("jobs-image", "job_1"));
      span.end();
      const delivery = await receiver.next(new AbortController().signal);
      expect(delivery.headers.traceparent).toContain(traceOf(span.headers?.traceparent));
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

function traceOf(traceparent = ""): string {
  return traceparent.split("-")[1] ?? "none";
}

describe("inferences", () => {
  const call = { operation: "chat", provider: "up", model: "m", isStream: true } as const;

  test("count what was used once, and nothing that cannot be", async () => {
    const metrics = createMetrics();
    const inferences = createInferences({ metrics });
    const usage = { inputTokens: 7, cachedInputTokens: 2, outputTokens: 3 };
    const one = inferences.begin(call);
    one.used({ ...usage, inputTokens: -1 });
    one.used({ ...usage, outputTokens: Number.NaN });
    one.used(usage);
    one.end();
    one.used(usage);
    one.end("late");
    const text = await metrics.text();
    const labels = `operation="chat",provider="up",model="m"`;
    expect(text).toContain(`genmesh_inference_input_tokens_total{${labels}} 7`);
    expect(text).toContain(`genmesh_inference_output_tokens_total{${labels}} 3`);
    expect(text).toContain(`genmesh_inference_duration_seconds_count{${labels},error=""} 1`);
    expect(text).not.toContain("late");
  });

  test("of a stream that its reader leaves end as such", async () => {
    const metrics = createMetrics();
    const inference = createInferences({ metrics }).begin(call);
    let isLeft = false;
    async function* pieces() {
      try {
        yield 1;
        yield 2;
      } finally {
        isLeft = true;
      }
    }
    for await (const piece of followedStream(pieces(), inference, () => {})) {
      if (piece === 1) break;
    }
    expect(isLeft).toBe(true);
    expect(await metrics.text()).toMatch(/genmesh_inference_first_chunk_seconds_count\{[^}]*\} 1/);
    expect(await metrics.text()).toMatch(/genmesh_inference_duration_seconds_count\{[^}]*\} 1/);
  });
});
