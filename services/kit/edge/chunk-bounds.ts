import type { IncomingMessage, RequestListener, Server } from "node:http";
import type { Socket } from "node:net";

/**
 * How small the chunks of a body may be: so many of any size, which is what a program that writes a small body piece by piece
 * sends, and one for so many bytes of the body. Each costs some microseconds, at any size: of one byte each, a single read of
 * 64 KiB has 10,000.
 */
export const chunkBounds = { spare: 1_024, meanBytes: 256 } as const;

/** What Node keeps of a connection that speaks HTTP/1.1; no part of its documented interface. */
interface Parsed {
  parser?: Record<number, unknown> | null;
}

/** Where its parser keeps what it calls for each chunk. */
const onChunk = 3;

/** Calls `refuse` once for a connection whose body has too many small chunks; nothing more of that body is looked at. */
export function boundChunks(server: Server, refuse: (socket: Socket) => void): void {
  server.prependListener("request", ((request) => {
    if (request.headers["transfer-encoding"] === undefined) return;
    let left: number = chunkBounds.spare * chunkBounds.meanBytes;
    const push = request.push;
    request.push = (chunk: Buffer | null, encoding?: BufferEncoding) => {
      if (chunk === null || left < 0) return push.call(request, chunk, encoding);
      left += Math.min(chunk.length, mostAtOnce) - chunkBounds.meanBytes;
      if (left >= 0) return push.call(request, chunk, encoding);
      stopReading(request);
      refuse(request.socket);
      return false;
    };
  }) satisfies RequestListener);
}

/** No single chunk counts for more: it comes from one read of the socket. */
const mostAtOnce = 64 * 1024;

/** What was read of the connection already has thousands of chunks more: the parser goes on without telling of them. */
function stopReading({ socket }: IncomingMessage): void {
  socket.pause();
  const { parser } = socket as Parsed;
  if (!parser) return;
  const told = parser[onChunk];
  parser[onChunk] = undefined;
  // Before Node's own listener, which keeps the parser for another connection.
  socket.prependOnceListener("close", () => {
    parser[onChunk] = told;
  });
}
