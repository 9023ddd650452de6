import type { IncomingMessage, ServerResponse } from "node:http";

/**
 * Marks an answer of a process that listens, for probes, but has no methods yet: nothing of the call was done, so that any
 * call may go to another address. Callers that do not know it see 503, which is Unavailable.
 */
export const notStartedHeader = "genmesh-not-started";

/** Answers a call so. */
export function refuseNotStarted(_request: IncomingMessage, response: ServerResponse): void {
  response.writeHead(503, { [notStartedHeader]: "1", connection: "close" }).end();
}
