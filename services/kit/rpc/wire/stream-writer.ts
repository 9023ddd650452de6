// Writes the answer of a call that streams, several messages at once where they are ready. `serve-stream.ts` uses it.

import type { ServerResponse } from "node:http";
import type { ConnectError } from "@connectrpc/connect";
import { endStreamToJson } from "@connectrpc/connect/protocol-connect";
import { endFlag, prefixOf } from "./envelope.ts";
import { batchBytes } from "./limits.ts";

/**
 * Writes a stream's answer. Messages that are ready in one turn are written at once. A message waits only for those that are available
 * without waiting.
 */
export class StreamWriter {
  readonly #res: ServerResponse;
  readonly #head: () => string[];
  #parts: Uint8Array[] = [];
  #bytes = 0;
  #isScheduled = false;
  #isFull = false;
  readonly #flush = () => this.flush();

  /** `head` gives the headers, names and values in turn. It is called when the first bytes are written. */
  constructor(res: ServerResponse, head: () => string[]) {
    this.#res = res;
    this.#head = head;
  }

  /** Takes a message. */
  add(payload: Uint8Array): void {
    this.#envelop(0, payload);
    if (this.#bytes >= batchBytes) this.flush();
    else if (!this.#isScheduled) {
      this.#isScheduled = true;
      // Runs after all ready messages were added.
      process.nextTick(this.#flush);
    }
  }

  /** Undefined where more may be added now. Otherwise resolves when the reader has caught up, or has gone. */
  whenRoom(): Promise<void> | undefined {
    if (!this.#isFull) return undefined;
    return new Promise((resolve) => {
      const done = () => {
        this.#isFull = false;
        this.#res.off("drain", done).off("close", done);
        resolve();
      };
      this.#res.on("drain", done).on("close", done);
      if (this.#res.closed || !this.#res.writableNeedDrain) done();
    });
  }

  /** Writes the added messages. */
  flush(): void {
    this.#isScheduled = false;
    if (this.#parts.length === 0 || !this.#isOpen) return;
    this.#writeHead();
    this.#isFull = !this.#res.write(this.#take());
  }

  /** Ends the stream with its trailers, and the error where there is one. */
  end(trailer: Headers, error: ConnectError | undefined): void {
    if (!this.#isOpen) return;
    this.#envelop(endFlag, Buffer.from(JSON.stringify(endStreamToJson(trailer, error, undefined))));
    this.#writeHead();
    this.#res.end(this.#take());
  }

  get #isOpen(): boolean {
    return !this.#res.writableEnded && !this.#res.destroyed;
  }

  #writeHead(): void {
    if (!this.#res.headersSent) this.#res.writeHead(200, this.#head());
  }

  #envelop(flags: number, payload: Uint8Array): void {
    const prefix = prefixOf(flags, payload.length);
    this.#parts.push(prefix, payload);
    this.#bytes += prefix.length + payload.length;
  }

  #take(): Buffer {
    const all = Buffer.concat(this.#parts, this.#bytes);
    this.#parts = [];
    this.#bytes = 0;
    return all;
  }
}
