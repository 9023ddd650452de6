// Lists every name of this program's spans and metrics, and the rule of what may be in them.

/**
 * Every name that others see of this program's telemetry. These are spans, their attributes, and metrics that have another name over
 * OTLP than at `/metrics`. The names are those of the OpenTelemetry conventions where these have one. General names are of version
 * 1.44. Names for GenAI are from that convention's own repository, since the published packages do not have them yet. Other names begin
 * with `genmesh.`.
 *
 * No attribute may hold a prompt, an answer, a key, or anything that a caller named. That excludes the caller's path, query, address
 * and headers, and URLs in a request. Hosts are those of the catalog or of the configuration.
 */

/** Every attribute of a span or a metric. */
export const attributeNames = [
  "db.collection.name",
  "db.operation.name",
  "db.response.status_code",
  "db.system.name",
  "error.type",
  "gen_ai.operation.name",
  "gen_ai.output.type",
  "gen_ai.provider.name",
  "gen_ai.request.max_tokens",
  "gen_ai.request.model",
  "gen_ai.request.stream",
  "gen_ai.response.finish_reasons",
  "gen_ai.response.id",
  "gen_ai.response.model",
  "gen_ai.response.time_to_first_chunk",
  "gen_ai.usage.cache_read.input_tokens",
  "gen_ai.usage.cache_write.input_tokens",
  "gen_ai.usage.input_tokens",
  "gen_ai.usage.output_tokens",
  "gen_ai.usage.reasoning.output_tokens",
  "genmesh.account.id",
  "genmesh.blob.store",
  "genmesh.job.attempt",
  "genmesh.job.id",
  "genmesh.job.kind",
  "genmesh.request.id",
  "http.request.method",
  "http.response.status_code",
  "http.route",
  "messaging.destination.name",
  "messaging.message.id",
  "messaging.operation.name",
  "messaging.operation.type",
  "messaging.system",
  "rpc.method",
  "rpc.response.status_code",
  "rpc.system.name",
  "server.address",
  "server.port",
  "url.scheme",
] as const;

/** One of {@link attributeNames}. */
export type AttributeName = (typeof attributeNames)[number];

/** The conventions' word for the side of a span. */
export type SpanKind = "internal" | "server" | "client" | "producer" | "consumer";

/** A kind of spans. */
export interface SpanRule {
  kind: SpanKind;
  /** A pattern for every name that such a span may have. */
  name: RegExp;
  attributes: readonly AttributeName[];
}

const inference = [
  "gen_ai.operation.name",
  "gen_ai.output.type",
  "gen_ai.provider.name",
  "gen_ai.request.model",
] as const;
const rpc = ["rpc.system.name", "rpc.method", "rpc.response.status_code", "error.type"] as const;
const messaging = [
  "messaging.system",
  "messaging.destination.name",
  "messaging.operation.name",
  "messaging.operation.type",
  "messaging.message.id",
  "error.type",
] as const;
const rpcName = /^[a-z][\w.]*\.[A-Z]\w*\/[A-Z]\w*$/;

/** Every kind of spans. */
export const spanRules = {
  /** A public request, to the last byte of its answer. */
  "http.server": {
    kind: "server",
    name: /^[A-Z_]+( \/[\w\-./:*]*)?$/,
    attributes: [
      "http.request.method",
      "http.route",
      "http.response.status_code",
      "url.scheme",
      "error.type",
      "genmesh.request.id",
      "genmesh.account.id",
      "genmesh.job.id",
    ],
  },
  "rpc.client": { kind: "client", name: rpcName, attributes: rpc },
  "rpc.server": { kind: "server", name: rpcName, attributes: rpc },
  /** The publishing of a wake-up into the queue. */
  "messaging.send": { kind: "producer", name: /^send jobs-[a-z]+$/, attributes: messaging },
  /** A wake-up that a worker has taken. */
  "messaging.process": { kind: "consumer", name: /^process jobs-[a-z]+$/, attributes: messaging },
  /** One attempt at a job, from the claim to the store's last write. */
  "job.run": {
    kind: "internal",
    name: /^run (image|video|music) job$/,
    attributes: ["genmesh.job.id", "genmesh.job.kind", "genmesh.job.attempt", "error.type"],
  },
  /** One generation at one upstream, a stream to its end. */
  "gen_ai.client.inference": {
    kind: "client",
    name: /^(chat|compact|generate_content) [\w.:/-]+$/,
    attributes: [
      ...inference,
      "gen_ai.request.max_tokens",
      "gen_ai.request.stream",
      "gen_ai.response.finish_reasons",
      "gen_ai.response.id",
      "gen_ai.response.model",
      "gen_ai.response.time_to_first_chunk",
      "gen_ai.usage.input_tokens",
      "gen_ai.usage.cache_read.input_tokens",
      "gen_ai.usage.cache_write.input_tokens",
      "gen_ai.usage.output_tokens",
      "gen_ai.usage.reasoning.output_tokens",
      "genmesh.request.id",
      "error.type",
    ],
  },
  /** A request to an upstream, or to the store of blobs. */
  "http.client": {
    kind: "client",
    name: /^(GET|POST|PUT|HEAD|DELETE)$/,
    attributes: [
      "http.request.method",
      "http.response.status_code",
      "server.address",
      "server.port",
      "error.type",
    ],
  },
  /** A command of MongoDB, or a transaction of SQLite. */
  "db.client": {
    kind: "client",
    name: /^[A-Za-z]+( [\w.-]+)?$/,
    attributes: [
      "db.system.name",
      "db.operation.name",
      "db.collection.name",
      "db.response.status_code",
      "error.type",
    ],
  },
  /** An operation of the store of blobs, with its repeats. */
  blob: {
    kind: "internal",
    name: /^(put|open|stat|delete) blob$/,
    attributes: ["genmesh.blob.store", "error.type"],
  },
} as const satisfies Record<string, SpanRule>;

/** One of {@link spanRules}. */
export type SpanFamily = keyof typeof spanRules;

/** A metric of `/metrics`, as OTLP names it. */
export interface MetricName {
  name: string;
  /** UCUM. */
  unit: string;
  /** Names of its labels over OTLP. Labels that are not listed keep their names. */
  attributes: Readonly<Record<string, AttributeName>>;
}

const inferenceLabels = {
  operation: "gen_ai.operation.name",
  provider: "gen_ai.provider.name",
  model: "gen_ai.request.model",
} as const;

/** Metrics for which the conventions have names. All others have the same name everywhere. */
export const metricNames: Readonly<Record<string, MetricName>> = {
  genmesh_http_request_duration_seconds: {
    name: "http.server.request.duration",
    unit: "s",
    attributes: {
      method: "http.request.method",
      route: "http.route",
      status: "http.response.status_code",
    },
  },
  genmesh_http_requests_active: {
    name: "http.server.active_requests",
    unit: "{request}",
    attributes: {},
  },
  genmesh_rpc_server_duration_seconds: {
    name: "rpc.server.call.duration",
    unit: "s",
    attributes: {
      system: "rpc.system.name",
      method: "rpc.method",
      code: "rpc.response.status_code",
    },
  },
  genmesh_inference_duration_seconds: {
    name: "gen_ai.client.inference.duration",
    unit: "s",
    attributes: { ...inferenceLabels, error: "error.type" },
  },
  genmesh_inference_first_chunk_seconds: {
    name: "gen_ai.client.inference.time_to_first_chunk",
    unit: "s",
    attributes: inferenceLabels,
  },
  genmesh_inference_output_chunk_seconds: {
    name: "gen_ai.client.inference.time_per_output_chunk",
    unit: "s",
    attributes: inferenceLabels,
  },
  genmesh_inference_input_tokens_total: {
    name: "gen_ai.client.inference.usage.input_tokens",
    unit: "{token}",
    attributes: inferenceLabels,
  },
  genmesh_inference_cached_input_tokens_total: {
    name: "gen_ai.client.inference.usage.cache_read.input_tokens",
    unit: "{token}",
    attributes: inferenceLabels,
  },
  genmesh_inference_cache_write_input_tokens_total: {
    name: "gen_ai.client.inference.usage.cache_write.input_tokens",
    unit: "{token}",
    attributes: inferenceLabels,
  },
  genmesh_inference_reasoning_output_tokens_total: {
    name: "gen_ai.client.inference.usage.reasoning.output_tokens",
    unit: "{token}",
    attributes: inferenceLabels,
  },
  genmesh_inference_output_tokens_total: {
    name: "gen_ai.client.inference.usage.output_tokens",
    unit: "{token}",
    attributes: inferenceLabels,
  },
};
