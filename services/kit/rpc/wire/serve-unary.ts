// The server's side of a call with one message each way. `serve-stream.ts` serves those that stream.

import type { IncomingMessage, ServerResponse } from "node:http";
import { codeToHttpStatus, errorToJsonBytes } from "@connectrpc/connect/protocol-connect";
import { appendTo, trailerPrefix } from "./headers.ts";
import { invokeUnary, type ServedContext } from "./invoke.ts";
import { readBody } from "./request-body.ts";
import type { Route } from "./routes.ts";
import { metadataOf, outwardError, servedCall } from "./served-call.ts";

/** Serves one unary call. Rejects only where no answer could be written. */
export async function serveUnary(
  route: Route,
  req: IncomingMessage,
  res: ServerResponse,
  isBinary: boolean,
): Promise<void> {
  const { call, context, fault } = servedCall(route, req, res);
  try {
    if (fault) throw fault;
    const input = route.read(await call.race(readBody(req, route.maxBytes)), isBinary);
    // The caller gets its answer at the deadline, though the handler may still be finishing.
    const output = await call.race(invokeUnary(route.spec, context, input, route.interceptors));
    const body = route.write(output, isBinary);
    answer(res, context, { status: 200, type: isBinary ? "application/proto" : json, body });
  } catch (error) {
    const meant = outwardError(call.isAborted ? call.errorOf(error) : error);
    const status = codeToHttpStatus(meant.code);
    const body = errorToJsonBytes(meant, undefined);
    answer(res, context, { status, type: json, body, metadata: metadataOf(meant) });
  } finally {
    call.end();
  }
}

const json = "application/json";

interface Answer {
  status: number;
  type: string;
  body: Uint8Array;
  metadata?: Headers;
}

function answer(res: ServerResponse, context: ServedContext, parts: Answer): void {
  if (res.destroyed) return;
  const { body } = parts;
  const headers = ["content-type", parts.type, "content-length", String(body.length)];
  appendTo(headers, context.setHeader);
  appendTo(headers, parts.metadata);
  appendTo(headers, context.setTrailer, trailerPrefix);
  res.writeHead(parts.status, headers);
  res.end(body);
}
