import { describe, expect, test } from "vitest";
import { telemetryConfig } from "./config-telemetry.ts";
import { type Env, envReader } from "./env.ts";

const read = (env: Env, role: "all" | "text" = "text") => telemetryConfig(envReader(env), role);
const endpoint = "http://collector:4318";
const on = { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint };

describe("telemetry's variables", () => {
  test("unset, or set to off, ask for nothing", () => {
    expect(read({})).toBeUndefined();
    expect(read({ OTEL_SERVICE_NAME: "x", OTEL_TRACES_SAMPLER: "always_on" })).toBeUndefined();
    expect(read({ ...on, OTEL_SDK_DISABLED: "true" })).toBeUndefined();
    const none = {
      OTEL_TRACES_EXPORTER: "none",
      OTEL_METRICS_EXPORTER: "none",
      OTEL_LOGS_EXPORTER: "none",
    };
    expect(read({ ...on, ...none })).toBeUndefined();
  });

  test("with an endpoint alone ask for everything", () => {
    const common = { headers: {}, timeoutMs: 10_000 };
    expect(read(on)).toEqual({
      traces: {
        ...common,
        url: `${endpoint}/v1/traces`,
        intervalMs: 5_000,
        sampler: { ratio: 1, isParentBased: true },
        accounts: "id",
      },
      metrics: { ...common, url: `${endpoint}/v1/metrics`, intervalMs: 60_000 },
      logs: { ...common, url: `${endpoint}/v1/logs`, intervalMs: 1_000 },
      resource: { "service.name": "genmesh-text" },
    });
    expect(read(on, "all")?.resource).toEqual({ "service.name": "genmesh" });
  });

  test("of one kind come before those of all", () => {
    const config = read({
      OTEL_EXPORTER_OTLP_ENDPOINT: `${endpoint}/base/`,
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "https://traces.example/own",
      OTEL_EXPORTER_OTLP_HEADERS: "a=1, b=two%20words",
      OTEL_EXPORTER_OTLP_TRACES_HEADERS: "c=3",
      OTEL_EXPORTER_OTLP_METRICS_TIMEOUT: "250",
      OTEL_RESOURCE_ATTRIBUTES: "service.name=other,deployment.environment.name=p%2Fq,nonsense",
    });
    expect(config?.traces).toMatchObject({
      url: "https://traces.example/own",
      headers: { c: "3" },
      timeoutMs: 10_000,
    });
    expect(config?.metrics).toMatchObject({
      url: `${endpoint}/base/v1/metrics`,
      headers: { a: "1", b: "two words" },
      timeoutMs: 250,
    });
    expect(config?.resource).toEqual({
      "service.name": "other",
      "deployment.environment.name": "p/q",
    });
    const named = { ...on, OTEL_SERVICE_NAME: "mine", OTEL_RESOURCE_ATTRIBUTES: "service.name=o" };
    expect(read(named)?.resource).toEqual({ "service.name": "mine" });
  });

  test.each([
    ["always_on", { ratio: 1, isParentBased: false }],
    ["always_off", { ratio: 0, isParentBased: false }],
    ["traceidratio", { ratio: 0.1, isParentBased: false }],
    ["parentbased_always_off", { ratio: 0, isParentBased: true }],
    ["parentbased_traceidratio", { ratio: 0.1, isParentBased: true }],
  ])("choose the sampler %s", (name, sampler) => {
    const env = { ...on, OTEL_TRACES_SAMPLER: name, OTEL_TRACES_SAMPLER_ARG: "0.1" };
    expect(read(env)?.traces?.sampler).toEqual(sampler);
  });

  test.each([
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: "collector:4317" }, "OTEL_EXPORTER_OTLP_ENDPOINT"],
    [{ ...on, OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" }, "OTEL_EXPORTER_OTLP_PROTOCOL"],
    [{ ...on, OTEL_TRACES_EXPORTER: "zipkin" }, "OTEL_TRACES_EXPORTER"],
    [{ ...on, OTEL_TRACES_SAMPLER: "some" }, "OTEL_TRACES_SAMPLER"],
    [
      { ...on, OTEL_TRACES_SAMPLER: "traceidratio", OTEL_TRACES_SAMPLER_ARG: "2" },
      "OTEL_TRACES_SAMPLER_ARG",
    ],
    [{ ...on, OTEL_METRIC_EXPORT_INTERVAL: "soon" }, "OTEL_METRIC_EXPORT_INTERVAL"],
  ])("that make no sense are refused by their name", (env, name) => {
    expect(() => read(env)).toThrow(new RegExp(`^${name} `));
  });
});
