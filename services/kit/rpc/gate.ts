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

/** Says by a call's `authorization` whether it may be read at all. */
export type IsCaller = (authorization: string | undefined) => boolean;

/** The one service whose calls bring no token. */
const openService = "grpc.health.v1.Health";

/** Bytes of a message to the open service: it is a name. */
export const maxOpenMessageBytes = 4_096;

/** Is this the service that takes calls without a token? */
export function isOpenService(typeName: string): boolean {
  return typeName === openService;
}

/** The same by a call's path, `/service/method`. */
export function isOpenPath(path: string): boolean {
  return path.startsWith(`/${openService}/`);
}

/** An answer that needs nothing of the request but its head. */
export interface EarlyAnswer {
  status: number;
  headers: Record<string, string>;
  body: Uint8Array;
}

/**
 * What a call without a token gets before any of its body is read: a message may be 72 MiB, and any process that reaches the port
 * could have that many bytes kept for each call. In the protocol that its content type names: gRPC and gRPC-Web by
 * headers alone, a Connect stream by its last envelope, else a Connect error.
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
