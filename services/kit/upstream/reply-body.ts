import type { Dispatcher } from "undici";
import { BackPressure } from "./back-pressure.ts";
import type { HttpBody } from "./client.ts";
import { UpstreamError } from "./errors.ts";
import { httpLimits } from "./limits.ts";

/** An answer's body between the socket and its reader, with at most `unreadBytes` (and one chunk) in it. */
export class ReplyBody implements HttpBody {
  readonly #controller: Dispatcher.DispatchController;
  readonly #stop: () => void;
  #unread: Buffer[] = [];
  #unreadBytes = 0;
  #isEnded = false;
  #error: { reason: unknown } | undefined;
  #waiter: (() => void) | undefined;
  readonly #pressure = new BackPressure();
  /** Runs a moment after the first chunk of a read has come: what came along with it is there by then. */
  readonly #read = (): Buffer | undefined => {
    if (this.#unread.length > 0) return this.#take();
    if (this.#error) throw this.#error.reason;
    return undefined;
  };
  /** Set once nothing more is wanted: bytes that may still be thrown away. */
  #trailing: { leftBytes: number; timer: NodeJS.Timeout } | undefined;

  /** `stop` closes the connection. */
  constructor(controller: Dispatcher.DispatchController, stop: () => void) {
    this.#controller = controller;
    this.#stop = stop;
  }

  /** From the socket. */
  push(chunk: Buffer): void {
    if (this.#trailing) {
      this.#trailing.leftBytes -= chunk.length;
      if (this.#trailing.leftBytes < 0) this.#stop();
      return;
    }
    this.#unread.push(chunk);
    this.#unreadBytes += chunk.length;
    if (this.#unreadBytes >= httpLimits.unreadBytes) {
      this.#controller.pause();
      this.#pressure.began();
    }
    this.#wake();
  }

  /** Nothing more will come: the end, or what went wrong. */
  finish(reason: unknown): void {
    if (this.#trailing) clearTimeout(this.#trailing.timer);
    if (this.#isEnded || this.#error) return;
    if (reason === undefined) this.#isEnded = true;
    else {
      this.#error = { reason };
      // What came before a failure may still be read; after an abort nobody wants it.
      if (!(reason instanceof UpstreamError)) this.#unread = [];
    }
    this.#wake();
  }

  next(): Promise<Buffer | undefined> {
    return new Promise<void>((resolve) => {
      if (this.#unread.length > 0 || this.#error || this.#isEnded) {
        resolve();
        return;
      }
      this.#waiter = resolve;
      this.#pressure.waits();
    }).then(this.#read);
  }

  async whole(maxBytes: number): Promise<Buffer> {
    const chunks: Buffer[] = [];
    let bytes = 0;
    for (let chunk = await this.next(); chunk; chunk = await this.next()) {
      bytes += chunk.length;
      if (bytes > maxBytes) {
        this.#stop();
        throw new UpstreamError("too_large");
      }
      chunks.push(chunk);
    }
    return chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks, bytes);
  }

  isHeldBack(): boolean {
    return this.#pressure.isHeldBack();
  }

  /** Milliseconds in which the socket was not read, because the reader had not taken what lay here. */
  pausedMs(): number {
    return this.#pressure.pausedMs();
  }

  close(): void {
    if (!this.#isEnded && !this.#error) this.#stop();
  }

  release(): void {
    if (this.#isEnded || this.#error || this.#trailing) return;
    const timer = setTimeout(this.#stop, httpLimits.trailingMs);
    this.#trailing = { leftBytes: httpLimits.trailingBytes - this.#unreadBytes, timer };
    if (this.#trailing.leftBytes < 0) this.#stop();
    else this.#take();
  }

  /** All unread bytes; lets the socket be read again. */
  #take(): Buffer {
    const unread = this.#unread;
    this.#unread = [];
    this.#unreadBytes = 0;
    this.#pressure.ended();
    if (this.#controller.paused) this.#controller.resume();
    return unread.length === 1 && unread[0] ? unread[0] : Buffer.concat(unread);
  }

  #wake(): void {
    const waiter = this.#waiter;
    if (!waiter) return;
    this.#waiter = undefined;
    this.#pressure.came();
    waiter();
  }
}
