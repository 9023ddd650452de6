// Makes one exchange with an upstream on one connection, within its times, and says what a failure means. `client.ts` chooses the
// connection.

import type { Dispatcher, Pool } from "undici";
import type { HttpReply, HttpRequest } from "./client.ts";
import { decodedReply } from "./decoded-body.ts";
import { UpstreamError } from "./errors.ts";
import { httpLimits } from "./limits.ts";
import { ReplyBody } from "./reply-body.ts";

/** The response headers that are used. An upstream's other headers are dropped as they come. */
export const replyHeaderNames = [
  "content-encoding",
  "content-length",
  "content-type",
  "location",
  "retry-after",
  "retry-after-ms",
  "x-genmesh-ignored-parameters",
] as const;
/** The first value of each. */
export type ReplyHeaders = { readonly [name in (typeof replyHeaderNames)[number]]?: string };

/** The parts that one exchange needs. */
export interface ExchangeOptions {
  pool: Pool;
  url: URL;
  request: HttpRequest;
  /** Bytes that a failed socket had read. The pool's connector fills it. */
  readBefore: WeakMap<object, number>;
}

/** Sends the request. `resolve` gets the answer's head. The body goes on coming as its reader takes it. */
export function exchange(
  options: ExchangeOptions,
  resolve: (reply: HttpReply) => void,
  reject: (error: unknown) => void,
): void {
  const { pool, url, request } = options;
  const { signal } = request;
  if (signal.aborted) {
    reject(signal.reason);
    return;
  }
  pool.dispatch(
    {
      path: `${url.pathname}${url.search}`,
      method: request.method,
      headers: request.headers as Record<string, string>,
      body: request.body ?? null,
      headersTimeout: request.headTimeoutMs,
      bodyTimeout: request.idleTimeoutMs,
      reset: request.once ?? false,
    },
    new ExchangeHandler(options, resolve, reject),
  );
}

class ExchangeHandler implements Dispatcher.DispatchHandler {
  readonly #options: ExchangeOptions;
  readonly #resolve: (reply: HttpReply) => void;
  readonly #reject: (error: unknown) => void;
  readonly #beganAtMs = performance.now();
  #sentAtMs = Number.POSITIVE_INFINITY;
  #timer: NodeJS.Timeout;
  readonly #onAbort = () => this.#stop(this.#options.request.signal.reason);
  /** Time that the reader took does not count as the upstream's. */
  readonly #onTime = () => {
    const tookMs = performance.now() - this.#beganAtMs - (this.#body?.lainMs() ?? 0);
    const leftMs = this.#options.request.timeoutMs - tookMs;
    if (leftMs < 1) this.#stop(new UpstreamError("timeout", { isOfWhole: true }));
    else this.#timer = setTimeout(this.#onTime, leftMs);
  };
  #controller: Dispatcher.DispatchController | undefined;
  #body: ReplyBody | undefined;
  #isOver = false;

  constructor(
    options: ExchangeOptions,
    resolve: (reply: HttpReply) => void,
    reject: (error: unknown) => void,
  ) {
    this.#options = options;
    this.#resolve = resolve;
    this.#reject = reject;
    const { signal, timeoutMs } = options.request;
    signal.addEventListener("abort", this.#onAbort, { once: true });
    this.#timer = setTimeout(this.#onTime, timeoutMs);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    // The exchange was given up while it waited for a connection.
    if (this.#isOver) controller.abort(new Error("given up"));
    else {
      this.#sentAtMs = performance.now();
      this.#options.request.onSent?.();
    }
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    // 1xx: the real head is still to come.
    if (status < 200 || this.#isOver) return;
    this.#body = new ReplyBody(controller, () => this.#stop(new UpstreamError("cut")));
    const reply = { status, headers: readHeaders(headers), body: this.#body };
    this.#resolve(headers["content-encoding"] === undefined ? reply : decodedReply(reply));
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#body?.came(chunk);
  }

  onResponseEnd(): void {
    this.#over();
    this.#body?.finish(undefined);
  }

  onResponseError(_controller: Dispatcher.DispatchController, cause: Error): void {
    if (this.#isOver) return;
    this.#over();
    this.#fail(this.#errorOf(cause));
  }

  /** Gives up: closes the connection now and rejects calls that wait for the answer. */
  #stop(reason: unknown): void {
    if (this.#isOver) return;
    this.#over();
    this.#fail(reason);
    this.#controller?.abort(reason instanceof Error ? reason : new Error("aborted"));
  }

  #over(): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
    this.#options.request.signal.removeEventListener("abort", this.#onAbort);
  }

  #fail(reason: unknown): void {
    if (this.#body) this.#body.finish(reason);
    else this.#reject(reason);
  }

  #errorOf(cause: Error): UpstreamError {
    const code = (cause as NodeJS.ErrnoException).code ?? "";
    if (code === "UND_ERR_HEADERS_TIMEOUT" || code === "UND_ERR_BODY_TIMEOUT") {
      return new UpstreamError("timeout", { cause });
    }
    if (this.#body) return new UpstreamError("cut", { cause });
    const timedOut = code === "UND_ERR_CONNECT_TIMEOUT" || code === "ETIMEDOUT";
    return new UpstreamError("unreachable", { timedOut, stale: this.#isStale(cause), cause });
  }

  /** Had the connection served an answer before it broke, at once and without a byte of this one? */
  #isStale(cause: Error): boolean {
    if (performance.now() - this.#sentAtMs > httpLimits.staleMs) return false;
    const socket = (cause as { socket?: { bytesRead?: number } }).socket;
    return (socket?.bytesRead ?? this.#options.readBefore.get(cause) ?? 0) > 0;
  }
}

function readHeaders(headers: Record<string, string | string[] | undefined>): ReplyHeaders {
  const read: { -readonly [name in keyof ReplyHeaders]: ReplyHeaders[name] } = {};
  for (const name of replyHeaderNames) {
    const value = headers[name];
    const first = Array.isArray(value) ? value[0] : value;
    if (first !== undefined) read[name] = first;
  }
  return read;
}
