// The client's side of any call, at the level of HTTP: sends the request, and notes whether the peer can have got it.
// `exchange-unary.ts` and `exchange-stream.ts` take the answer.

import { Readable } from "node:stream";
import { Code, ConnectError } from "@connectrpc/connect";
import type { Dispatcher } from "undici";
import type { PickedPeer } from "../wire-pool.ts";
import type { Call } from "./call.ts";
import type { RawHeaders } from "./headers.ts";
import { notStartedHeader } from "./not-started.ts";

/** Each message is written as it comes. */
const chunks = { objectMode: true, highWaterMark: 1 };

/** One HTTP request of a call, without its address. */
export interface WireRequest {
  path: string;
  /** Names and values in turn. */
  headers: string[];
  body: Uint8Array | AsyncIterable<Uint8Array>;
}

/**
 * One request on one connection. Subclasses take the answer. Each of their hooks is called in order, and `failed` at most once and
 * last.
 */
export abstract class Exchange implements Dispatcher.DispatchHandler {
  readonly #call: Call;
  #controller: Dispatcher.DispatchController | undefined;
  #peer: PickedPeer | undefined;
  #isOver = false;
  #bodyError: unknown;
  /** False: nothing of the request can have reached a peer that would carry it out. */
  isSent = false;
  /** True once the answer's head is there. */
  isAnswered = false;

  constructor(call: Call) {
    this.#call = call;
  }

  protected abstract head(status: number, headers: RawHeaders): void;
  protected abstract data(chunk: Buffer): void;
  protected abstract ended(): void;
  protected abstract failed(error: unknown): void;

  /** Sends the request. An abort of the call closes the connection, so that the peer notices. */
  protected dispatch(peer: PickedPeer, request: WireRequest): void {
    this.#peer = peer;
    const { body } = request;
    peer.dispatcher.dispatch(
      {
        origin: peer.origin,
        path: request.path,
        method: "POST",
        headers: request.headers,
        body: body instanceof Uint8Array ? body : Readable.from(this.#noting(body), chunks),
      },
      this,
    );
    this.#call.onAbort(() => this.stop(this.#call.errorOf(undefined)));
  }

  /** Gives up: closes the connection now. */
  protected stop(error: ConnectError): void {
    if (this.#isOver) return;
    this.#over(this.#call.isLate && !this.isAnswered ? "failed" : "ok");
    this.#controller?.abort(error);
    this.failed(error);
  }

  protected pause(): void {
    this.#controller?.pause();
  }

  protected resume(): void {
    this.#controller?.resume();
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    // The call was given up while it waited for a connection.
    if (this.#isOver) controller.abort(new Error("given up"));
    else this.isSent = true;
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: RawHeaders,
  ): void {
    // 1xx: the real head is still to come.
    if (status < 200 || this.#isOver) return;
    if (status === 503 && headers[notStartedHeader] !== undefined) {
      this.#notTaken();
      return;
    }
    this.isAnswered = true;
    if (headers.connection === "close") this.#peer?.going();
    this.head(status, headers);
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (!this.#isOver) this.data(chunk);
  }

  onResponseEnd(): void {
    if (this.#isOver) return;
    this.#over("ok");
    this.ended();
  }

  onResponseError(_controller: Dispatcher.DispatchController, cause: Error): void {
    if (this.#isOver) return;
    if (this.#bodyError !== undefined) {
      this.#over("ok");
      this.failed(ConnectError.from(this.#bodyError));
      return;
    }
    this.#over(this.isSent ? "failed" : "unreachable");
    this.failed(this.#errorOf(cause));
  }

  /** An error of the code that sends messages is the call's error, not the connection's. */
  async *#noting(body: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
    try {
      yield* body;
    } catch (error) {
      this.#bodyError = error;
      throw error;
    }
  }

  /** The peer has not started yet, which counts as not sent. */
  #notTaken(): void {
    this.isSent = false;
    this.#over("unreachable");
    const error = new ConnectError("the peer has not started yet", Code.Unavailable);
    this.#controller?.abort(error);
    this.failed(error);
  }

  #over(outcome: "ok" | "failed" | "unreachable"): void {
    this.#isOver = true;
    this.#peer?.done(outcome);
  }

  #errorOf(cause: Error): ConnectError {
    if ((cause as NodeJS.ErrnoException).code === "UND_ERR_INVALID_ARG") {
      return new ConnectError(cause.message, Code.Internal, undefined, undefined, cause);
    }
    const text = this.isSent ? "the connection to the peer broke" : "the peer cannot be reached";
    return new ConnectError(text, Code.Unavailable, undefined, undefined, cause);
  }
}
