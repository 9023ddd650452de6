import type { FastifyReply, FastifyRequest } from "fastify";
import type { Clock } from "#kit/clock.ts";
import { hasUnreadBody } from "./body.ts";
import { lingerFromBytes, lingerMs } from "./limits.ts";

/**
 * Must an answer that is given now, before the body was read, close the connection? A short rest is simply read by
 * the server; a long or endless one is not worth it, and one that still waits for a 100 (Continue) never comes.
 */
export function mustLinger(request: FastifyRequest): boolean {
  if (!hasUnreadBody(request)) return false;
  if (request.awaitsContinue) return true;
  return !(Number(request.headers["content-length"]) <= lingerFromBytes);
}

/**
 * Gives a complete answer while the caller is still sending, goes on reading (and throwing away) for a moment, then
 * closes. Closing at once would reset the connection, and the reset can overtake the answer.
 */
export function answerAndLinger(
  clock: Clock,
  request: FastifyRequest,
  reply: FastifyReply,
  answer: { status: number; headers: Record<string, string>; body: Buffer },
): void {
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
  request.raw
    .once("end", end)
    .once("close", end)
    .on("error", () => {})
    .resume();
  // The answer is whole already; only the connection waits.
  clock.sleep(lingerMs, over.signal).then(end, () => {});
}
