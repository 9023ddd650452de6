// Lets a connection have only a few requests open at once. Every server of HTTP/1.1 calls it, and Node has no such bound.

import type { IncomingMessage, RequestListener, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";

/**
 * Requests of one connection that may wait for their answers at once. Common clients and proxies do not pipeline at all. A read of 64
 * KiB holds 1,800 small requests. Without a bound all of them begin in one turn of the event loop.
 */
export const maxPipelinedRequests = 8;

/**
 * Bytes that may be held for all connections of a port: those that were read after a connection reached its bound. As a rule that is at
 * most one read (64 KiB) for each. Only callers who want to fill the process pipeline on that many connections. A connection that would
 * need more room is closed.
 */
export const maxPipelinedBytes = 32 * 1024 * 1024;

/** The parser's error when it was paused, with the number of bytes that it has parsed. */
type ParseFault = Error & { code?: string; bytesParsed?: number };
/** The number of parsed bytes, or the error that stopped the parser. */
type Parsed = number | ParseFault;

/**
 * Answers of the parser's listener for requests. `goesOn`: read on. `pauses`: stop here, in the middle of the bytes, until `resume`
 * (llhttp's HPE_PAUSED).
 */
const goesOn = 0;
const pauses = 21;

/** The parser's field for the function that it calls with the result of each read. */
const onExecute = 5;

/** Fields that Node keeps of a connection that speaks HTTP/1.1. They are no part of its documented interface. */
interface Parser {
  onIncoming?: ((request: IncomingMessage, keepAlive: boolean) => number) | null;
  [onExecute]?: ((parsed: Parsed) => void) | null;
  resume?: () => void;
  execute(bytes: Buffer): Parsed;
  getCurrentBuffer(): Buffer;
}
type Parsing = Socket & { parser?: Parser | null; _paused?: boolean };

/**
 * Bounds the requests that a connection has open. At the bound its parser stops and the socket is read no further, until an answer is
 * over. Until then the remaining requests wait, most of them at the caller. All are answered, in their order.
 */
export function boundPipelining(server: Server): void {
  const begun = new WeakMap<Socket, ServerResponse[]>();
  const held = { bytes: 0 };
  const turns = createLoopTurns();
  // Checked when the next request comes: an event for each answer would be work for every request.
  const openOf = (socket: Socket) => {
    const open = (begun.get(socket) ?? []).filter(
      (answer) => !answer.writableFinished && !answer.destroyed,
    );
    begun.set(socket, open);
    return open;
  };
  // Node's own listener was added first and has made the parser by now. A TLS server emits `connection` before the handshake. It emits
  // `secureConnection` with the socket that is parsed.
  const watch = (socket: Socket) => {
    begun.set(socket, []);
    boundOne(socket as Parsing, () => openOf(socket), { held, turns });
  };
  server.on("connection", watch);
  server.on("secureConnection", watch);
  server.prependListener("request", (({ socket }, response) => {
    // A connection that has changed its protocol has no parser to stop, and nothing here would forget its answers.
    if ((socket as Parsing).parser) begun.get(socket)?.push(response);
  }) satisfies RequestListener);
}

/** No bytes, but with an address. Without an address the parser would take it for the end of the connection. */
const nothing = Buffer.alloc(1).subarray(1);

/**
 * Runs functions one after the other, each in its own turn of the event loop. Answers of hundreds of connections may end at the same
 * moment. Without turns they would begin as many requests before another caller's is read.
 */
function createLoopTurns(): (work: () => void) => void {
  const waiting: (() => void)[] = [];
  const next = () => {
    waiting.shift()?.();
    if (waiting.length > 0) setImmediate(next);
  };
  return (work) => {
    if (waiting.push(work) === 1) setImmediate(next);
  };
}

/** State that the connections of a server share. */
interface Shared {
  held: { bytes: number };
  turns: (work: () => void) => void;
}

function boundOne(socket: Parsing, openOf: () => ServerResponse[], shared: Shared): void {
  const { parser } = socket;
  const begin = parser?.onIncoming;
  const tell = parser?.[onExecute];
  if (!parser || !begin || !tell) return;
  const pipeline = new Pipeline(socket, { parser, tell, openOf, shared });
  parser.onIncoming = (request, keepAlive) => {
    const result = begin(request, keepAlive);
    const open = openOf();
    if (open.length < maxPipelinedRequests || result !== goesOn) return result;
    pipeline.stop(open);
    return pauses;
  };
  parser[onExecute] = (parsed) => pipeline.parsed(parsed);
  // Runs before Node's own listener, which keeps the parser for another connection.
  socket.prependListener("close", () => pipeline.takeRest());
}

/** The parts that bound the requests of one connection. */
interface PipelineOptions {
  parser: Parser;
  /** Node's own function, which goes on with the result of a read. */
  tell: (parsed: Parsed) => void;
  /** The answers that are still open. */
  openOf: () => ServerResponse[];
  shared: Shared;
}

/** The bytes that were read of one connection and are not parsed yet. Decides when they are. */
class Pipeline {
  readonly #socket: Parsing;
  readonly #options: PipelineOptions;
  /** Bytes that were read and are not parsed. Undefined while the parser goes on. */
  #rest: Buffer | undefined;
  /** Did the parser stop in the middle of a read? Then it has not seen the bytes behind that place. */
  #isCut = false;
  #isAsked = false;
  readonly #awaited = new WeakSet<ServerResponse>();

  constructor(socket: Parsing, options: PipelineOptions) {
    this.#socket = socket;
    this.#options = options;
  }

  /** Stops the parser until one of the open answers is over. */
  stop(open: readonly ServerResponse[]): void {
    const { parser, shared } = this.#options;
    this.#rest = nothing;
    this.#isCut = false;
    // Node resumes a parser when its socket has written what was waiting. This parser must not resume yet, because its bytes come
    // first.
    parser.resume = () => {};
    for (const answer of open) {
      if (this.#awaited.has(answer)) continue;
      this.#awaited.add(answer);
      answer.once("close", () => {
        if (this.#isAsked) return;
        this.#isAsked = true;
        // Never called from within the parser.
        shared.turns(() => this.#goOn());
      });
    }
  }

  /** The parser has finished a read, or stopped in it. */
  parsed(parsed: Parsed): void {
    const { parser, tell } = this.#options;
    if (!this.#isHeld()) {
      tell(parsed);
      return;
    }
    const from = this.#isCut ? 0 : parsedOf(parsed);
    this.#hold(parser.getCurrentBuffer().subarray(from));
    tell(from);
  }

  takeRest(): Buffer {
    const { parser, shared } = this.#options;
    const bytes = this.#rest ?? nothing;
    shared.held.bytes -= bytes.length;
    this.#rest = undefined;
    // After this the parser has the method of all parsers again.
    delete parser.resume;
    return bytes;
  }

  #goOn(): void {
    const { parser, tell, openOf } = this.#options;
    const socket = this.#socket;
    this.#isAsked = false;
    if (!this.#isHeld() || socket.destroyed || openOf().length >= maxPipelinedRequests) return;
    const bytes = this.takeRest();
    parser.resume?.();
    socket._paused = false;
    // A parser that stopped at a request without a body is still before the request's end. That end takes no bytes.
    const parsed = parser.execute(bytes.length > 0 ? bytes : nothing);
    if (this.#isHeld()) {
      this.#hold(bytes.subarray(parsedOf(parsed)));
      return;
    }
    tell(parsed);
    // Node may have paused the socket itself, because the caller does not read its answers.
    if (!socket._paused && !socket.destroyed) socket.resume();
  }

  #hold(bytes: Buffer): void {
    const { held } = this.#options.shared;
    this.#isCut = true;
    held.bytes += bytes.length;
    // A copy, so that the parsed part of the same read can be freed.
    this.#rest = Buffer.concat([this.#rest ?? nothing, bytes]);
    // Node reads on when a body is read or when answers were taken. It does not read on where it has paused the socket itself.
    this.#socket._paused = true;
    this.#socket.pause();
    if (held.bytes > maxPipelinedBytes) this.#socket.destroy();
  }

  #isHeld(): boolean {
    return this.#rest !== undefined;
  }
}

function parsedOf(parsed: Parsed): number {
  return typeof parsed === "number" ? parsed : (parsed.bytesParsed ?? 0);
}
