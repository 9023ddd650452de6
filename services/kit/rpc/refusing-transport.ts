// Turns errors of calls into the refusals of this project, so that callers in other processes see those that the service
// meant.

import type { Transport } from "@connectrpc/connect";
import { fromConnectError } from "./error-wire.ts";
import { mapErrors } from "./interceptors.ts";

/**
 * A transport whose calls reject with RefusalError, unary and mid-stream. It wraps a transport and is no interceptor, because connect
 * wraps each error of an interceptor in a ConnectError again.
 */
export function refusingTransport(inner: Transport): Transport {
  return {
    unary: (...call) =>
      inner.unary(...call).catch((error: unknown) => {
        throw fromConnectError(error);
      }),
    async stream(...call) {
      try {
        const response = await inner.stream(...call);
        return { ...response, message: mapErrors(response.message, fromConnectError) };
      } catch (error) {
        throw fromConnectError(error);
      }
    },
  };
}
