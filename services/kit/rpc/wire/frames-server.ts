// Takes the connections of `frames-client.ts`, and hands each call to the server as if it were a request of HTTP.

import type { IncomingMessage, Server } from "node:http";
import type { Socket } from "node:net";
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

/** Milliseconds without a frame after which a connection without calls is closed. Callers close theirs earlier. */
const idleMs = 65_000;

/** The connections of frames that a port has. */
export interface FramesServer {
  /** Asks callers to take their next calls to another connection, or another process. */
  sendAway(): void;
}

/** Does a request ask for frames? For `shouldUpgradeCallback`: to Node any other such wish is a plain request. */
export function asksForFrames({ headers, url }: IncomingMessage): boolean {
  return headers.upgrade === framesProtocol && url === framesPath;
}

/**
 * Takes connections that ask for frames. Each call on them is a `request` of the server like any other. `isCaller` decides by the
 * `authorization` of the first request, as for calls over HTTP. Absent: all are taken.
 */
export function serveFrames(
  server: Server,
  isCaller?: (authorization: string | undefined) => boolean,
): FramesServer {
  const open = new Set<FramesConnection>();
  let isGoing = false;
  server.on("upgrade", ({ headers }: IncomingMessage, socket: Socket, head: Buffer) => {
    socket.on("error", () => socket.destroy());
    const refusal = isGoing ? "503 Service Unavailable" : "401 Unauthorized";
    if (isGoing || (isCaller && !isCaller(headers.authorization))) {
      socket.end(`HTTP/1.1 ${refusal}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`);
      // Node closes no connection that asked for another protocol. Its caller need not either.
      socket.destroySoon();
      return;
    }
    const reply = `HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: ${framesProtocol}`;
    socket.write(`${reply}\r\n\r\n`);
    const connection = new FramesConnection(socket, (request, response) => {
      server.emit("request", request, response);
    });
    open.add(connection);
    socket.once("close", () => open.delete(connection));
    connection.push(head);
  });
  return {
    sendAway() {
      isGoing = true;
      for (const connection of open) connection.sendAway();
    },
  };
}

class FramesConnection {
  readonly #socket: Socket;
  readonly #writer: FrameWriter;
  readonly #reader: FrameReader;
  readonly #serve: (request: FramedRequest, response: FramedResponse) => void;
  readonly #calls = new Map<number, FramedResponse>();

  constructor(socket: Socket, serve: (request: FramedRequest, response: FramedResponse) => void) {
    this.#socket = socket;
    this.#writer = new FrameWriter(socket);
    this.#serve = serve;
    this.#reader = new FrameReader((frame) => this.#take(frame));
    socket.on("data", (chunk: Buffer) => this.push(chunk));
    socket.once("end", () => socket.end());
    socket.once("close", () => {
      for (const call of [...this.#calls.values()]) call.left();
    });
    socket.setTimeout(idleMs, () => {
      if (this.#calls.size === 0) socket.destroy();
    });
  }

  push(chunk: Buffer): void {
    try {
      this.#reader.push(chunk);
    } catch {
      this.#socket.destroy();
    }
  }

  sendAway(): void {
    this.#writer.send(frameOf(frameKinds.goAway, 0));
  }

  #take({ kind, call: number, head, body }: Frame): void {
    if (kind === frameKinds.cancel) this.#calls.get(number)?.left();
    if (kind !== frameKinds.request || this.#calls.has(number)) return;
    const lines = head.split("\n");
    const request = new FramedRequest(this.#socket, lines, body);
    const response = new FramedResponse(number, this.#writer);
    this.#calls.set(number, response);
    response.once("close", () => this.#calls.delete(number));
    // Answers of streams need more than one write.
    if (request.headers["content-type"] === unaryType) this.#serve(request, response);
    else response.writeHead(415).end();
  }
}

/** A call's request, with what a handler of unary calls asks of an IncomingMessage. Its body is here already. */
class FramedRequest {
  readonly method = "POST";
  readonly complete = true;
  readonly socket: Socket;
  readonly url: string;
  readonly headers: Record<string, string>;
  readonly #body: Buffer;

  constructor(socket: Socket, lines: readonly string[], body: Buffer) {
    this.socket = socket;
    this.url = lines[0] ?? "";
    this.headers = headersIn(lines);
    this.#body = body;
  }

  on(event: string, listener: (chunk?: Buffer) => void): this {
    if (event === "data") queueMicrotask(() => listener(this.#body));
    if (event === "end") queueMicrotask(listener);
    return this;
  }

  resume(): this {
    return this;
  }
}

/** The answer to a call, with what handlers of unary calls use of a ServerResponse. */
class FramedResponse {
  readonly #call: number;
  readonly #writer: FrameWriter;
  readonly #lines: string[] = [];
  #status = 200;
  #onClose: (() => void)[] = [];
  headersSent = false;
  destroyed = false;
  /** Was the whole answer given to the connection? */
  writableFinished = false;

  constructor(call: number, writer: FrameWriter) {
    this.#call = call;
    this.#writer = writer;
  }

  setHeader(name: string, value: string): this {
    this.#lines.push(name, value);
    return this;
  }

  writeHead(status: number, headers: readonly string[] | Record<string, string> = []): this {
    this.#status = status;
    this.headersSent = true;
    const list = Array.isArray(headers) ? headers : Object.entries(headers).flat();
    for (const line of list) this.#lines.push(String(line));
    return this;
  }

  end(body: Uint8Array | string = ""): this {
    if (this.destroyed || this.writableFinished) return this;
    const head = [this.#status, ...this.#lines].join("\n");
    // As over HTTP, where the caller closes the connection at such a head.
    if (head.length > maxFrameHeadBytes) {
      this.destroy();
      return this;
    }
    this.headersSent = true;
    this.writableFinished = true;
    const bytes = typeof body === "string" ? Buffer.from(body) : body;
    if (bytes.length > maxFrameBodyBytes) {
      this.#writer.sendEach(this.#parts(head, bytes));
      return this;
    }
    this.#writer.send(frameOf(frameKinds.answer, this.#call, head, bytes));
    this.#close();
    return this;
  }

  once(event: string, listener: () => void): this {
    if (event === "close") this.#onClose.push(listener);
    return this;
  }

  /** No answer comes. */
  destroy(): void {
    if (!this.destroyed && !this.writableFinished) {
      this.#writer.send(frameOf(frameKinds.cancel, this.#call));
    }
    this.left();
  }

  /** Its caller has no further interest, or is gone. */
  left(): void {
    if (this.destroyed) return;
    this.destroyed = true;
    this.#close();
  }

  *#parts(head: string, bytes: Uint8Array): Generator<Buffer, void> {
    const { answer, part } = frameKinds;
    for (let at = 0; at < bytes.length && !this.destroyed; at += maxFrameBodyBytes) {
      const piece = bytes.subarray(at, at + maxFrameBodyBytes);
      const isLast = at + maxFrameBodyBytes >= bytes.length;
      yield frameOf(isLast ? answer : part, this.#call, at === 0 ? head : "", piece);
    }
    this.#close();
  }

  #close(): void {
    const listeners = this.#onClose;
    this.#onClose = [];
    for (const listener of listeners) listener();
  }
}
