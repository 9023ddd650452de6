// Reads OpenTelemetry's own variables of the environment: what is sent, where, and how often. `telemetry.ts` sends.

import { badVariable, type EnvReader } from "./env.ts";
import type { Role } from "./roles.ts";

/** The choice of new traces that are recorded. Where `isParentBased`, a trace from elsewhere is recorded where its beginning is. */
export interface SamplerConfig {
  /** Share of all new traces, 0 to 1. */
  ratio: number;
  isParentBased: boolean;
}

/** The target of one kind of data. */
export interface ExportConfig {
  /** OTLP over HTTP, with its path. */
  url: string;
  /** May hold secrets. */
  headers: Readonly<Record<string, string>>;
  /** Milliseconds for one export, its repeats included. */
  timeoutMs: number;
  /** Milliseconds between two exports. */
  intervalMs: number;
}

/** The traces that are sent. */
export interface TraceConfig extends ExportConfig {
  sampler: SamplerConfig;
  /** The form of accounts: their ids, or a hash of each. */
  accounts: "id" | "hash";
}

/** The data that is sent, and its targets. Undefined: that kind is not sent. */
export interface TelemetryConfig {
  traces: TraceConfig | undefined;
  metrics: ExportConfig | undefined;
  /** The lines of the log. They go to standard error as well. */
  logs: ExportConfig | undefined;
  /** `service.name` and the other attributes that tell this process from others. */
  resource: Readonly<Record<string, string>>;
}

/** Kinds of data that can be sent, by their names in variables. */
type Signal = "traces" | "metrics" | "logs";

const samplers = [
  "always_on",
  "always_off",
  "traceidratio",
  "parentbased_always_on",
  "parentbased_always_off",
  "parentbased_traceidratio",
] as const;

/** Milliseconds: OpenTelemetry's own defaults. */
const defaults = { timeoutMs: 10_000, traces: 5_000, metrics: 60_000, logs: 1_000 } as const;
/** Variables for the milliseconds between two exports. */
const intervals = {
  traces: "OTEL_BSP_SCHEDULE_DELAY",
  metrics: "OTEL_METRIC_EXPORT_INTERVAL",
  logs: "OTEL_BLRP_SCHEDULE_DELAY",
} as const;
/** Milliseconds: an hour. Figures that are sent more rarely come too late, and one export must end before the next. */
const maxIntervalMs = 3_600_000;

/**
 * Reads the standard variables of OpenTelemetry. Undefined where none of them names a collector. The exporters themselves read
 * certificates and compression (`OTEL_EXPORTER_OTLP_CERTIFICATE` and the like).
 */
export function telemetryConfig(read: EnvReader, role: Role): TelemetryConfig | undefined {
  if (read.flag("OTEL_SDK_DISABLED")) return undefined;
  const traces = exportConfig(read, "traces");
  const metrics = exportConfig(read, "metrics");
  const logs = exportConfig(read, "logs");
  if (!traces && !metrics && !logs) return undefined;
  return {
    traces: traces && {
      ...traces,
      sampler: samplerConfig(read),
      accounts: read.choice("GENMESH_TRACE_ACCOUNTS", ["id", "hash"], "id"),
    },
    metrics,
    logs,
    resource: {
      ...pairs(read, "OTEL_RESOURCE_ATTRIBUTES"),
      "service.name": read.text("OTEL_SERVICE_NAME") ?? serviceName(read, role),
    },
  };
}

function serviceName(read: EnvReader, role: Role): string {
  const named = pairs(read, "OTEL_RESOURCE_ATTRIBUTES")["service.name"];
  return named ?? (role === "all" ? "genmesh" : `genmesh-${role}`);
}

function exportConfig(read: EnvReader, signal: Signal): ExportConfig | undefined {
  const upper = signal.toUpperCase();
  if (read.choice(`OTEL_${upper}_EXPORTER`, ["otlp", "none"], "otlp") === "none") return undefined;
  const url = endpoint(read, signal);
  if (url === undefined) return undefined;
  const ownOr = (end: string) => {
    const own = `OTEL_EXPORTER_OTLP_${upper}_${end}`;
    return read.text(own) === undefined ? `OTEL_EXPORTER_OTLP_${end}` : own;
  };
  read.choice(ownOr("PROTOCOL"), ["http/protobuf"], "http/protobuf");
  return {
    url,
    headers: pairs(read, ownOr("HEADERS")),
    timeoutMs: read.integer(ownOr("TIMEOUT"), defaults.timeoutMs, 1, maxIntervalMs),
    intervalMs: read.integer(intervals[signal], defaults[signal], 1, maxIntervalMs),
  };
}

/** The endpoint of one kind is used unchanged. The kind's path is added to the common one. */
function endpoint(read: EnvReader, signal: Signal): string | undefined {
  const own = `OTEL_EXPORTER_OTLP_${signal.toUpperCase()}_ENDPOINT`;
  if (read.text(own) !== undefined) return httpUrl(read, own)?.href;
  const common = httpUrl(read, "OTEL_EXPORTER_OTLP_ENDPOINT");
  if (!common) return undefined;
  common.pathname = `${common.pathname.replace(/\/+$/, "")}/v1/${signal}`;
  return common.href;
}

// The value may hold a password, so a fault does not repeat it.
function httpUrl(read: EnvReader, name: string): URL | undefined {
  const text = read.text(name);
  if (text === undefined) return undefined;
  const url = URL.parse(text);
  if (!url || !/^https?:$/.test(url.protocol)) {
    badVariable(name, "must be the URL of a collector, http://HOST:4318 or https:");
  }
  return url;
}

function samplerConfig(read: EnvReader): SamplerConfig {
  const sampler = read.choice("OTEL_TRACES_SAMPLER", samplers, "parentbased_always_on");
  const ratio = sampler.endsWith("always_off")
    ? 0
    : sampler.endsWith("always_on")
      ? 1
      : samplerRatio(read);
  return { ratio, isParentBased: sampler.startsWith("parentbased") };
}

function samplerRatio(read: EnvReader): number {
  const name = "OTEL_TRACES_SAMPLER_ARG";
  const text = read.text(name) ?? "1";
  const ratio = Number(text);
  if (ratio >= 0 && ratio <= 1) return ratio;
  return badVariable(name, "must be a number from 0 to 1", text);
}

/** `name=value,…`, percent-encoded. A part that is no pair is left out, as the specification says. */
function pairs(read: EnvReader, name: string): Record<string, string> {
  const found: Record<string, string> = {};
  for (const pair of read.list(name)) {
    const at = pair.indexOf("=");
    if (at > 0) found[pair.slice(0, at).trim()] = decoded(pair.slice(at + 1).trim());
  }
  return found;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
