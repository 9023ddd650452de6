// Writes and reads the frame that each message of a stream has in the Connect protocol. Clients and servers share it.

import { Code, ConnectError } from "@connectrpc/connect";

/** Bytes before each message of a stream: one of flags, four of length. */
export const prefixBytes = 5;
/** Flag of the last message, which is JSON. */
export const endFlag = 0b10;
const compressedFlag = 0b01;

/** One received message of a stream. */
export interface Envelope {
  /** The last message: JSON, with error and trailers. */
  isEnd: boolean;
  payload: Uint8Array;
}

/** The bytes that go before a payload. */
export function prefixOf(flags: number, payloadBytes: number): Buffer {
  const prefix = Buffer.allocUnsafe(prefixBytes);
  prefix[0] = flags;
  prefix.writeUInt32BE(payloadBytes, 1);
  return prefix;
}

/**
 * Cuts a stream of bytes into messages. A message that is whole in one chunk is a slice of it, not a copy. Only a message that is
 * spread over several chunks is joined.
 */
export class EnvelopeParser {
  readonly #maxBytes: number;
  readonly #onEnvelope: (envelope: Envelope) => void;
  #parts: Buffer[] = [];
  #size = 0;
  /** Bytes that must have come before work can be done: a prefix, or a prefix with its payload. */
  #needed = prefixBytes;

  /** Messages over `maxBytes` are refused by their prefix already. */
  constructor(maxBytes: number, onEnvelope: (envelope: Envelope) => void) {
    this.#maxBytes = maxBytes;
    this.#onEnvelope = onEnvelope;
  }

  /** True where a message has begun and is not complete. */
  get isInside(): boolean {
    return this.#size > 0;
  }

  /** Takes the next bytes. Throws a ConnectError on a message that is too large or compressed. */
  push(chunk: Buffer): void {
    this.#size += chunk.length;
    if (this.#size < this.#needed) {
      this.#parts.push(chunk);
      return;
    }
    let bytes = chunk;
    if (this.#parts.length > 0) {
      this.#parts.push(chunk);
      bytes = Buffer.concat(this.#parts, this.#size);
      this.#parts = [];
    }
    const rest = this.#cut(bytes);
    this.#size = rest.length;
    if (rest.length > 0) this.#parts.push(rest);
  }

  /** Hands out each complete message. Answers the bytes that are left. */
  #cut(bytes: Buffer): Buffer {
    let at = 0;
    for (;;) {
      const left = bytes.length - at;
      this.#needed = prefixBytes;
      if (left < prefixBytes) break;
      const size = bytes.readUInt32BE(at + 1);
      if (size > this.#maxBytes) throw tooLarge(this.#maxBytes);
      this.#needed = prefixBytes + size;
      if (left < this.#needed) break;
      const flags = bytes[at] ?? 0;
      if (flags & compressedFlag) {
        throw new ConnectError("protocol error: a compressed message", Code.Internal);
      }
      const payload = bytes.subarray(at + prefixBytes, at + this.#needed);
      at += this.#needed;
      this.#onEnvelope({ isEnd: (flags & endFlag) !== 0, payload });
    }
    return at === 0 ? bytes : bytes.subarray(at);
  }
}

/**
 * The same bytes as a plain Uint8Array, which is the declared type in messages. A Buffer's `slice` and `toString` differ. The bytes of
 * a message must not depend on the way in which it came.
 */
export function plain(bytes: Uint8Array): Uint8Array {
  return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** Refusal of a message that is too large to be kept in memory. */
export function tooLarge(maxBytes: number): ConnectError {
  return new ConnectError(
    `message is larger than configured readMaxBytes ${maxBytes}`,
    Code.ResourceExhausted,
  );
}
