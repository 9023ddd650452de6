// The server's side of a call that streams. `serve-unary.ts` serves calls with one message each way.

import type { IncomingMessage, ServerResponse } from "node:http";
import { consume } from "#kit/stream/push-stream.ts";
import { appendTo } from "./headers.ts";
import { invokeStream } from "./invoke.ts";
import { readMessages } from "./request-body.ts";
import type { Route } from "./routes.ts";
import { outwardError, servedCall } from "./served-call.ts";
import { StreamWriter } from "./stream-writer.ts";

/** Serves one streaming call of any kind. Rejects only where no answer could be written. */
export async function serveStream(
  route: Route,
  req: IncomingMessage,
  res: ServerResponse,
  isBinary: boolean,
): Promise<void> {
  const { call, context, fault } = servedCall(route, req, res);
  const type = isBinary ? "application/connect+proto" : "application/connect+json";
  const writer = new StreamWriter(res, () => appendTo(["content-type", type], context.setHeader));
  const fail = (error: unknown) => writer.end(new Headers(context.setTrailer), outwardError(error));
  // The caller gets its answer at the deadline, though the handler may still be finishing.
  call.onAbort(() => fail(call.errorOf(undefined)));
  const input = readMessages(req, route.maxBytes, (bytes) => route.read(bytes, isBinary));
  call.onAbort(() => input.fail(call.errorOf(undefined)));
  try {
    if (fault) throw fault;
    const output = await invokeStream(route.spec, context, input, route.interceptors);
    await consume(output, (message) => {
      if (call.isAborted) return false;
      writer.add(route.write(message, isBinary));
      return writer.whenRoom() ?? true;
    });
    if (!call.isAborted) writer.end(context.setTrailer ?? new Headers(), undefined);
  } catch (error) {
    fail(error);
  } finally {
    call.end();
    // Requests that the handler left unread must not block the connection's next request.
    void input.return();
    req.resume();
  }
}
