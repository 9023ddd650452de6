// Sends short calls to a peer over one connection, as frames. A request of HTTP each costs more. `frames-server.ts` is the other
// end.

import type { Duplex } from "node:stream";
import type { Dispatcher, Pool } from "undici";
import {
  type Frame,
  FrameReader,
  FrameWriter,
  frameKinds,
  frameOf,
  framesPath,
  framesProtocol,
  headersIn,
  maxFrameBodyBytes,
  maxFrameHeadBytes,
} from "./frames.ts";
import { unaryType } from "./unary-reply.ts";

/** Calls of one connection of frames. Further ones get a connection each, which is fairer to them than to wait. */
const maxCalls = 256;
/** Milliseconds without a call after which the connection is closed, as idle ones of HTTP are. */
const idleMs = 30_000;
/** Milliseconds before a peer that speaks no frames is asked again. It may be of an earlier release. */
const askAgainMs = 60_000;

/** A peer's dispatcher: the part of undici's that calls need. */
export interface PeerDispatcher extends Pick<Dispatcher, "dispatch"> {
  close(): Promise<void>;
  destroy(): Promise<void>;
}

/**
 * Sends short unary calls of one address over one connection, and all others over HTTP. The connection is made at the first call. Until
 * it is there, and where the peer does not know frames, all calls take HTTP. `onGoing`: the peer has announced that it stops.
 */
export class FramesDispatcher implements PeerDispatcher {
  readonly #http: Pool;
  readonly #onGoing: () => void;
  #frames: FramesConnection | undefined;
  /** Those that end their last calls as well. */
  readonly #open = new Set<FramesConnection>();
  #isAsking = false;
  #isClosed = false;
  #asksAtMs = 0;

  constructor(http: Pool, onGoing: () => void) {
    this.#http = http;
    this.#onGoing = onGoing;
  }

  dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    const headers = options.headers as string[];
    const { body } = options;
    const isShort = body instanceof Uint8Array && body.length <= maxFrameBodyBytes;
    if (!isShort || headers[1] !== unaryType) return this.#http.dispatch(options, handler);
    const frames = this.#frames;
    if (frames?.takesCalls) {
      const head = `${options.path}\n${headers.join("\n")}`;
      if (head.length <= maxFrameHeadBytes) {
        frames.call(head, body, handler);
        return true;
      }
    }
    if (!frames) this.#ask(headers);
    return this.#http.dispatch(options, handler);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const retired = [...this.#open].map((frames) => frames.retire());
    await Promise.all([this.#http.close(), ...retired]);
  }

  async destroy(): Promise<void> {
    this.#isClosed = true;
    for (const frames of this.#open) frames.destroy();
    await this.#http.destroy();
  }

  #ask(callHeaders: readonly string[]): void {
    if (this.#isAsking || this.#isClosed || performance.now() < this.#asksAtMs) return;
    this.#isAsking = true;
    const at = callHeaders.indexOf("authorization");
    const headers = at < 0 ? {} : { authorization: callHeaders[at + 1] ?? "" };
    const options = { method: "GET", path: framesPath, protocol: framesProtocol, headers };
    this.#http.upgrade(options as Dispatcher.UpgradeOptions).then(
      ({ socket }) => this.#use(socket),
      () => {
        this.#isAsking = false;
        this.#asksAtMs = performance.now() + askAgainMs;
      },
    );
  }

  #use(socket: Duplex): void {
    this.#isAsking = false;
    const frames = new FramesConnection(socket, {
      onGoing: this.#onGoing,
      onRetired: () => {
        if (this.#frames === frames) this.#frames = undefined;
      },
    });
    this.#frames = frames;
    this.#open.add(frames);
    socket.once("close", () => this.#open.delete(frames));
    if (this.#isClosed) void frames.retire();
  }
}

interface ConnectionEvents {
  onGoing: () => void;
  /** Takes no further call. */
  onRetired: () => void;
}

/** One connection, with its calls. */
class FramesConnection {
  readonly #socket: Duplex;
  readonly #writer: FrameWriter;
  readonly #events: ConnectionEvents;
  readonly #calls = new Map<number, FramedCall>();
  readonly #closed = Promise.withResolvers<void>();
  #nextCall = 1;
  #isRetired = false;
  /** Frames that came. */
  #came = 0;

  constructor(socket: Duplex, events: ConnectionEvents) {
    this.#socket = socket;
    this.#writer = new FrameWriter(socket);
    this.#events = events;
    const reader = new FrameReader((frame) => this.#take(frame));
    socket.on("data", (chunk: Buffer) => {
      try {
        reader.push(chunk);
      } catch (error) {
        socket.destroy(error as Error);
      }
    });
    socket.on("error", () => {});
    socket.on("end", () => socket.end());
    socket.once("close", () => this.#over());
    // Sockets of TCP and TLS have it.
    (socket as Duplex & { setTimeout?(ms: number, listener: () => void): void }).setTimeout?.(
      idleMs,
      () => {
        if (this.#calls.size === 0) void this.retire();
      },
    );
  }

  get takesCalls(): boolean {
    return !this.#isRetired && this.#calls.size < maxCalls;
  }

  call(head: string, body: Uint8Array, handler: Dispatcher.DispatchHandler): void {
    const number = this.#nextCall;
    this.#nextCall = (number + 1) >>> 0;
    const came = this.#came;
    const call = new FramedCall(handler, () => {
      if (!this.#calls.delete(number)) return;
      this.#writer.send(frameOf(frameKinds.cancel, number));
      // Nothing came since: the connection may lead nowhere.
      if (this.#came === came) void this.retire();
      else this.#settle();
    });
    handler.onRequestStart?.(call, undefined);
    if (call.aborted) return;
    this.#calls.set(number, call);
    this.#writer.send(frameOf(frameKinds.request, number, head, body));
  }

  /** Takes no further call, and closes behind those under way. Resolves then. */
  retire(): Promise<void> {
    if (!this.#isRetired) {
      this.#isRetired = true;
      this.#events.onRetired();
      this.#settle();
    }
    return this.#closed.promise;
  }

  destroy(): void {
    this.#socket.destroy();
  }

  #take({ kind, call: number, head, body }: Frame): void {
    this.#came++;
    if (kind === frameKinds.goAway) {
      void this.retire();
      this.#events.onGoing();
      return;
    }
    const call = this.#calls.get(number);
    if (!call) return;
    if (kind !== frameKinds.part) this.#calls.delete(number);
    if (kind === frameKinds.cancel) call.broke();
    else call.came(head, body, kind === frameKinds.answer);
    this.#settle();
  }

  #settle(): void {
    if (this.#isRetired && this.#calls.size === 0) this.#socket.end();
  }

  #over(): void {
    void this.retire();
    const calls = [...this.#calls.values()];
    this.#calls.clear();
    for (const call of calls) call.broke();
    this.#closed.resolve();
  }
}

/** A call under way, as undici's handlers see it. An answer is short or comes in parts, so it is never paused. */
class FramedCall implements Dispatcher.DispatchController {
  readonly #handler: Dispatcher.DispatchHandler;
  readonly #cancel: () => void;
  #hasHead = false;
  aborted = false;
  reason: Error | null = null;
  readonly paused = false;

  constructor(handler: Dispatcher.DispatchHandler, cancel: () => void) {
    this.#handler = handler;
    this.#cancel = cancel;
  }

  abort(reason: Error): void {
    if (this.aborted) return;
    this.aborted = true;
    this.reason = reason;
    this.#cancel();
  }

  pause(): void {}

  resume(): void {}

  came(head: string, body: Buffer, isEnd: boolean): void {
    const handler = this.#handler;
    if (!this.#hasHead) {
      this.#hasHead = true;
      const lines = head.split("\n");
      handler.onResponseStart?.(this, Number(lines[0]), headersIn(lines), "");
    }
    if (body.length > 0 && !this.aborted) handler.onResponseData?.(this, body);
    if (isEnd && !this.aborted) handler.onResponseEnd?.(this, {});
  }

  broke(): void {
    if (!this.aborted) this.#handler.onResponseError?.(this, new Error("the connection broke"));
  }
}
