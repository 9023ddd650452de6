import type { IncomingMessage } from "node:http";
import type { CallOptions } from "@connectrpc/connect";
import type { FastifyReply, FastifyRequest } from "fastify";
import { ErrorReason, RefusalError } from "#kit/errors.ts";
import { affinityHeader, affinityOf } from "#kit/rpc/affinity.ts";
import { callHeaders } from "#kit/rpc/principal.ts";
import type { Admitted, Edge } from "./context.ts";
import { CallerLeftError } from "./errors.ts";

/** The admitted caller of a request under `/v1`. */
export function callerOf(request: FastifyRequest): Admitted {
  if (!request.caller) throw new Error("a route under /v1 was reached without admission");
  return request.caller;
}

/** Notes that the caller was given something that costs money: its account has the share of one that pays. */
export function notePaid({ payers }: Pick<Edge, "payers">, request: FastifyRequest): void {
  payers.paid(callerOf(request).principal.accountId);
}

/** Was a header that has one value sent more than once? Node keeps the first, or joins them, and others on the way may not. */
export function isRepeated({ rawHeaders }: IncomingMessage, name: string): boolean {
  let times = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if (rawHeaders[i]?.length === name.length && rawHeaders[i]?.toLowerCase() === name) times++;
  }
  return times > 1;
}

/** The caller's Idempotency-Key as it came (an empty one is the service's to refuse). */
export function idempotencyKeyOf(request: FastifyRequest): string | undefined {
  const value = request.headers["idempotency-key"];
  return Array.isArray(value) ? value.join(", ") : value;
}

/**
 * Options of an internal call on behalf of a request: principal, request id, deadline, and a signal that aborts when
 * the caller leaves, or (with `cutOff`) when the process stops waiting for open streams. Where equal requests join they go
 * to one replica.
 */
export function callOptions(
  request: FastifyRequest,
  reply: FastifyReply,
  timeoutMs: number,
  cutOff?: AbortSignal,
): CallOptions & { signal: AbortSignal } {
  const { principal } = callerOf(request);
  const key = request.routeOptions.config.idempotent ? idempotencyKeyOf(request) : undefined;
  return {
    headers: {
      ...callHeaders(principal, request.id),
      ...(key === undefined ? {} : { [affinityHeader]: affinityOf(principal, key) }),
    },
    timeoutMs,
    signal: leavingSignal(reply, cutOff),
  };
}

/**
 * Aborts when the answer's connection closes before the answer is complete. The request's own `close` says nothing:
 * it comes when the body has been read. An answer that waits behind another one of its connection hears of it too.
 */
export function leavingSignal(reply: FastifyReply, cutOff?: AbortSignal): AbortSignal {
  const leaving = new AbortController();
  const { raw } = reply;
  const left = () => {
    if (!raw.writableFinished) leaving.abort(new CallerLeftError());
  };
  const cut = () => leaving.abort(stopping());
  raw.once("close", left);
  if (cutOff) {
    cutOff.addEventListener("abort", cut);
    raw.once("close", () => cutOff.removeEventListener("abort", cut));
  }
  if (raw.destroyed) left();
  else if (cutOff?.aborted) cut();
  return leaving.signal;
}

/** What a stream ends with when the process stops. */
export function stopping(): RefusalError {
  return new RefusalError(ErrorReason.SERVICE_UNAVAILABLE, {
    message: "The service is restarting. Send the request again.",
    metadata: { retry_after_ms: "1000" },
  });
}
