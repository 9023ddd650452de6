// Sends a service's calls to another process of the mesh. In one process `direct-transport.ts` takes its place. The parts of a
// call are in the folder wire.

import { create, type DescMethod } from "@bufbuild/protobuf";
import type { Interceptor, StreamRequest, Transport, UnaryRequest } from "@connectrpc/connect";
import { affinityHeader } from "./affinity.ts";
import { attempts } from "./wire/attempts.ts";
import { Call } from "./wire/call.ts";
import { codecs, enveloped, whole } from "./wire/codec.ts";
import { StreamExchange } from "./wire/exchange-stream.ts";
import { UnaryExchange } from "./wire/exchange-unary.ts";
import { created } from "./wire/invoke.ts";
import { maxMessageBytes } from "./wire/limits.ts";
import { runStream, runUnary } from "./wire/run-call.ts";
import { unaryResponse, unaryType } from "./wire/unary-reply.ts";
import type { PeerPool, PickedPeer } from "./wire-pool.ts";

/** Options of a wire transport. */
export interface WireTransportOptions {
  /** The peer's addresses. */
  pool: PeerPool;
  /** The peer's URL as configured. Interceptors see it before an address is chosen. */
  baseUrl: string;
  /** Outermost first. */
  interceptors?: readonly Interceptor[];
  /** Milliseconds for a call that names no deadline. Undefined: none. */
  defaultTimeoutMs?: number;
  /** Largest answer or message of a stream, in bytes. Default: {@link maxMessageBytes}. */
  maxMessageBytes?: number;
}

/**
 * A connect-es transport for the mesh: Connect protocol, binary, uncompressed, over kept-alive HTTP/1.1. Rejects with ConnectError. A
 * call that met a dead address is tried at another one. Where no byte was sent, that is always done. Where the connection broke before
 * an answer began, only idempotent methods are tried again. There are at most {@link maxAttempts}. Deadlines of 0 and less have passed.
 * A stream that is left early is closed. But connect-es's own clients do not pass that on (`client.ts` does). So a caller that leaves a
 * stream of such a client aborts its signal.
 */
export function createWireTransport(options: WireTransportOptions): Transport {
  const {
    interceptors = [],
    defaultTimeoutMs,
    maxMessageBytes: maxBytes = maxMessageBytes,
  } = options;
  const codecOf = codecs(maxBytes);
  const start = (
    method: DescMethod,
    signal: AbortSignal | undefined,
    timeoutMs: number | undefined,
    header: HeadersInit | undefined,
  ) => ({
    method,
    url: options.baseUrl.replace(/\/$/, "") + codecOf(method).path,
    header: new Headers(header),
    call: new Call({ signal, timeoutMs: timeoutMs ?? defaultTimeoutMs }),
  });
  return {
    async unary(method, signal, timeoutMs, header, input, contextValues) {
      const common = { ...start(method, signal, timeoutMs, header), contextValues };
      const { call } = common;
      const codec = codecOf(method);
      const message = create(method.input, input);
      return runUnary(common, message, interceptors, async (req) => {
        const body = codec.write(req.message);
        const attempt = (peer: PickedPeer) => {
          const exchange = new UnaryExchange(call, maxBytes);
          const request = { path: codec.path, headers: headersFor(req, call, unaryType), body };
          return { exchange, reply: exchange.send(peer, request) };
        };
        const reply = await attempts({
          pool: options.pool,
          call,
          isRepeatable: codec.isRepeatable,
          affinity: affinityIn(req),
          attempt,
        });
        return unaryResponse(req, reply, codec);
      }) as never;
    },
    async stream(method, signal, timeoutMs, header, input, contextValues) {
      const common = { ...start(method, signal, timeoutMs, header), contextValues };
      const { call } = common;
      const codec = codecOf(method);
      const messages = created(method.input, input as AsyncIterable<never>);
      return runStream(common, messages, interceptors, async (req) => {
        const isSingle = method.methodKind === "server_streaming";
        const body = isSingle ? await whole(req.message, codec) : enveloped(req.message, codec);
        const attempt = (peer: PickedPeer) => {
          const exchange = new StreamExchange(call, maxBytes, codec.read);
          const request = { path: codec.path, headers: headersFor(req, call, streamType), body };
          return { exchange, reply: exchange.send(peer, request) };
        };
        const isRepeatable = isSingle && codec.isRepeatable;
        const affinity = affinityIn(req);
        const { pool } = options;
        const reply = await attempts({ pool, call, isRepeatable, affinity, attempt });
        return {
          stream: true,
          service: method.parent,
          method,
          message: reply.messages,
          header: reply.header,
          trailer: reply.trailer,
        };
      }) as never;
    },
  };
}

function affinityIn({ header }: UnaryRequest | StreamRequest): string | undefined {
  return header.get(affinityHeader) ?? undefined;
}

const streamType = "application/connect+proto";

/** The request's headers. The deadline is the time that is left of it. */
function headersFor(req: UnaryRequest | StreamRequest, call: Call, type: string): string[] {
  const list = ["content-type", type, "connect-protocol-version", "1"];
  const leftMs = call.leftMs();
  if (leftMs !== undefined && leftMs < maxTimeoutMs) {
    list.push("connect-timeout-ms", String(Math.max(1, Math.ceil(leftMs))));
  }
  for (const [name, value] of req.header) {
    if (!reserved.has(name)) list.push(name, value);
  }
  return list;
}

/** Largest value of connect-timeout-ms, which has ten digits. */
const maxTimeoutMs = 9_999_999_999;

/** Headers that the transport sets itself or reads alone, and those that belong to a connection. */
const reserved = new Set([
  affinityHeader,
  "accept-encoding",
  "connect-accept-encoding",
  "connect-content-encoding",
  "connect-protocol-version",
  "connect-timeout-ms",
  "connection",
  "content-encoding",
  "content-length",
  "content-type",
  "host",
  "keep-alive",
  "transfer-encoding",
  "upgrade",
]);
