// Says what a rule of arriving requests is, and runs several in order without a promise where none waits.

import type { FastifyReply, FastifyRequest, onRequestHookHandler } from "fastify";

/**
 * A step for each request, before its body is read. It throws to refuse the request. It gives a promise where it must wait, and true
 * where it has answered.
 */
export type Rule = (
  request: FastifyRequest,
  reply: FastifyReply,
) => undefined | true | Promise<undefined>;

/** One hook that applies rules in their order. No promise is made where none of them waits. */
export function inOrder(rules: readonly Rule[]): onRequestHookHandler {
  return applyFrom.bind(undefined, rules, 0);
}

function applyFrom(
  rules: readonly Rule[],
  first: number,
  request: FastifyRequest,
  reply: FastifyReply,
  done: (error?: Error) => void,
): void {
  try {
    for (let at = first; at < rules.length; at++) {
      const told = rules[at]?.(request, reply);
      if (told === true) return;
      if (told) {
        told.then(() => applyFrom(rules, at + 1, request, reply, done), done);
        return;
      }
    }
  } catch (error) {
    done(error as Error);
    return;
  }
  done();
}
