// Holds the body of an upstream's answer between the socket and its reader, and knows whether a slow reader held the upstream
// back.

import { AsyncResource } from "node:async_hooks";
import type { Dispatcher } from "undici";
import type { Awaitable } from "#kit/base/awaitable.ts";
import { type Flow, type Pushed, pushed, type Sink } from "#kit/stream/push-stream.ts";
import type { BodyRoom, HttpBody } from "./client.ts";
import { UpstreamError } from "./errors.ts";
import { httpLimits } from "./limits.ts";
import { wholeBodyOf } from "./whole-body.ts";

/**
 * An answer's body between the socket and its reader, pushed on in the turn in which it came. While the reader is full, at most
 * `unreadBytes` (and one chunk) wait in it. Then the socket is paused.
 */
export class ReplyBody implements HttpBody, Flow {
  readonly #controller: Dispatcher.DispatchController;
  readonly #stop: () => void;
  #chunks: Pushed<Buffer> | undefined;
  #unread: Buffer[] = [];
  #unreadBytes = 0;
  #isEnded = false;
  #error: { reason: unknown } | undefined;
  #sink: Sink<Buffer> | undefined;
  #pulled: AsyncIterator<Buffer> | undefined;
  /** The reader takes more. */
  #isWanted = false;
  /** The reader resumed during a push: it left in that moment, and another reader goes on. */
  #isAskedAgain = false;
  /** The reader has taken everything that came. */
  #isAwaited = false;
  readonly #pressure = new BackPressure();
  /** Gives the bytes of one read of the socket at once, in the context of the reader. The socket's context may be another request's. */
  #giveInContext = () => this.#give();
  /** Set once the reader wants nothing further: bytes that may still come and are thrown away. */
  #trailing: { leftBytes: number; timer: NodeJS.Timeout } | undefined;

  /** `stop` closes the connection. */
  constructor(controller: Dispatcher.DispatchController, stop: () => void) {
    this.#controller = controller;
    this.#stop = stop;
  }

  get chunks(): Pushed<Buffer> {
    this.#chunks ??= pushed((sink: Sink<Buffer>) => this.#begin(sink));
    return this.#chunks;
  }

  /** Takes bytes from the socket. */
  came(chunk: Buffer): void {
    if (this.#trailing) {
      this.#trailing.leftBytes -= chunk.length;
      if (this.#trailing.leftBytes < 0) this.#stop();
      return;
    }
    if (!this.#isAwaited) this.#pressure.lies();
    // A list that is made with its only chunk takes no room for others.
    if (this.#unread.length === 0) this.#unread = [chunk];
    else this.#unread.push(chunk);
    this.#unreadBytes += chunk.length;
    if (this.#unreadBytes >= httpLimits.unreadBytes) {
      this.#controller.pause();
      this.#pressure.began();
    }
    this.#wake();
  }

  /** No further bytes will come: the end, or the error. */
  finish(reason: unknown): void {
    if (this.#trailing) clearTimeout(this.#trailing.timer);
    if (this.#isEnded || this.#error) return;
    if (reason === undefined) this.#isEnded = true;
    else {
      this.#error = { reason };
      // Bytes that came before a failure may still be read. After an abort they are not wanted.
      if (!(reason instanceof UpstreamError)) this.#unread = [];
    }
    this.#wake();
  }

  #begin(sink: Sink<Buffer>): Flow {
    this.#sink = sink;
    // A bound function would make a list of its arguments for each chunk.
    const reader = new AsyncResource("genmesh.reply-body");
    this.#giveInContext = () => reader.runInAsyncScope(this.#give, this);
    return this;
  }

  resume(): void {
    this.#isAskedAgain = true;
    if (this.#isWanted) return;
    this.#isWanted = true;
    this.#give();
  }

  leave(): undefined {
    this.close();
  }

  async next(): Promise<Buffer | undefined> {
    this.#pulled ??= this.chunks[Symbol.asyncIterator]();
    const { done, value } = await this.#pulled.next();
    return done ? undefined : value;
  }

  whole(maxBytes: number, room?: BodyRoom): Awaitable<Buffer> {
    const atOnce = Math.min(maxBytes, room?.freeBytes ?? maxBytes);
    if (this.#isEnded && !this.#sink && this.#unreadBytes <= atOnce) return this.#take();
    return wholeBodyOf(this, maxBytes, room);
  }

  isHeldBack(): boolean {
    return this.#pressure.isHeldBack();
  }

  /** Milliseconds in which the reader had bytes to read and did not read them. They do not count as the sender's. */
  lainMs(): number {
    return this.#pressure.lainMs();
  }

  close(): void {
    if (!this.#isEnded && !this.#error) this.#stop();
  }

  release(): void {
    if (this.#isEnded || this.#error || this.#trailing) return;
    this.#isWanted = false;
    this.#isAwaited = false;
    const timer = setTimeout(this.#stop, httpLimits.trailingMs);
    this.#trailing = { leftBytes: httpLimits.trailingBytes - this.#unreadBytes, timer };
    if (this.#trailing.leftBytes < 0) this.#stop();
    else this.#take();
  }

  #give(): void {
    try {
      while (this.#isWanted && this.#unread.length > 0) {
        this.#isAskedAgain = false;
        const takesMore = this.#sink?.push(this.#take()) === true;
        this.#isWanted = (takesMore || this.#isAskedAgain) && !this.#trailing;
      }
    } catch (error) {
      // A fault in the code that takes the body ends this answer, and not the process.
      this.#stop();
      this.#unread = [];
      this.#error = { reason: error };
    }
    if (!this.#isWanted || this.#isAwaited) return;
    if (this.#error || this.#isEnded) {
      this.#isWanted = false;
      if (this.#error) this.#sink?.fail(this.#error.reason);
      else this.#sink?.end();
      return;
    }
    this.#isAwaited = true;
    this.#pressure.waits();
  }

  /** All unread bytes. Lets the socket be read again. */
  #take(): Buffer {
    const unread = this.#unread;
    this.#unread = [];
    this.#unreadBytes = 0;
    this.#pressure.ended();
    if (this.#controller.paused) this.#controller.resume();
    return unread.length === 1 && unread[0] ? unread[0] : Buffer.concat(unread);
  }

  #wake(): void {
    if (!this.#isAwaited) return;
    this.#isAwaited = false;
    this.#pressure.came();
    // Runs when all bytes of the same read of the socket are there.
    process.nextTick(this.#giveInContext);
  }
}

/**
 * Turns of the event loop after which bytes in the kernel would have come. A socket that is read again is asked in the next turn. Turns
 * are counted, not time, because a turn of a busy process takes any time, and the reader only seems to wait in it.
 */
const turnsToRead = 3;

/**
 * How long a body's reader kept its sender waiting, by the monotonic clock. A caller must not get a free answer by means of a time-out,
 * the sender's or ours. So a break while the reader holds the sender back counts as the reader's doing.
 */
export class BackPressure {
  #lainMs = 0;
  #liesSinceMs: number | undefined;
  #pausedAtMs: number | undefined;
  #waitsSinceMs: number | undefined;
  /** The turn of the event loop that is awaited before a wait counts. */
  #turn: NodeJS.Immediate | undefined;
  /** Milliseconds for which the sender was kept waiting, minus those for which the reader has waited since. */
  #owedMs = 0;

  /** Bytes came that the reader did not wait for. */
  lies(): void {
    this.#liesSinceMs ??= performance.now();
  }

  /** From now on the socket is not read. */
  began(): void {
    this.#pausedAtMs ??= performance.now();
  }

  /** The reader has taken the waiting bytes. */
  ended(): void {
    if (this.#liesSinceMs !== undefined) this.#lainMs += performance.now() - this.#liesSinceMs;
    this.#liesSinceMs = undefined;
    if (this.#pausedAtMs === undefined) return;
    const spanMs = performance.now() - this.#pausedAtMs;
    this.#pausedAtMs = undefined;
    const { heldBackMs, caughtUpMs } = httpLimits;
    const owedMs = spanMs >= heldBackMs ? caughtUpMs : spanMs;
    this.#owedMs = Math.min(this.#owedMs + owedMs, caughtUpMs + heldBackMs);
  }

  /** The reader waits for the sender. */
  waits(): void {
    if (this.#owedMs > 0) this.#waitsAfter(turnsToRead);
  }

  /** The reader does not wait any longer. */
  came(): void {
    clearImmediate(this.#turn);
    if (this.#waitsSinceMs === undefined) return;
    this.#owedMs = Math.max(0, this.#owedMs - (performance.now() - this.#waitsSinceMs));
    this.#waitsSinceMs = undefined;
  }

  #waitsAfter(turns: number): void {
    if (turns === 0) this.#waitsSinceMs = performance.now();
    else this.#turn = setImmediate(() => this.#waitsAfter(turns - 1));
  }

  /** Would a break of the connection be the reader's doing? */
  isHeldBack(): boolean {
    return this.#owedMs + since(this.#pausedAtMs) >= httpLimits.heldBackMs;
  }

  /** Milliseconds in all in which the reader had bytes to read and did not read them. */
  lainMs(): number {
    return this.#lainMs + since(this.#liesSinceMs);
  }
}

function since(ms: number | undefined): number {
  return ms === undefined ? 0 : performance.now() - ms;
}
