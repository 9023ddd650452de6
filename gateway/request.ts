// Small steps that many routes share: who calls, options of internal calls, when the caller leaves, headers of answers, answers
// that break off.

import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import type { Readable } from "node:stream";
import type { CallOptions } from "@connectrpc/connect";
import type { FastifyReply, FastifyRequest } from "fastify";
import { ErrorReason, errorRow, isRefusal, RefusalError } from "#kit/base/errors.ts";
import { Stop } from "#kit/base/stop.ts";
import { type PeerCall, wireOptions } from "#kit/rpc/peer-call.ts";
import type { Admitted, Edge } from "./context.ts";
import { CallerLeftError, costHeader } from "./errors.ts";

/** The admitted caller of a request under `/v1`. */
export function callerOf(request: FastifyRequest): Admitted {
  if (!request.caller) throw new Error("a route under /v1 was reached without admission");
  return request.caller;
}

/** Notes that the caller got an answer that costs money. Its account then has the share of one that pays. */
export function notePaid({ payers }: Pick<Edge, "payers">, request: FastifyRequest): void {
  payers.paid(callerOf(request).principal.accountId);
}

/** Was a header that has one value sent more than once? Node keeps the first, or joins them. Others on the way may not. */
export function isRepeated({ rawHeaders }: IncomingMessage, name: string): boolean {
  let times = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if (rawHeaders[i]?.length === name.length && rawHeaders[i]?.toLowerCase() === name) times++;
  }
  return times > 1;
}

/** The caller's Idempotency-Key, unchanged. The service refuses an empty one. */
export function idempotencyKeyOf(request: FastifyRequest): string | undefined {
  const value = request.headers["idempotency-key"];
  return Array.isArray(value) ? value.join(", ") : value;
}

/**
 * The name that the caller's client gives its conversation in a header of Claude Code or of Codex. Bounded as all headers are. These
 * headers go to no upstream.
 */
export function conversationOf(headers: IncomingHttpHeaders): string | undefined {
  const name = headers["x-claude-code-session-id"] || headers["session-id"];
  return Array.isArray(name) ? name[0] : name;
}

/** The beta features that a client of Anthropic's asks for. Its header may repeat. */
export function betasOf(headers: IncomingHttpHeaders): string[] {
  const named = [headers["anthropic-beta"] ?? []].flat().join(",");
  return named
    .split(",")
    .map((beta) => beta.trim())
    .filter((beta) => beta !== "");
}

/** The values that every submission sends to its service beside the body: how the caller was admitted, and its Idempotency-Key. */
export function submissionOf(request: FastifyRequest): Submission {
  const idempotencyKey = idempotencyKeyOf(request);
  const { admission } = callerOf(request);
  return { admission, ...(idempotencyKey === undefined ? {} : { idempotencyKey }) };
}

/** Header with properties of the request that were accepted and had no effect. */
export const ignoredParametersHeader = "x-genmesh-ignored-parameters";

/** Sets the header with the properties that had no effect. */
export function noteIgnored(reply: FastifyReply, ignoredParameters: readonly string[]): void {
  if (ignoredParameters.length === 0) return;
  reply.header(ignoredParametersHeader, ignoredParameters.join(", "));
}

/** Sets the header that shows that this is the first answer of the Idempotency-Key, given again. */
export function noteReplayed(reply: FastifyReply, replayed: boolean): void {
  if (replayed) reply.header("idempotency-replayed", "true");
}

/** Sets the header with the charge of the request. */
export function noteCost(reply: FastifyReply, costUsdMicros: bigint): void {
  reply.header(costHeader, String(costUsdMicros));
}

/** Fields of the messages that submit something. */
export interface Submission {
  admission: Admitted["admission"];
  idempotencyKey?: string;
}

/**
 * The facts of an internal call for a request. Its signal aborts when the caller leaves, or (with `cutOff`) when the process stops
 * waiting for open streams.
 */
export function peerCall(
  request: FastifyRequest,
  reply: FastifyReply,
  timeoutMs: number,
  cutOff?: AbortSignal,
): PeerCall {
  const { principal } = callerOf(request);
  const signal = leavingSignal(reply, cutOff);
  return { principal, requestId: request.id, timeoutMs, signal };
}

/** Options of a {@link peerCall} over the wire. Where equal requests join, they are sent to one replica. */
export function callOptions(
  request: FastifyRequest,
  reply: FastifyReply,
  timeoutMs: number,
  cutOff?: AbortSignal,
): CallOptions & { signal: AbortSignal } {
  const key = request.routeOptions.config.idempotent ? idempotencyKeyOf(request) : undefined;
  return wireOptions(peerCall(request, reply, timeoutMs, cutOff), key);
}

/**
 * Aborts when the answer's connection closes before the answer is complete. The request's own `close` is no sign of that: it comes when
 * the body has been read. An answer that waits behind another one of its connection is aborted too.
 */
export function leavingSignal(reply: FastifyReply, cutOff?: AbortSignal): Stop {
  const leaving = new Stop();
  const { raw } = reply;
  const cut = () => leaving.abort(stopping());
  const cuts = cutOff && listenersOf(cutOff);
  const closed = () => {
    cuts?.delete(cut);
    if (!raw.writableFinished) leaving.abort(new CallerLeftError());
  };
  if (raw.destroyed) closed();
  else {
    cuts?.add(cut);
    whenClosed(reply, closed);
    if (cutOff?.aborted) cut();
  }
  return leaving;
}

/** Listeners of process-wide signals. A signal searches all of its own listeners whenever one is added or removed. */
const listeners = new WeakMap<AbortSignal, Set<() => void>>();

function listenersOf(signal: AbortSignal): Set<() => void> {
  const known = listeners.get(signal);
  if (known) return known;
  const made = new Set<() => void>();
  listeners.set(signal, made);
  signal.addEventListener("abort", () => {
    for (const listener of [...made]) listener();
  });
  return made;
}

/**
 * Calls `then` once when the answer's connection closes, or the answer is over. One listener serves all functions that wait for that,
 * which are half a dozen for every request.
 */
export function whenClosed(reply: FastifyReply, then: () => void): void {
  if (reply.whenClosed) {
    reply.whenClosed.push(then);
    return;
  }
  const all = [then];
  reply.whenClosed = all;
  reply.raw.once("close", () => {
    for (const one of all) one();
  });
}

/**
 * Notes that an answer breaks after its beginning. Its status was sent, so the refusal is in the log, and in the last event of a
 * stream. An error that is no refusal is logged as a fault of the gateway.
 */
export function noteBroken(edge: Edge, error: unknown, reply: FastifyReply): RefusalError {
  const { request, raw } = reply;
  const refusal = edge.cutOff?.aborted ? stopping() : isRefusal(error) ? error : undefined;
  if (!refusal && !raw.destroyed) {
    edge.events.faulted(error, request.id, request.routeOptions.url ?? "");
  }
  const told = refusal ?? new RefusalError(ErrorReason.INTERNAL_ERROR);
  if (!raw.destroyed) request.refusal = told;
  return told;
}

/** Answers with a stream. By itself the framework silently cuts an answer whose source breaks. */
export function sendStream(edge: Edge, reply: FastifyReply, stream: Readable): FastifyReply {
  stream.once("error", (error) => void noteBroken(edge, error, reply));
  return reply.send(stream);
}

/**
 * The status with which an answer ended. Where it broke after its status was sent, it is that of its refusal. Undefined: its caller
 * left.
 */
export function endedStatus({ raw, request }: FastifyReply): number | undefined {
  // A WebSocket's request is over when it has become one.
  if (raw.writableFinished || raw.statusCode === 101) return raw.statusCode;
  const { refusal } = request;
  return refusal && raw.statusCode < 400 ? errorRow(refusal.reason).status : undefined;
}

/** Ends a place that an answer holds (of bytes, of downloads) when the answer's connection closes. */
export function endWithAnswer(reply: FastifyReply, place: Disposable): void {
  if (reply.raw.destroyed) place[Symbol.dispose]();
  else whenClosed(reply, () => place[Symbol.dispose]());
}

/** The refusal that ends a stream when the process stops. */
export function stopping(): RefusalError {
  return new RefusalError(ErrorReason.SERVICE_UNAVAILABLE, {
    message: "The service is restarting. Send the request again.",
    metadata: { retry_after_ms: "1000" },
  });
}
