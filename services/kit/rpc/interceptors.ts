import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import { ErrorReason, isRefusal, RefusalError } from "../errors.ts";
import type { Ids } from "../ids.ts";
import type { Logger } from "../logger.ts";
import { toConnectError } from "./error-wire.ts";
import { requestIdHeader } from "./principal.ts";

/**
 * Server side: refusals leave as ErrorInfo, unknown errors as INTERNAL_ERROR with an incident id and no text, before
 * the first message and between messages alike.
 */
export function serverErrorInterceptor(deps: { log: Logger; ids: Ids }): Interceptor {
  return (next) => async (req) => {
    const map = (error: unknown) => {
      if (error instanceof ConnectError && !(error.cause instanceof RefusalError)) return error;
      const refusal = error instanceof ConnectError ? error.cause : error;
      if (isRefusal(refusal)) return toConnectError(refusal);
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

/**
 * `source` with its errors mapped; leaving early leaves the source too. A source that ends because `signal` aborted has not
 * ended well, whatever it says: a deadline that passed is an error to both sides.
 */
export function mapErrors<T>(
  source: AsyncIterable<T>,
  map: (error: unknown) => unknown,
  signal?: AbortSignal,
): AsyncIterable<T> {
  const pass = (result: IteratorResult<T>) => {
    if (result.done && signal?.aborted) throw map(signal.reason);
    return result;
  };
  const fail = (error: unknown): never => {
    throw map(error);
  };
  // By hand: every delta passes here, and a generator takes several turns of the microtask queue for each.
  return {
    [Symbol.asyncIterator]() {
      const it = source[Symbol.asyncIterator]();
      return {
        next: () => it.next().then(pass, fail),
        return: async (value) => {
          await it.return?.(value);
          return { done: true, value };
        },
      };
    },
  };
}
