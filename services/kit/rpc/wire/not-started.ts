// Answers calls that reach a process before its methods are there, so that callers may send them to another one.

import type { IncomingMessage, ServerResponse } from "node:http";

/**
 * Marks an answer of a process that listens for probes but has no methods yet. Nothing of the call was done, so any call may be sent to
 * another address. Callers that do not know the header see 503, which is Unavailable.
 */
export const notStartedHeader = "genmesh-not-started";

/** Answers a call with that header. */
export function refuseNotStarted(_request: IncomingMessage, response: ServerResponse): void {
  response.writeHead(503, { [notStartedHeader]: "1", connection: "close" }).end();
}
