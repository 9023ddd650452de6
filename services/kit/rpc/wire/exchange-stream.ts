// The client's side of a call with a stream as answer: one HTTP request, and the messages that come back.

import { Code, ConnectError } from "@connectrpc/connect";
import { endStreamFromJson, validateResponse } from "@connectrpc/connect/protocol-connect";
import type { PickedPeer } from "../wire-pool.ts";
import type { Call } from "./call.ts";
import { type Envelope, EnvelopeParser } from "./envelope.ts";
import { Exchange, type WireRequest } from "./exchange.ts";
import { headersOf, type RawHeaders } from "./headers.ts";
import { Inbox } from "./inbox.ts";

/** An answer that is a stream. */
export interface StreamReply<T> {
  header: Headers;
  /** Empty until the last message was read. */
  trailer: Headers;
  /** Leaving early closes the connection. */
  messages: AsyncIterableIterator<T>;
}

/** A request whose answer is a stream of messages. */
export class StreamExchange<T> extends Exchange {
  readonly #reply = Promise.withResolvers<StreamReply<T>>();
  readonly #inbox: Inbox<T>;
  readonly #parser: EnvelopeParser;
  readonly #trailer = new Headers();
  #header = new Headers();
  #isEndSeen = false;
  #refused: unknown;

  constructor(call: Call, maxBytes: number, parse: (payload: Uint8Array) => T) {
    super(call);
    const source = {
      pause: () => this.pause(),
      resume: () => this.resume(),
      leave: () => this.stop(new ConnectError("the reader has left", Code.Canceled)),
    };
    this.#inbox = new Inbox(source, parse);
    this.#parser = new EnvelopeParser(maxBytes, (envelope) => this.#take(envelope));
    // A failure after the head has no other reader than the inbox.
    call.onAbort(() => this.#inbox.fail(call.errorOf(undefined)));
  }

  /** Resolves with the answer's head. Rejects with a ConnectError. */
  send(peer: PickedPeer, request: WireRequest): Promise<StreamReply<T>> {
    this.dispatch(peer, request);
    return this.#reply.promise;
  }

  protected head(status: number, headers: RawHeaders): void {
    this.#header = headersOf(headers);
    try {
      refuseCompressed(this.#header);
      validateResponse("server_streaming", true, status, this.#header);
    } catch (error) {
      // Its body is read to the end, so that the connection can be used again.
      this.#refused = error;
      this.#reply.reject(error);
      return;
    }
    this.#reply.resolve({ header: this.#header, trailer: this.#trailer, messages: this.#inbox });
  }

  protected data(chunk: Buffer): void {
    if (this.#refused || this.#isEndSeen) return;
    try {
      this.#parser.push(chunk);
    } catch (error) {
      this.stop(ConnectError.from(error, Code.Internal));
    }
  }

  protected ended(): void {
    if (this.#isEndSeen) return;
    const text = this.#parser.isInside
      ? "a message was cut off"
      : "the end of the stream is missing";
    this.failed(new ConnectError(`protocol error: ${text}`, Code.Internal));
  }

  protected failed(error: unknown): void {
    this.#reply.reject(error);
    this.#inbox.finish(error);
  }

  #take({ isEnd, payload }: Envelope): void {
    if (!isEnd) {
      this.#inbox.push(payload);
      return;
    }
    this.#isEndSeen = true;
    const { metadata, error } = endStreamFromJson(payload);
    for (const [name, value] of metadata) this.#trailer.append(name, value);
    if (error) for (const [name, value] of this.#header) error.metadata.append(name, value);
    this.#inbox.finish(error);
  }
}

function refuseCompressed(header: Headers): void {
  const encoding = header.get("connect-content-encoding") ?? "identity";
  if (encoding.toLowerCase() === "identity") return;
  throw new ConnectError(`unsupported response encoding "${encoding}"`, Code.Internal);
}
