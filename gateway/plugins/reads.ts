// Has the lists and reports of an account take turns, because each blocks the event loop for a moment and costs its caller
// nothing.

import type { FastifyInstance, onSendAsyncHookHandler, preHandlerAsyncHookHandler } from "fastify";
import { turn } from "#kit/base/in-turns.ts";
import type { StopSignal } from "#kit/base/stop.ts";
import type { FairShare, Turn } from "#kit/share/fair-share.ts";
import type { Edge } from "../context.ts";
import { callerOf, endWithAnswer, leavingSignal } from "../request.ts";

/**
 * Lists and reports search all data of an account, and cost their caller nothing. So accounts take turns at them, and each read has a
 * separate turn of the event loop.
 */
export function sharedReads(app: FastifyInstance, edge: Edge): void {
  const begin: preHandlerAsyncHookHandler = async (request, reply) => {
    const { accountId } = callerOf(request).principal;
    const taken = await takeTurn(edge.reads, accountId, leavingSignal(reply));
    reply.readTurn = taken;
    endWithAnswer(reply, taken);
  };
  // An answer that is being written delays no other request, even where its caller reads slowly.
  const end: onSendAsyncHookHandler = async (_request, reply) => reply.readTurn?.[Symbol.dispose]();
  app.addHook("onRoute", (route) => {
    if (route.config?.reads !== true) return;
    route.preHandler = begin;
    // The framework gives HEAD a hook of its own.
    route.onSend = [end, ...[route.onSend ?? []].flat()];
  });
}

/** Waits for a turn at the reads of an account. Refuses as a {@link FairShare} does. */
export async function takeTurn(
  reads: FairShare,
  accountId: string,
  signal: StopSignal,
): Promise<Turn> {
  const taken = await reads.take(accountId, signal);
  await turn();
  return taken;
}
