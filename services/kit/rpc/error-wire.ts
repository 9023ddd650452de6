// Turns a refusal into the error that goes over the wire, and a peer's error into a refusal again. So both sides have the same
// reasons.

import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { ErrorReason, errorRow, RefusalError, reasonName, reasonOfName } from "#kit/base/errors.ts";
import { ErrorInfoSchema } from "#proto/google/rpc/error_details_pb.ts";

/** `ErrorInfo.domain` of all refusals of genmesh. */
export const errorDomain = "genmesh";
/** Metadata name that carries the offending field's path. */
const paramKey = "param";

/** A refusal in its form on the wire: gRPC code, text, and ErrorInfo. */
export function toConnectError(refusal: RefusalError): ConnectError {
  const info = create(ErrorInfoSchema, {
    reason: reasonName(refusal.reason),
    domain: errorDomain,
    metadata: {
      ...refusal.metadata,
      ...(refusal.param === undefined ? {} : { [paramKey]: refusal.param }),
    },
  });
  return new ConnectError(
    refusal.message,
    errorRow(refusal.reason).rpc,
    undefined,
    [{ desc: ErrorInfoSchema, value: info }],
    refusal.cause,
  );
}

/**
 * Translates a peer's error. A refusal becomes itself again. Anything else becomes SERVICE_UNAVAILABLE (the peer is away or did not
 * answer in time) or INTERNAL_ERROR. A caller's own cancellation is returned unchanged.
 */
export function fromConnectError(error: unknown): unknown {
  if (error instanceof RefusalError) return error;
  const connect = ConnectError.from(error);
  if (connect.cause instanceof RefusalError) return connect.cause;
  const info = connect.findDetails(ErrorInfoSchema).find((d) => d.domain === errorDomain);
  const reason = info && reasonOfName(info.reason);
  if (info && reason !== undefined) {
    const { [paramKey]: param, ...metadata } = info.metadata;
    return new RefusalError(reason, {
      message: connect.rawMessage,
      metadata,
      ...(param === undefined ? {} : { param }),
      cause: connect.cause,
    });
  }
  if (connect.code === Code.Canceled) return connect;
  const away = connect.code === Code.Unavailable || connect.code === Code.DeadlineExceeded;
  return new RefusalError(
    away ? ErrorReason.SERVICE_UNAVAILABLE : ErrorReason.INTERNAL_ERROR,
    away ? { metadata: { retry_after_ms: "1000" }, cause: error } : { cause: error },
  );
}
