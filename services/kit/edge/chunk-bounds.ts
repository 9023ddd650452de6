import type { IncomingMessage, RequestListener, Server } from "node:http";
import type { Socket } from "node:net";

/**
 * How small the chunks of a body may be. A body may have `spare` chunks of any size: a program that writes a small body piece by piece
 * sends such. Beyond them it may have one chunk for each `meanBytes`. Each chunk costs some microseconds, at any size. With chunks of
 * one byte, a single read of 64 KiB has 10,000.
 */
export const chunkBounds = { spare: 1_024, meanBytes: 256 } as const;

/** Fields that Node keeps of a connection that speaks HTTP/1.1. They are no part of its documented interface. */
interface Parsed {
  parser?: Record<number, unknown> | null;
}

/** The parser's field for the function that it calls for each chunk. */
const onChunk = 3;

/** Calls `refuse` once for a connection whose body has too many small chunks. The rest of that body is ignored. */
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

/** No single chunk counts for more, because it comes from one read of the socket. */
const mostAtOnce = 64 * 1024;

/** The bytes that were read already hold thousands of further chunks. The parser goes on through them without calling anything. */
function stopReading({ socket }: IncomingMessage): void {
  socket.pause();
  const { parser } = socket as Parsed;
  if (!parser) return;
  const told = parser[onChunk];
  parser[onChunk] = undefined;
  // Runs before Node's own listener, which keeps the parser for another connection.
  socket.prependOnceListener("close", () => {
    parser[onChunk] = told;
  });
}
