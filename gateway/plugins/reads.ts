import type { FastifyInstance } from "fastify";
import { turn } from "#kit/base/in-turns.ts";
import type { FairShare, Turn } from "#kit/share/fair-share.ts";
import type { Edge } from "../context.ts";
import { callerOf, endWithAnswer, leavingSignal } from "../request.ts";

/**
 * Lists and reports look through as much as their account has, and cost their caller nothing: accounts take turns at them, and
 * each read is a turn of the event loop of its own.
 */
export function sharedReads(app: FastifyInstance, edge: Edge): void {
  app.addHook("preHandler", async (request, reply) => {
    if (request.routeOptions.config.reads !== true) return;
    const { accountId } = callerOf(request).principal;
    const taken = await takeTurn(edge.reads, accountId, leavingSignal(reply));
    reply.readTurn = taken;
    endWithAnswer(reply, taken);
  });
  // An answer that is written holds no other request up, however slowly its caller takes it.
  app.addHook("onSend", async (_request, reply) => reply.readTurn?.[Symbol.dispose]());
}

/** Waits for a turn at the reads of an account. Refuses as a {@link FairShare} does. */
export async function takeTurn(
  reads: FairShare,
  accountId: string,
  signal: AbortSignal,
): Promise<Turn> {
  const taken = await reads.take(accountId, signal);
  await turn();
  return taken;
}
