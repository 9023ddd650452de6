import type { IncomingMessage, RequestListener, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";

/**
 * Requests of one connection that may wait for their answers at once. Common clients and proxies do not pipeline at all;
 * a read of 64 KiB holds 1,800 small requests, which without a bound are all begun in one turn of the event loop.
 */
export const maxPipelinedRequests = 8;

/**
 * Bytes that are held of all connections of a port, which were read behind the bound: at most a read (64 KiB) of each as a rule. So many
 * connections do not pipeline but to fill the process; one that would hold more closes.
 */
export const maxPipelinedBytes = 32 * 1024 * 1024;

/** What the parser gives where it was paused: what it has read of its bytes is said there. */
type ParseFault = Error & { code?: string; bytesParsed?: number };
/** Bytes that were parsed, or why no more were. */
type Parsed = number | ParseFault;

/** What its listener for requests answers: read on; stop here, in the middle of what was read, until `resume` (llhttp's HPE_PAUSED). */
const goesOn = 0;
const pauses = 21;

/** Where the parser keeps what it calls with what came of each read. */
const onExecute = 5;

/** What Node keeps of a connection that speaks HTTP/1.1; no part of its documented interface. */
interface Parser {
  onIncoming?: ((request: IncomingMessage, keepAlive: boolean) => number) | null;
  [onExecute]?: ((parsed: Parsed) => void) | null;
  resume?: () => void;
  execute(bytes: Buffer): Parsed;
  getCurrentBuffer(): Buffer;
}
type Parsing = Socket & { parser?: Parser | null; _paused?: boolean };

/**
 * Bounds the requests that a connection has open. At the bound its parser stops, and nothing more is read of it: the rest waits, first of all
 * in its caller, until an answer is over. All are answered, in their order.
 */
export function boundPipelining(server: Server): void {
  const begun = new WeakMap<Socket, ServerResponse[]>();
  const held = { bytes: 0 };
  const turns = createLoopTurns();
  // Looked at when the next request comes: an event for each answer would be work for every request.
  const openOf = (socket: Socket) => {
    const open = (begun.get(socket) ?? []).filter(
      (answer) => !answer.writableFinished && !answer.destroyed,
    );
    begun.set(socket, open);
    return open;
  };
  // Node's own listener, which was there first, has made the parser by now. A TLS server says `connection` before the handshake, and
  // `secureConnection` with the socket that is parsed.
  const watch = (socket: Socket) => {
    begun.set(socket, []);
    boundOne(socket as Parsing, () => openOf(socket), { held, turns });
  };
  server.on("connection", watch);
  server.on("secureConnection", watch);
  server.prependListener("request", (({ socket }, response) => {
    begun.get(socket)?.push(response);
  }) satisfies RequestListener);
}

/** No bytes, at an address: without one, the parser would take it for the end of the connection. */
const nothing = Buffer.alloc(1).subarray(1);

/**
 * Runs one after the other, each in a turn of the event loop of its own: hundreds of connections whose answers are over at the same moment
 * would else begin as many requests before another caller's is read.
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

/** What the connections of a server share. */
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
  // Before Node's own listener, which keeps the parser for another connection.
  socket.prependListener("close", () => pipeline.takeRest());
}

/** What the requests of one connection are bounded with. */
interface PipelineOptions {
  parser: Parser;
  /** Node's own, which goes on with what came of a read. */
  tell: (parsed: Parsed) => void;
  /** The answers that are not over. */
  openOf: () => ServerResponse[];
  shared: Shared;
}

/** What was read of one connection and is not parsed, and when it is. */
class Pipeline {
  readonly #socket: Parsing;
  readonly #options: PipelineOptions;
  /** What was read and is not parsed; undefined while the parser goes on. */
  #rest: Buffer | undefined;
  /** Was the read that it stopped in cut? What comes after it was not looked at. */
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
    // Node resumes its parsers when a socket has taken what it was behind with: this one has its bytes still to come.
    parser.resume = () => {};
    for (const answer of open) {
      if (this.#awaited.has(answer)) continue;
      this.#awaited.add(answer);
      answer.once("close", () => {
        if (this.#isAsked) return;
        this.#isAsked = true;
        // Never from within the parser.
        shared.turns(() => this.#goOn());
      });
    }
  }

  /** The parser has done with a read, or stopped in it. */
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
    // Its own again is that of all parsers.
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
    // Of a request without a body it was stopped before its end, which takes no more bytes.
    const parsed = parser.execute(bytes.length > 0 ? bytes : nothing);
    if (this.#isHeld()) {
      this.#hold(bytes.subarray(parsedOf(parsed)));
      return;
    }
    tell(parsed);
    // Node may have paused it itself: its answers are not taken.
    if (!socket._paused && !socket.destroyed) socket.resume();
  }

  #hold(bytes: Buffer): void {
    const { held } = this.#options.shared;
    this.#isCut = true;
    held.bytes += bytes.length;
    // A copy of its own: what was parsed of the same read is let go of.
    this.#rest = Buffer.concat([this.#rest ?? nothing, bytes]);
    // Node reads on where a body is wanted, or its own answers were taken, but not of a socket that it has paused itself.
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
