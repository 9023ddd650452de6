// Begins a call on the server's side by the head of its request, and says which errors its caller may see. All served calls share
// it.

import type { IncomingMessage, ServerResponse } from "node:http";
import { Code, ConnectError } from "@connectrpc/connect";
import { mergeNonProtocolHeaders } from "@connectrpc/connect/protocol";
import { parseTimeout } from "@connectrpc/connect/protocol-connect";
import { Call } from "./call.ts";
import { headersOf } from "./headers.ts";
import { type ServedContext, servedContext } from "./invoke.ts";
import { goneError } from "./request-body.ts";
import type { Route } from "./routes.ts";

/** A call on the server's side. */
export interface ServedCall {
  call: Call;
  context: ServedContext;
  /** The fault in its protocol headers. It is answered, and the call is not served. */
  fault: ConnectError | undefined;
}

/** Begins a call: its deadline is the request's, and it is aborted when the caller leaves. */
export function servedCall(route: Route, req: IncomingMessage, res: ServerResponse): ServedCall {
  const { headers } = req;
  const sent = headers["connect-timeout-ms"];
  const timeout = parseTimeout(typeof sent === "string" ? sent : null, Number.POSITIVE_INFINITY);
  const call = new Call({ timeoutMs: timeout.timeoutMs });
  res.once("close", () => {
    if (res.writableFinished) call.end();
    else call.abort(goneError());
  });
  const context = servedContext({
    method: route.spec.method,
    protocolName: "connect",
    url: `http://${headers.host ?? "localhost"}${req.url}`,
    call,
    requestHeader: () => headersOf(headers),
  });
  const encoding = headers[route.isStream ? "connect-content-encoding" : "content-encoding"];
  return { call, context, fault: timeout.error ?? encodingFault(encoding) };
}

function encodingFault(encoding: string | string[] | undefined): ConnectError | undefined {
  if (encoding === undefined || String(encoding).toLowerCase() === "identity") return undefined;
  return new ConnectError(
    `unknown compression "${encoding}": none is supported`,
    Code.Unimplemented,
  );
}

/** The error that the caller gets: nothing of an error that was not meant for it. */
export function outwardError(error: unknown): ConnectError {
  if (error instanceof ConnectError) return error;
  return new ConnectError("internal error", Code.Internal, undefined, undefined, error);
}

/** The metadata of an error that was made here. Metadata from another server is not passed on. */
export function metadataOf(error: ConnectError): Headers {
  const metadata = new Headers();
  const isRelayed = (error as { isWireError?: boolean }).isWireError === true;
  if (!isRelayed) mergeNonProtocolHeaders(metadata, error.metadata);
  return metadata;
}
