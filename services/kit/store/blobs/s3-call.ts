// Makes one call to an S3 store, with bounds on its silence, and decides what the store's answer means.

import { AsyncLocalStorage } from "node:async_hooks";
import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest, type RequestOptions } from "node:https";
import { Client } from "minio";
import { type Attributes, endSpan, failSpan, isTraced, startSpan } from "#kit/telemetry/spans.ts";
import { connectionWaitMs, maxConnections, maxIdleConnections } from "./s3-limits.ts";
import type { S3Target } from "./s3-url.ts";

/**
 * The meaning of a store's refusal.
 * - `absent`: no such object (of a HEAD: or no such bucket). `no-bucket`: the bucket is missing.
 * - `taken`: the object exists, and was to be written only where it does not.
 * - `conflict`: another write of the same key was under way. Trying again shows how it ended.
 * - `unsupported`: the store does not know the request.
 * - `denied`: credentials, rights, region or clock are wrong. Trying again would end the same way.
 * - `away`: not reached, silent, or failing. The request may have been carried out. Trying again makes sense.
 */
export type S3Fault =
  | "absent"
  | "no-bucket"
  | "taken"
  | "conflict"
  | "unsupported"
  | "denied"
  | "away";

/** The store did not carry out a request. */
export class S3CallError extends Error {
  override readonly name = "S3CallError";
  readonly fault: S3Fault;

  constructor(fault: S3Fault, cause: unknown) {
    super(`the store's answer: ${fault}`, { cause });
    this.fault = fault;
  }
}

/** Is `error` a store's answer, and (where given) one of these? */
export function isS3Fault(error: unknown, ...faults: S3Fault[]): error is S3CallError {
  return error instanceof S3CallError && (faults.length === 0 || faults.includes(error.fault));
}

/** Requests to one store. */
export interface S3Caller extends Disposable {
  /**
   * Runs one request of the client, once. It fails where the store is silent for `silenceMs` before `work` is done. Rejects with an
   * {@link S3CallError}.
   */
  call<T>(silenceMs: number, work: (client: Client) => Promise<T>): Promise<T>;
}

/** One call, with the facts that the client does not keep of its request. */
interface Exchange {
  silenceMs: number;
  status: number | undefined;
  /** The client has its answer. Of a read that is the beginning of the body, whose reader has its own time-out. */
  isOver: boolean;
}

/** Prepares the client and its connections. Connects with the first request. */
export function createS3Caller(target: S3Target): S3Caller {
  const pool = {
    keepAlive: true,
    maxSockets: maxConnections,
    maxFreeSockets: maxIdleConnections,
    scheduling: "lifo" as const,
  };
  const agent = target.secure ? new HttpsAgent(pool) : new HttpAgent(pool);
  // The client's errors do not hold the status, and its requests have no limits on waiting. Both belong to the call within which the
  // client makes a request.
  const exchanges = new AsyncLocalStorage<Exchange>();
  const request: Request = (options, onResponse) => {
    const exchange = exchanges.getStore();
    if (!exchange) throw new Error("a request to the store outside of a call");
    return seen(target, patient(target.secure, exchange))(options, onResponse);
  };
  const client = new Client({
    endPoint: target.host,
    port: target.port,
    useSSL: target.secure,
    accessKey: target.accessKey,
    secretKey: target.secretKey,
    region: target.region,
    transport: { request } as never,
    transportAgent: agent,
    // The client's own retries would log to the console, and send a stream again that was read already.
    retryOptions: { disableRetry: true },
  });
  return {
    async call(silenceMs, work) {
      const exchange: Exchange = { silenceMs, status: undefined, isOver: false };
      try {
        const result = await exchanges.run(exchange, () => work(client));
        exchange.isOver = true;
        return result;
      } catch (error) {
        // A mistake in our own code is not the store's answer.
        const isOurs = error instanceof TypeError || error instanceof ReferenceError;
        if (isOurs && exchange.status === undefined) throw error;
        throw new S3CallError(faultOf(exchange.status, error), error);
      }
    },
    [Symbol.dispose]: () => agent.destroy(),
  };
}

/** Node's `request`, with limits on waiting. */
function patient(secure: boolean, exchange: Exchange) {
  const { silenceMs } = exchange;
  const request = secure ? httpsRequest : httpRequest;
  return (options: RequestOptions, onResponse: (response: IncomingMessage) => void) => {
    const sent = request({ ...options, timeout: silenceMs }, (response) => {
      exchange.status = response.statusCode;
      // The client does not read these answers, which would block the connection.
      if (unreadStatuses.has(response.statusCode ?? 0)) response.resume();
      onResponse(response);
    });
    const waiting = setTimeout(() => {
      sent.destroy(new Error(`no connection became free within ${connectionWaitMs} ms`));
    }, connectionWaitMs);
    sent.once("socket", () => clearTimeout(waiting));
    sent.once("close", () => clearTimeout(waiting));
    sent.on("timeout", () => {
      if (!exchange.isOver) sent.destroy(new Error(`the store was silent for ${silenceMs} ms`));
    });
    return sent;
  };
}

type Request = ReturnType<typeof patient>;

/** `request`, with a span for each call, to the answer's last byte. */
function seen({ host, port }: S3Target, request: Request): Request {
  if (!isTraced()) return request;
  return (options, onResponse) => {
    const method = options.method ?? "GET";
    const span = startSpan({
      family: "http.client",
      name: method,
      attributes: { "http.request.method": method, "server.address": host, "server.port": port },
    });
    const sent = request(options, (response) => {
      const status = response.statusCode ?? 0;
      span.setAttributes({ "http.response.status_code": status } satisfies Attributes);
      if (status >= 400) failSpan(span, String(status));
      response.once("close", () => endSpan(span));
      onResponse(response);
    });
    sent.once("error", () => failSpan(span, "away"));
    sent.once("close", () => endSpan(span));
    return sent;
  };
}

/** Statuses at which the client gives up before it has read the answer's body. */
const unreadStatuses: ReadonlySet<number> = new Set([408, 429, 499, 500, 502, 503, 504, 520]);

function faultOf(status: number | undefined, error: unknown): S3Fault {
  const code = (error as { code?: unknown } | null)?.code;
  switch (status) {
    case 404:
      return code === "NoSuchBucket" ? "no-bucket" : "absent";
    case 409:
      return code === "BucketAlreadyOwnedByYou" || code === "BucketAlreadyExists"
        ? "taken"
        : "conflict";
    case 412:
      return "taken";
    case 501:
      return "unsupported";
    case 400:
      // A body that came too slowly. All other codes are our own mistake.
      return code === "RequestTimeout" ? "away" : "denied";
    case 301:
    case 307:
    case 401:
    case 403:
    case 405:
      return "denied";
    default:
      // No status means no answer. 200 with an error means that the answer broke off.
      return "away";
  }
}
