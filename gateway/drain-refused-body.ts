// Answers a request whose body is still coming, so that the caller reads the refusal and not a reset connection.

import type { IncomingMessage } from "node:http";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Clock } from "#kit/time/clock.ts";
import { hasUnreadBody } from "./body.ts";
import { lingerBytes, lingerFromBytes, lingerMs, lingerWindowMs } from "./limits.ts";

/**
 * Must an answer that is given now, before the body was read, close the connection? The server simply reads a short rest. A long or
 * endless one is not worth that. One that still waits for a 100 (Continue) never comes.
 */
export function mustLinger(request: FastifyRequest): boolean {
  if (!hasUnreadBody(request)) return false;
  if (request.awaitsContinue) return true;
  return !(Number(request.headers["content-length"]) <= lingerFromBytes);
}

/**
 * Gives a complete answer while the caller is still sending, goes on reading (and throwing away) for a moment, then closes. Closing at
 * once would reset the connection, and the reset can overtake the answer.
 */
export type Linger = (
  request: FastifyRequest,
  reply: FastifyReply,
  answer: { status: number; headers: Record<string, string>; body: Buffer },
) => void;

/** Makes it, for all connections of a gateway. Together they are read at most as fast as {@link lingerBytes} a window. */
export function createLinger(clock: Clock): Linger {
  const bodies = new Set<IncomingMessage>();
  let left = lingerBytes;
  let isOpening = false;
  const openWindows = async () => {
    isOpening = true;
    while (bodies.size > 0) {
      await clock.sleep(lingerWindowMs);
      left = lingerBytes;
      for (const body of bodies) body.resume();
    }
    isOpening = false;
  };
  const throwAway = (body: IncomingMessage, end: () => void) => {
    if (bodies.size === 0) left = lingerBytes;
    bodies.add(body);
    const over = () => {
      bodies.delete(body);
      end();
    };
    body
      .on("data", (chunk: Buffer) => {
        left -= chunk.length;
        if (left <= 0) body.pause();
      })
      .once("end", over)
      .once("close", over)
      .on("error", () => {});
    if (left > 0) body.resume();
    if (!isOpening) void openWindows();
  };

  return (request, reply, answer) => {
    const { raw } = reply;
    reply.hijack();
    raw.on("error", () => {});
    raw.writeHead(answer.status, {
      ...(reply.getHeaders() as Record<string, string>),
      ...answer.headers,
      "content-length": String(answer.body.length),
      connection: "close",
    });
    raw.write(answer.body);
    const over = new AbortController();
    const end = () => {
      over.abort();
      raw.end();
    };
    throwAway(request.raw, end);
    // The answer is complete already. Only the connection waits.
    clock.sleep(lingerMs, over.signal).then(end, () => {});
  };
}
