// Holds the messages of a stream between the socket and their reader, and pauses the socket when too many wait. Both sides of a
// call use it.

import { messageOverheadBytes, readAheadBytes } from "./limits.ts";

/** Messages that are read before their places are freed, if others still wait. */
const compactEvery = 1024;

/** The source of an inbox's messages. */
export interface InboxSource {
  /** Stops sending: enough messages wait here. */
  pause(): void;
  /** Go on. */
  resume(): void;
  /** The reader leaves before the end. */
  leave(): void;
}

/**
 * Messages on their way from a socket to one reader. Their number is bounded: the source is paused while whole messages of more than
 * {@link readAheadBytes} wait.
 */
export class Inbox<T> implements AsyncIterableIterator<T> {
  readonly #source: InboxSource;
  readonly #parse: (payload: Uint8Array) => T;
  #payloads: Uint8Array[] = [];
  /** How many of {@link #payloads} were read. Removing each would move all that wait. */
  #read = 0;
  #bytes = 0;
  #isPaused = false;
  #waiting: PromiseWithResolvers<IteratorResult<T>> | undefined;
  #end: { error: unknown } | undefined;

  /** `parse` runs when a message is read, so that its errors reach the reader in the right order. */
  constructor(source: InboxSource, parse: (payload: Uint8Array) => T) {
    this.#source = source;
    this.#parse = parse;
  }

  /** Takes a message. */
  push(payload: Uint8Array): void {
    if (this.#end) return;
    const waiting = this.#waiting;
    if (waiting) {
      this.#waiting = undefined;
      this.#give(payload, waiting);
      return;
    }
    this.#payloads.push(payload);
    this.#bytes += payload.length + messageOverheadBytes;
    if (this.#bytes <= readAheadBytes || this.#isPaused) return;
    this.#isPaused = true;
    this.#source.pause();
  }

  /** No more messages will come. The reader gets those that wait here, then the end, or the error where there is one. */
  finish(error?: unknown): void {
    if (this.#end) return;
    this.#end = { error };
    const waiting = this.#waiting;
    this.#waiting = undefined;
    if (waiting) this.#conclude(waiting);
  }

  /** The call is aborted, so the waiting messages are dropped. */
  fail(error: unknown): void {
    this.#drop();
    this.finish(error);
    if (this.#end) this.#end.error = error;
  }

  next(): Promise<IteratorResult<T>> {
    const answer = Promise.withResolvers<IteratorResult<T>>();
    const payload = this.#shift();
    if (payload) {
      if (this.#isPaused && this.#bytes <= readAheadBytes / 2) {
        this.#isPaused = false;
        this.#source.resume();
      }
      this.#give(payload, answer);
    } else if (this.#end) this.#conclude(answer);
    else this.#waiting = answer;
    return answer.promise;
  }

  return(): Promise<IteratorResult<T>> {
    const isEarly = !this.#end;
    this.#drop();
    this.#end = { error: undefined };
    if (isEarly) this.#source.leave();
    return Promise.resolve({ done: true, value: undefined });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #shift(): Uint8Array | undefined {
    const payload = this.#payloads[this.#read];
    if (!payload) return undefined;
    this.#read++;
    this.#bytes -= payload.length + messageOverheadBytes;
    if (this.#read === this.#payloads.length) this.#drop();
    else if (this.#read === compactEvery) {
      this.#payloads = this.#payloads.slice(this.#read);
      this.#read = 0;
    }
    return payload;
  }

  #drop(): void {
    this.#payloads = [];
    this.#read = 0;
  }

  #give(payload: Uint8Array, answer: PromiseWithResolvers<IteratorResult<T>>): void {
    try {
      answer.resolve({ done: false, value: this.#parse(payload) });
    } catch (error) {
      this.#drop();
      const isEarly = !this.#end;
      this.#end = { error: undefined };
      if (isEarly) this.#source.leave();
      answer.reject(error);
    }
  }

  /** An error is given once. A reader that comes again finds the end. */
  #conclude(answer: PromiseWithResolvers<IteratorResult<T>>): void {
    const error = this.#end?.error;
    this.#end = { error: undefined };
    if (error === undefined) answer.resolve({ done: true, value: undefined });
    else answer.reject(error);
  }
}
