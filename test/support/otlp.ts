import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { until } from "./until.ts";

/** A span that a collector received. */
export interface SeenSpan {
  /** `service.name` of the sending process. */
  service: string;
  traceId: string;
  spanId: string;
  /** Empty where the span begins the trace. */
  parentId: string;
  name: string;
  /** 1 internal, 2 server, 3 client, 4 producer, 5 consumer. */
  kind: number;
  attributes: Record<string, unknown>;
  failed: boolean;
  /** Nanoseconds since the epoch. */
  startedAt: bigint;
  endedAt: bigint;
}

/** A series of a metric with the value that a collector received last. */
export interface SeenSeries {
  name: string;
  unit: string;
  attributes: Record<string, unknown>;
  /** The count, for a histogram. */
  value: number;
  /** For a histogram. */
  bucketCounts: number[];
  bounds: number[];
}

/** A collector of OTLP over HTTP. */
export interface Collector extends AsyncDisposable {
  /** For OTEL_EXPORTER_OTLP_ENDPOINT. */
  url: string;
  spans: SeenSpan[];
  /** The newest value of each series. */
  metrics(): SeenSeries[];
  /** The bodies of all requests with traces and metrics, unchanged. */
  bodies: Buffer[];
  /** The bodies of all requests with lines of the log, unchanged. */
  logs: Buffer[];
  /** Headers of every request. */
  headers: Record<string, unknown>[];
  /** The status of all answers. 200 at first. */
  status: number;
}

export async function startCollector(): Promise<Collector> {
  const series = new Map<string, SeenSeries>();
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks);
    collector.headers.push(request.headers);
    if (collector.status === 200) {
      (request.url === "/v1/logs" ? collector.logs : collector.bodies).push(body);
      if (request.url === "/v1/traces") collector.spans.push(...spansIn(body));
      for (const one of request.url === "/v1/metrics" ? metricsIn(body) : []) {
        series.set(JSON.stringify([one.name, one.attributes]), one);
      }
    }
    response.writeHead(collector.status, { "content-type": "application/x-protobuf" }).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const collector: Collector = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans: [],
    metrics: () => [...series.values()],
    bodies: [],
    logs: [],
    headers: [],
    status: 200,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return collector;
}

/** The trace of the next request to a route, once `last` and the span above all have arrived. */
export async function traceOf(route: string, last: (span: SeenSpan) => boolean, from: Collector) {
  const root = await until(`a request to ${route}`, () =>
    from.spans.find((span) => span.attributes["http.route"] === route),
  );
  const spans = () => from.spans.filter(({ traceId }) => traceId === root.traceId);
  const isWhole = () => {
    const ids = new Set([root.parentId, ...spans().map(({ spanId }) => spanId)]);
    return spans().some(last) && spans().every(({ parentId }) => ids.has(parentId));
  };
  await until("the trace's end", isWhole, { withinMs: 60_000 });
  return { root, spans: spans() };
}

type Value = bigint | number | Uint8Array;
type Fields = Map<number, Value[]>;

/** The fields of a message by number, in the form of the wire. */
function fieldsOf(bytes: Uint8Array): Fields {
  const reader = new BinaryReader(bytes);
  const fields: Fields = new Map();
  while (reader.pos < reader.len) {
    const [number, type] = reader.tag();
    const read = {
      [WireType.Varint]: () => BigInt(reader.uint64()),
      [WireType.Bit64]: () => BigInt(reader.fixed64()),
      [WireType.LengthDelimited]: () => reader.bytes(),
      [WireType.Bit32]: () => reader.fixed32(),
    }[type as number];
    if (!read) throw new Error(`no wire type of OTLP: ${type}`);
    fields.set(number, [...(fields.get(number) ?? []), read()]);
  }
  return fields;
}

const messages = (fields: Fields, number: number) =>
  (fields.get(number) ?? []).map((bytes) => fieldsOf(bytes as Uint8Array));
const text = (fields: Fields, number: number) =>
  Buffer.from((fields.get(number)?.[0] as Uint8Array | undefined) ?? []).toString();
const hex = (fields: Fields, number: number) =>
  Buffer.from((fields.get(number)?.[0] as Uint8Array | undefined) ?? []).toString("hex");
const integer = (fields: Fields, number: number) =>
  BigInt((fields.get(number)?.[0] ?? 0n) as bigint);

function double(fields: Fields, number: number): number {
  const bits = fields.get(number)?.[0];
  if (bits === undefined) return 0;
  return new DataView(new BigUint64Array([bits as bigint]).buffer).getFloat64(0, true);
}

function attributesOf(fields: Fields, number: number): Record<string, unknown> {
  return Object.fromEntries(
    messages(fields, number).map((pair) => [text(pair, 1), attributeOf(messages(pair, 2)[0])]),
  );
}

function attributeOf(value: Fields | undefined): unknown {
  if (!value) return undefined;
  if (value.has(2)) return integer(value, 2) === 1n;
  if (value.has(3)) return Number(integer(value, 3));
  if (value.has(4)) return double(value, 4);
  if (value.has(5)) return messages(value, 5).flatMap((list) => messages(list, 1).map(attributeOf));
  return text(value, 1);
}

function spansIn(body: Uint8Array): SeenSpan[] {
  return messages(fieldsOf(body), 1).flatMap((resource) => {
    const [about] = messages(resource, 1);
    const service = about ? String(attributesOf(about, 1)["service.name"]) : "";
    return messages(resource, 2).flatMap((scope) =>
      messages(scope, 2).map((span) => ({
        service,
        traceId: hex(span, 1),
        spanId: hex(span, 2),
        parentId: hex(span, 4),
        name: text(span, 5),
        kind: Number(integer(span, 6)),
        startedAt: integer(span, 7),
        endedAt: integer(span, 8),
        attributes: attributesOf(span, 9),
        failed: messages(span, 15).some((status) => integer(status, 3) === 2n),
      })),
    );
  });
}

function metricsIn(body: Uint8Array): SeenSeries[] {
  return messages(fieldsOf(body), 1)
    .flatMap((resource) => messages(resource, 2))
    .flatMap((scope) => messages(scope, 2))
    .flatMap((metric) => {
      const common = { name: text(metric, 1), unit: text(metric, 3) };
      const points = [...messages(metric, 5), ...messages(metric, 7)].flatMap((one) =>
        messages(one, 1).map((point) => ({
          ...common,
          attributes: attributesOf(point, 7),
          value: point.has(6) ? Number(integer(point, 6)) : double(point, 4),
          bucketCounts: [],
          bounds: [],
        })),
      );
      const histograms = messages(metric, 9).flatMap((one) =>
        messages(one, 1).map((point) => ({
          ...common,
          attributes: attributesOf(point, 9),
          value: Number(integer(point, 4)),
          bucketCounts: packed(point, 6).map(Number),
          bounds: packed(point, 7).map((bits) =>
            new DataView(new BigUint64Array([bits]).buffer).getFloat64(0, true),
          ),
        })),
      );
      return [...points, ...histograms];
    });
}

/** Repeated numbers of 64 bits, packed or each by itself. */
function packed(fields: Fields, number: number): bigint[] {
  return (fields.get(number) ?? []).flatMap((value) => {
    if (!(value instanceof Uint8Array)) return [BigInt(value)];
    const view = new DataView(value.buffer, value.byteOffset, value.byteLength);
    return Array.from({ length: value.byteLength / 8 }, (_, i) => view.getBigUint64(8 * i, true));
  });
}
