// Refuses requests that break HTTP in ways that Node and Fastify let pass, and answers bytes that never became a request.

import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { FastifyReply, FastifyRequest, preParsingHookHandler } from "fastify";
import { ErrorReason, RefusalError } from "#kit/base/errors.ts";
import { maxQueryNames, maxQueryParameters, overlongQueryAt } from "#kit/edge/query-bounds.ts";
import type { Edge } from "../context.ts";
import { malformed, toHttpError } from "../errors.ts";
import { isHost } from "../public-url.ts";
import { isRepeated } from "../request.ts";
import { isForResponses, upgradeOf } from "../upgrade.ts";
import type { Rule } from "./rules.ts";

/** Requests whose caller waits for a 100 (Continue) before it sends the body. */
const waiting = new WeakSet<IncomingMessage>();
/** Requests with an expectation that HTTP does not define. */
const unexpected = new WeakSet<IncomingMessage>();
/** Requests whose query is longer than the parsed part. */
const overlong = new WeakSet<IncomingMessage>();

/** Answers the requests for which Node has an event of its own. Node would close their connection, or invite each body. */
export function takeOddRequests(server: Server, edge: Edge): void {
  server.on("connect", (_request: IncomingMessage, socket: Socket) => {
    endWith(edge, socket, new RefusalError(ErrorReason.METHOD_NOT_ALLOWED));
  });
  // Admission comes first, so a body that is refused anyway is never asked for.
  server.on("checkContinue", (request: IncomingMessage, response: ServerResponse) => {
    waiting.add(request);
    server.emit("request", request, response);
  });
  server.on("checkExpectation", (request: IncomingMessage, response: ServerResponse) => {
    unexpected.add(request);
    server.emit("request", request, response);
  });
}

/** Rules of HTTP for servers that Node and the framework leave open. */
export const protocolRules: readonly Rule[] = [framed, expectation, oneHost, withoutWebSocket];

// RFC 9112, 6.1. Node's parser also takes codings before `chunked`, which no code here undoes, and any of them in HTTP/1.0.
function framed({ raw }: FastifyRequest, reply: FastifyReply): undefined {
  const { httpVersion, headers } = raw;
  const coding = headers["transfer-encoding"];
  if (httpVersion === "1.1" && (coding === undefined || coding.toLowerCase() === "chunked")) return;
  if (httpVersion === "1.0" && coding === undefined) return;
  // The end of this request is uncertain, and so is the beginning of the next one.
  reply.header("connection", "close");
  throw malformed("The Transfer-Encoding is not supported.");
}

function expectation(request: FastifyRequest): undefined {
  if (unexpected.has(request.raw)) throw malformed("The Expect header is not supported.");
  request.awaitsContinue = waiting.has(request.raw);
}

// RFC 9112, 3.2. Node silently keeps the first of several.
function oneHost({ raw }: FastifyRequest): undefined {
  const { host } = raw.headers;
  const isRight =
    host === undefined ? raw.httpVersion === "1.0" : isHost(host) && !isRepeated(raw, "host");
  if (!isRight) throw malformed("Send one valid Host header.");
}

/**
 * Refuses a WebSocket for responses that cannot be: they are off here, or a proxy took the header `Upgrade` out and left the key of the
 * handshake (RFC 6455, 4.1). Codex then uses HTTP at once, where after 405 it tries again for seconds.
 */
function withoutWebSocket({ raw, url }: FastifyRequest, reply: FastifyReply): undefined {
  if (raw.method !== "GET" || !isForResponses(raw, url) || upgradeOf(raw)) return;
  // The bytes behind it may be frames, which are no HTTP.
  reply.header("connection", "close");
  throw new RefusalError(ErrorReason.WEBSOCKET_UNSUPPORTED);
}

/** Refuses a query that was cut off. */
export const refuseOverlong: preParsingHookHandler = ({ raw }, _reply, _body, done) => {
  if (!overlong.has(raw)) return done();
  const refusal = new RefusalError(ErrorReason.INVALID_VALUE, {
    param: "query",
    message: `A query may have at most ${maxQueryParameters} parameters, and ${maxQueryNames} different names.`,
  });
  return done(refusal);
};

/**
 * The path for the router. The origin of an absolute URL is cut off, because servers must accept that form. A path with broken percent
 * encoding becomes one that does not exist, so that it follows the same rules as any other. A query of too many names is cut off, so
 * that the router does not parse it, and its request is refused later.
 */
export function routedUrl(request: IncomingMessage): string {
  const url = request.url ?? "/";
  const local = url.startsWith("/") ? url : url.replace(/^https?:\/\/[^/?#]*/i, "");
  const whole = local.startsWith("/") ? local : `/${local}`;
  const overlongAt = overlongQueryAt(whole);
  if (overlongAt >= 0) overlong.add(request);
  const path = overlongAt < 0 ? whole : whole.slice(0, overlongAt);
  if (!path.includes("%")) return path;
  const [route = "", ...query] = path.split("?");
  try {
    decodeURIComponent(route);
    return path;
  } catch {
    return [route.replaceAll("%", "%25"), ...query].join("?");
  }
}

/** Answers bytes that never became a request, in the envelope of the API's contract, and closes. */
export function refuseConnection(
  edge: Edge,
  error: Error & { code?: string },
  socket: Socket,
): void {
  if (error.code === "ECONNRESET" || !socket.writable) {
    socket.destroy();
    return;
  }
  // Refused once. Later bytes are read and thrown away.
  if (refused.has(socket)) return;
  refused.add(socket);
  edge.events.connectionRefused(error.code ?? "unknown");
  answerAfterEarlier(edge, socket, refusalOfParser(error.code));
}

/** Ends a connection whose body comes in too many small chunks, each of which costs as much as a large one. */
export function refuseChunks(edge: Edge, socket: Socket): void {
  refused.add(socket);
  edge.events.connectionRefused("SMALL_CHUNKS");
  const message = "The body comes in too many small chunks. Send larger ones.";
  answerAfterEarlier(edge, socket, new RefusalError(ErrorReason.PAYLOAD_TOO_LARGE, { message }));
}

/** Connections that brought bytes that are no HTTP. */
const refused = new WeakSet<Socket>();

/**
 * Refuses once the earlier complete requests on this connection have their answers. Otherwise the refusal would be taken for one of
 * these. A request whose own body broke off gets the refusal as its answer, unless its answer has begun.
 */
function answerAfterEarlier(edge: Edge, socket: Socket, refusal: RefusalError): void {
  const answer = (socket as { _httpMessage?: ServerResponse | null })._httpMessage;
  if (!answer) {
    if (socket.writable) endWith(edge, socket, refusal);
  } else if (answer.req.complete) {
    // Node then makes the next answer of the connection the current one.
    answer.once("close", () => setImmediate(answerAfterEarlier, edge, socket, refusal));
  } else if (answer.headersSent) {
    // A request that was refused by its head has its answer in this turn, which ends the connection. An answer that has begun cannot be
    // taken back. The connection's end shows that it is not complete.
    setImmediate(() => {
      if (answer.writableEnded) socket.destroySoon();
      else socket.destroy();
    });
  } else {
    endWith(edge, socket, refusal);
  }
}

/** The last answer of a connection, sent without Node's own response object. */
function endWith(edge: Edge, socket: Socket, refusal: RefusalError): void {
  const { status, headers, body } = toHttpError(refusal);
  const text = JSON.stringify(body);
  const lines = Object.entries({
    ...headers,
    "x-request-id": edge.ids.make("req"),
    "content-type": "application/json; charset=utf-8",
    "content-length": String(Buffer.byteLength(text)),
    connection: "close",
  }).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status} ${reasonPhrase}\r\n${lines.join("")}\r\n${text}`, () => {
    socket.destroySoon();
  });
}

// Its text has no meaning in HTTP/1.1, but the line has a place for it.
const reasonPhrase = "Refused";

function refusalOfParser(code: string | undefined): RefusalError {
  if (code === "HPE_HEADER_OVERFLOW") {
    return new RefusalError(ErrorReason.PAYLOAD_TOO_LARGE, {
      message: "The request's headers are too large.",
    });
  }
  if (code === "HPE_CHUNK_EXTENSIONS_OVERFLOW") {
    return new RefusalError(ErrorReason.PAYLOAD_TOO_LARGE);
  }
  return malformed(
    code === "ERR_HTTP_REQUEST_TIMEOUT"
      ? "The request did not arrive in time."
      : "The request is not valid HTTP.",
  );
}
