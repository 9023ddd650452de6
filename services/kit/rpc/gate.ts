// Refuses a call that brings no valid token before its body is read, in the protocol of the call. All ports for internal calls
// use it. `access.ts` judges the tokens.

import {
  codeToHttpStatus,
  contentTypeUnaryJson,
  endStreamToJson,
  errorToJsonBytes,
  parseContentType,
} from "@connectrpc/connect/protocol-connect";
import { setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import { ErrorReason, RefusalError } from "#kit/base/errors.ts";
import { toConnectError } from "./error-wire.ts";
import { endFlag, prefixOf } from "./wire/envelope.ts";

/** Decides by a call's `authorization` whether the call may be read at all. */
export type IsCaller = (authorization: string | undefined) => boolean;

/** The one service whose calls bring no token. */
const openService = "grpc.health.v1.Health";

/** Bytes of a message to the open service. Such a message is a name. */
export const maxOpenMessageBytes = 4_096;

/** Is this the service that takes calls without a token? */
export function isOpenService(typeName: string): boolean {
  return typeName === openService;
}

/** Is this path, `/service/method`, one of the open service? */
export function isOpenPath(path: string): boolean {
  return path.startsWith(`/${openService}/`);
}

/** An answer that needs only the head of the request. */
export interface EarlyAnswer {
  status: number;
  headers: Record<string, string>;
  body: Uint8Array;
}

/**
 * The answer to a call without a token, given before any of its body is read. A message may be 72 MiB. Any process that reaches the
 * port could have that many bytes kept for each call. The answer is in the protocol of the call's content type. gRPC and gRPC-Web get
 * headers alone, a Connect stream its last envelope, other calls a Connect error.
 */
export function refusalBeforeBody(contentType: string | undefined): EarlyAnswer {
  const error = toConnectError(new RefusalError(ErrorReason.CALLER_UNAUTHENTICATED));
  if (contentType?.startsWith("application/grpc")) {
    const status = setTrailerStatus(new Headers(), error);
    const headers = { "content-type": contentType, ...Object.fromEntries(status) };
    return { status: 200, headers, body: new Uint8Array() };
  }
  if (contentType !== undefined && parseContentType(contentType)?.stream) {
    const end = Buffer.from(JSON.stringify(endStreamToJson(new Headers(), error, undefined)));
    const body = Buffer.concat([prefixOf(endFlag, end.length), end]);
    return { status: 200, headers: { "content-type": contentType }, body };
  }
  return {
    status: codeToHttpStatus(error.code),
    headers: { "content-type": contentTypeUnaryJson },
    body: errorToJsonBytes(error, undefined),
  };
}
