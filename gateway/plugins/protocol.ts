import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { FastifyInstance } from "fastify";
import { ErrorReason, RefusalError } from "#kit/errors.ts";
import type { Edge } from "../context.ts";
import { malformed, toHttpError } from "../errors.ts";
import { isHost } from "../public-url.ts";
import { createReaderWatch } from "../readers.ts";

/** Requests whose caller waits for a 100 (Continue) before it sends the body. */
const waiting = new WeakSet<IncomingMessage>();
/** Requests with an expectation that is none of HTTP's. */
const unexpected = new WeakSet<IncomingMessage>();

/** What HTTP asks of a server and Node or the framework leaves open. */
export function protocolRules(app: FastifyInstance, edge: Edge): void {
  const server = app.server as Server;
  const watchReader = createReaderWatch(edge.clock);
  // Admission comes first: a body that is refused anyway is never asked for.
  server.on("checkContinue", (request: IncomingMessage, response: ServerResponse) => {
    waiting.add(request);
    server.emit("request", request, response);
  });
  server.on("checkExpectation", (request: IncomingMessage, response: ServerResponse) => {
    unexpected.add(request);
    server.emit("request", request, response);
  });
  app.addHook("onRequest", (request, _reply, done) => {
    watchReader(request.raw.socket);
    request.awaitsContinue = waiting.has(request.raw);
    if (unexpected.has(request.raw)) done(malformed("The Expect header is not supported."));
    else if (!hasOneHost(request.raw)) done(malformed("A request has one valid Host header."));
    else done();
  });
}

// RFC 9112, 3.2. Node keeps the first of several and says nothing.
function hasOneHost(request: IncomingMessage): boolean {
  const { rawHeaders, headers, httpVersion } = request;
  if (headers.host === undefined) return httpVersion === "1.0";
  if (!isHost(headers.host)) return false;
  let hosts = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if (rawHeaders[i]?.length === 4 && rawHeaders[i]?.toLowerCase() === "host") hosts++;
  }
  return hosts === 1;
}

/**
 * The path as the router takes it: the origin of an absolute URL is cut off (servers must accept that form), and a
 * path with broken percent encoding becomes one that exists nowhere, so that it meets the same rules as any other.
 */
export function routedUrl(url: string): string {
  const local = url.startsWith("/") ? url : url.replace(/^https?:\/\/[^/?#]*/i, "");
  const path = local.startsWith("/") ? local : `/${local}`;
  if (!path.includes("%")) return path;
  const [route = "", ...query] = path.split("?");
  try {
    decodeURIComponent(route);
    return path;
  } catch {
    return [route.replaceAll("%", "%25"), ...query].join("?");
  }
}

/** Answers what never became a request, in the contract's envelope, and closes. */
export function refuseConnection(
  edge: Edge,
  error: Error & { code?: string },
  socket: Socket,
): void {
  if (error.code === "ECONNRESET" || !socket.writable) {
    socket.destroy();
    return;
  }
  edge.events.connectionRefused(error.code ?? "unknown");
  // An answer that has begun cannot be taken back; the connection's end says that it is not whole.
  if ((socket as { _httpMessage?: ServerResponse })._httpMessage?.headersSent) {
    socket.destroy();
    return;
  }
  const { status, headers, body } = toHttpError(refusalOfParser(error.code));
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
