import type { DescMethodServerStreaming, DescService, MessageInitShape } from "@bufbuild/protobuf";
import {
  type AnyClient,
  type CallOptions,
  type Client,
  createClient,
  makeAnyClient,
  type Transport,
} from "@connectrpc/connect";

/**
 * A connect-es client whose server streams hand over what the transport gives. Connect's own pass every message through
 * a generator that was compiled for engines without any: a dozen promises for each, more than all else that a delta costs
 * on its way. As with Connect's, leaving a stream early does not end its call; aborting its signal does.
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
    const { signal, timeoutMs, headers, contextValues } = options;
    const inputs = only(input);
    const response = transport.stream(method, signal, timeoutMs, headers, inputs, contextValues);
    return new Answers(response, options);
  };
}

async function* only<T>(value: T): AsyncIterable<T> {
  yield value;
}

type Response<T> = { header: Headers; trailer: Headers; message: AsyncIterable<T> };

/** The messages of one call; to be read once. */
class Answers<T> implements AsyncIterableIterator<T> {
  readonly #messages: Promise<AsyncIterator<T>>;
  /** Set when the call has begun: from then on a message costs nothing here. */
  #begun: AsyncIterator<T> | undefined;

  constructor(response: Promise<Response<T>>, options: CallOptions) {
    this.#messages = response.then((answer) => {
      options.onHeader?.(answer.header);
      const { onTrailer } = options;
      const messages = onTrailer
        ? followedBy(answer.message, () => onTrailer(answer.trailer))
        : answer.message;
      this.#begun = messages[Symbol.asyncIterator]();
      return this.#begun;
    });
  }

  next(): Promise<IteratorResult<T>> {
    return this.#begun?.next() ?? this.#messages.then((messages) => messages.next());
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}

async function* followedBy<T>(source: AsyncIterable<T>, last: () => void): AsyncIterable<T> {
  yield* source;
  last();
}
