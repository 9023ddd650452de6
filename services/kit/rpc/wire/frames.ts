// Writes and reads the frames that carry many short calls on one connection, for `frames-client.ts` and `frames-server.ts`. A
// frame is the length of all that follows (4 bytes), the call's number (4), the kind (1), the length of the head (4), the head
// and the body. A head is lines: the path or the status, then names and values of headers in turn.

import type { Duplex } from "node:stream";

/** The path and the protocol of the HTTP request by which a connection changes to frames. */
export const framesPath = "/genmesh.frames";
export const framesProtocol = "genmesh-frames";

/** Kinds of frames. */
export const frameKinds = {
  /** A caller's request, whole. */
  request: 1,
  /** The head and the body of an answer, or the end of its body. */
  answer: 2,
  /** A part of an answer's body. The first one brings the head. */
  part: 3,
  /** The sender has no further interest in the call, or no answer. */
  cancel: 4,
  /** The server takes no further calls on this connection. */
  goAway: 5,
} as const;

/** A frame that came. */
export interface Frame {
  kind: number;
  call: number;
  head: string;
  body: Buffer;
}

/** Bytes before a frame's head. */
const prefixBytes = 13;
/** Largest body of a frame. A longer one would keep other calls waiting. */
export const maxFrameBodyBytes = 64 * 1024;
/** Longest head of a frame. It is the bound that Node and undici have for the headers of a message of HTTP. */
export const maxFrameHeadBytes = 16 * 1024;
/** Largest frame that is read. A longer one ends the connection, with all of its calls. */
const maxFrameBytes = maxFrameBodyBytes + 32 * 1024;

/** Writes a frame. */
export function frameOf(kind: number, call: number, head = "", body?: Uint8Array): Buffer {
  const headBytes = head.length;
  const bodyBytes = body?.length ?? 0;
  const frame = Buffer.allocUnsafe(prefixBytes + headBytes + bodyBytes);
  frame.writeUInt32LE(frame.length - 4, 0);
  frame.writeUInt32LE(call, 4);
  frame[8] = kind;
  frame.writeUInt32LE(headBytes, 9);
  frame.write(head, prefixBytes, "latin1");
  if (body) frame.set(body, prefixBytes + headBytes);
  return frame;
}

/** Reads frames out of the chunks of a connection. */
export class FrameReader {
  readonly #take: (frame: Frame) => void;
  #rest: Buffer | undefined;

  constructor(take: (frame: Frame) => void) {
    this.#take = take;
  }

  /** Throws where the bytes are no frames. */
  push(chunk: Buffer): void {
    const bytes = this.#rest ? Buffer.concat([this.#rest, chunk]) : chunk;
    let at = 0;
    while (bytes.length - at >= prefixBytes) {
      const size = 4 + bytes.readUInt32LE(at);
      const headEnd = at + prefixBytes + bytes.readUInt32LE(at + 9);
      if (size > maxFrameBytes || headEnd > at + size) throw new Error("these are no frames");
      if (bytes.length - at < size) break;
      const head = bytes.toString("latin1", at + prefixBytes, headEnd);
      const body = bytes.subarray(headEnd, at + size);
      const frame = { kind: bytes[at + 8] ?? 0, call: bytes.readUInt32LE(at + 4), head, body };
      at += size;
      this.#take(frame);
    }
    this.#rest = at < bytes.length ? bytes.subarray(at) : undefined;
  }
}

/** Writes the frames of a turn of the event loop at once. Long bodies go a part at a time, so that other calls pass them. */
export class FrameWriter {
  readonly #socket: Duplex;
  #ready: Buffer[] = [];
  #long: Iterator<Buffer>[] = [];
  #isDue = false;

  constructor(socket: Duplex) {
    this.#socket = socket;
    socket.on("drain", () => this.#soon());
  }

  send(frame: Buffer): void {
    this.#ready.push(frame);
    this.#soon();
  }

  /** Sends frames one after the other, each when the socket has room. */
  sendEach(frames: Iterator<Buffer>): void {
    this.#long.push(frames);
    this.#soon();
  }

  #soon(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    setImmediate(() => this.#flush());
  }

  #flush(): void {
    this.#isDue = false;
    if (!this.#socket.writable) return;
    if (!this.#socket.writableNeedDrain) this.#takeParts();
    const frames = this.#ready;
    const [first] = frames;
    if (!first) return;
    this.#ready = [];
    const hasRoom = this.#socket.write(frames.length === 1 ? first : Buffer.concat(frames));
    if (hasRoom && this.#long.length > 0) this.#soon();
  }

  #takeParts(): void {
    for (const frames of this.#long.splice(0)) {
      const { value, done } = frames.next();
      if (done) continue;
      this.#ready.push(value);
      this.#long.push(frames);
    }
  }
}

/** Headers of a frame's lines. Those of one name are joined. */
export function headersIn(lines: readonly string[]): Record<string, string> {
  const headers: Record<string, string> = Object.create(null);
  for (let at = 1; at + 1 < lines.length; at += 2) {
    const [name = "", value = ""] = [lines[at]?.toLowerCase(), lines[at + 1]];
    headers[name] = name in headers ? `${headers[name]}, ${value}` : value;
  }
  return headers;
}
