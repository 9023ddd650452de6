// The client's side of a call with one message as answer: one HTTP request, and the bytes that come back. `unary-reply.ts` reads
// them.

import { joinInTurns } from "#kit/base/in-turns.ts";
import type { PickedPeer } from "../wire-pool.ts";
import type { Call } from "./call.ts";
import { tooLarge } from "./envelope.ts";
import { Exchange, type WireRequest } from "./exchange.ts";
import type { RawHeaders } from "./headers.ts";

/** A whole answer. */
export interface UnaryReply {
  status: number;
  headers: RawHeaders;
  body: Uint8Array;
}

/** A request whose answer is taken as a whole. */
export class UnaryExchange extends Exchange {
  readonly #maxBytes: number;
  readonly #reply = Promise.withResolvers<UnaryReply>();
  readonly #chunks: Buffer[] = [];
  #size = 0;
  #status = 0;
  #headers: RawHeaders = {};

  /** An answer over `maxBytes` fails with ResourceExhausted. */
  constructor(call: Call, maxBytes: number) {
    super(call);
    this.#maxBytes = maxBytes;
  }

  /** Resolves with the answer, of any status. Rejects with a ConnectError. */
  send(peer: PickedPeer, request: WireRequest): Promise<UnaryReply> {
    this.dispatch(peer, request);
    return this.#reply.promise;
  }

  protected head(status: number, headers: RawHeaders): void {
    this.#status = status;
    this.#headers = headers;
    if (Number(headers["content-length"] ?? 0) > this.#maxBytes) {
      this.stop(tooLarge(this.#maxBytes));
    }
  }

  protected data(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#size += chunk.length;
    if (this.#size > this.#maxBytes) this.stop(tooLarge(this.#maxBytes));
  }

  protected ended(): void {
    const chunks = this.#chunks;
    const [first] = chunks;
    const head = { status: this.#status, headers: this.#headers };
    if (first && chunks.length === 1) this.#reply.resolve({ ...head, body: first });
    else this.#reply.resolve(joinInTurns(chunks).then((body) => ({ ...head, body })));
  }

  protected failed(error: unknown): void {
    this.#chunks.length = 0;
    this.#reply.reject(error);
  }
}
