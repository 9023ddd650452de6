// Decodes an upstream's answer that was compressed although the request asked for plain bytes.

import { pipeline, type Transform } from "node:stream";
import {
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createInflateRaw,
  createZstdDecompress,
} from "node:zlib";
import { later, type Pushed, pushed } from "#kit/stream/push-stream.ts";
import type { BodyRoom, HttpBody, HttpReply } from "./client.ts";
import { UpstreamError } from "./errors.ts";
import { httpLimits } from "./limits.ts";
import { wholeBodyOf } from "./whole-body.ts";

/** Makes the decoder of a body, by the body's first bytes. */
const decoders: Readonly<Record<string, (first: Buffer) => Transform>> = {
  gzip: () => createGunzip(),
  "x-gzip": () => createGunzip(),
  br: () => createBrotliDecompress(),
  zstd: () => createZstdDecompress(),
  // Servers mean either format by this name. zlib's header shows which.
  deflate: (first) => (((first[0] ?? 0) & 15) === 8 ? createInflate() : createInflateRaw()),
};

/** A reply with its body decoded, where the sender compressed it against the request. */
export function decodedReply(reply: HttpReply): HttpReply {
  const name = (reply.headers["content-encoding"] ?? "").trim().toLowerCase();
  const decoder = Object.hasOwn(decoders, name) ? decoders[name] : undefined;
  if (!decoder) return reply;
  // The length is that of the bytes on the wire.
  const { "content-length": _length, "content-encoding": _encoding, ...headers } = reply.headers;
  return { ...reply, headers, body: new DecodedBody(reply.body, decoder) };
}

class DecodedBody implements HttpBody {
  readonly chunks: Pushed<Buffer>;
  readonly #body: HttpBody;
  #pulled: AsyncIterator<Buffer> | undefined;

  constructor(body: HttpBody, decoder: (first: Buffer) => Transform) {
    this.#body = body;
    this.chunks = pushed((sink) => {
      const flow = later(async () => decoded(body.chunks, decoder)).pushTo(sink);
      const leave = () => {
        // The decoder may wait for bytes that never come.
        body.close();
        return flow.leave();
      };
      return { resume: () => flow.resume(), leave };
    });
  }

  async next(): Promise<Buffer | undefined> {
    this.#pulled ??= this.chunks[Symbol.asyncIterator]();
    const { done, value } = await this.#pulled.next();
    return done ? undefined : value;
  }

  whole(maxBytes: number, room?: BodyRoom): Promise<Buffer> {
    return wholeBodyOf(this, maxBytes, room);
  }

  isHeldBack(): boolean {
    return this.#body.isHeldBack();
  }

  /** The rest is not decoded. A sender that ignores the request's headers is not worth a kept connection. */
  release(): void {
    this.#body.close();
  }

  close(): void {
    this.#body.close();
  }
}

async function* decoded(
  chunks: AsyncIterable<Buffer>,
  decoderOf: (first: Buffer) => Transform,
): AsyncGenerator<Buffer> {
  const source = chunks[Symbol.asyncIterator]();
  const first = await source.next();
  if (first.done) return;
  let failed: { cause: unknown } | undefined;
  async function* sent() {
    try {
      for (let step = first; !step.done; step = await source.next()) yield step.value;
    } catch (cause) {
      failed = { cause };
      throw cause;
    }
  }
  const decoder = decoderOf(first.value);
  // The reader gets the errors.
  pipeline(sent(), decoder, () => {});
  let bytes = 0;
  try {
    for await (const chunk of decoder) {
      bytes += chunk.length;
      if (bytes > httpLimits.decodedBytes) throw new UpstreamError("too_large");
      yield chunk;
    }
  } catch (cause) {
    if (failed) throw failed.cause;
    throw cause instanceof UpstreamError ? cause : new UpstreamError("cut", { cause });
  } finally {
    decoder.destroy();
  }
}
