// Decides which part of a service's errors leaves the process, and which part the log gets.

import {
  Code,
  ConnectError,
  type Interceptor,
  type StreamRequest,
  type UnaryRequest,
} from "@connectrpc/connect";
import { ErrorReason, isRefusal, RefusalError } from "#kit/base/errors.ts";
import type { Ids } from "#kit/base/ids.ts";
import type { Logger } from "#kit/base/logger.ts";
import type { Pushed } from "#kit/stream/push-stream.ts";
import { staged } from "#kit/stream/stages.ts";
import { causesOf } from "#kit/telemetry/causes.ts";
import { toConnectError } from "./error-wire.ts";
import { requestIdHeader } from "./principal.ts";

/**
 * For the server's side. Refusals leave as ErrorInfo. Unknown errors leave as INTERNAL_ERROR with an incident id and no text. This
 * holds both before the first message and between messages.
 */
export function serverErrorInterceptor(deps: { log: Logger; ids: Ids }): Interceptor {
  return (next) => async (req) => {
    const map = (error: unknown) => {
      if (error instanceof ConnectError && !(error.cause instanceof RefusalError)) return error;
      const refusal = error instanceof ConnectError ? error.cause : error;
      if (isRefusal(refusal)) {
        if (refusal.reason === ErrorReason.SERVICE_UNAVAILABLE)
          tellUnavailable(deps.log, req, refusal);
        return toConnectError(refusal);
      }
      if (req.signal.aborted) return ConnectError.from(req.signal.reason, Code.Canceled);
      const incident = deps.ids.make("incident", 12);
      const requestId = req.header.get(requestIdHeader) ?? undefined;
      deps.log.error({ err: error, incident, requestId, rpc: req.method.name }, "unexpected error");
      return toConnectError(
        new RefusalError(ErrorReason.INTERNAL_ERROR, { metadata: { incident } }),
      );
    };
    try {
      const res = await next(req);
      return res.stream ? { ...res, message: mapErrors(res.message, map, req.signal) } : res;
    } catch (error) {
      throw map(error);
    }
  };
}

/** Names the store or peer behind a 503 in the log, for an operator who looks for the cause. */
function tellUnavailable(
  log: Logger,
  req: UnaryRequest | StreamRequest,
  refusal: RefusalError,
): void {
  const requestId = req.header.get(requestIdHeader) ?? undefined;
  log.info({ requestId, rpc: req.method.name, cause: causesOf(refusal) }, "service unavailable");
}

/**
 * `source` with its errors mapped. Leaving early leaves the source too. A source that ends because `signal` aborted counts as failed,
 * even where it ends without an error: a passed deadline is an error for both sides.
 */
export function mapErrors<T>(
  source: AsyncIterable<T>,
  map: (error: unknown) => unknown,
  signal?: AbortSignal,
): Pushed<T> {
  return staged(source, {
    end() {
      if (signal?.aborted) throw map(signal.reason);
    },
    fail: map,
  });
}
