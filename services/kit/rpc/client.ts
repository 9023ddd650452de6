// Makes the client of a service, with streams that cost less than those of Connect's own client.

import type { DescMethodServerStreaming, DescService, MessageInitShape } from "@bufbuild/protobuf";
import {
  type AnyClient,
  type CallOptions,
  type Client,
  createClient,
  makeAnyClient,
  type Transport,
} from "@connectrpc/connect";
import { later } from "#kit/stream/push-stream.ts";
import { staged } from "#kit/stream/stages.ts";

/**
 * A connect-es client whose server streams hand over the transport's messages directly. Connect's own client passes every message
 * through a generator that was compiled for engines without generators. That makes a dozen promises for each message, more than the
 * rest of a delta's way costs. Leaving a stream early ends its call, which Connect's client does not do.
 */
export function createRpcClient<D extends DescService>(
  service: D,
  transport: Transport,
): Client<D> {
  const theirs: AnyClient = createClient(service, transport);
  const ours = makeAnyClient(service, (method) =>
    method.methodKind === "server_streaming"
      ? streamOf(transport, method)
      : (theirs[method.localName] ?? null),
  );
  return ours as Client<D>;
}

function streamOf<M extends DescMethodServerStreaming>(transport: Transport, method: M) {
  return (input: MessageInitShape<M["input"]>, options: CallOptions = {}) => {
    const { signal, timeoutMs, headers, contextValues, onHeader, onTrailer } = options;
    const inputs = only(input);
    const response = transport.stream(method, signal, timeoutMs, headers, inputs, contextValues);
    const messages = response.then(({ header, trailer, message }) => {
      onHeader?.(header);
      return onTrailer ? staged(message, { end: () => onTrailer(trailer) }) : message;
    });
    return later(() => messages);
  };
}

async function* only<T>(value: T): AsyncIterable<T> {
  yield value;
}
