import type { FastifyReply, FastifyRequest } from "fastify";
import type { Clock } from "#kit/clock.ts";
import { ErrorReason, RefusalError, refuse } from "#kit/errors.ts";
import { CallerLeftError } from "./errors.ts";
import { createStallWatch } from "./stalls.ts";

/** Reads request bodies: as bytes, for the services parse them, and within what this process can hold. */
export interface BodyReader {
  /**
   * The body of a JSON request. Refuses with UNSUPPORTED_MEDIA_TYPE, PAYLOAD_TOO_LARGE, INVALID_JSON (nested too deep),
   * SERVICE_UNAVAILABLE (too many bytes in flight) or INVALID_VALUE (it stalled); rejects with {@link CallerLeftError}
   * where the caller left.
   */
  json(request: FastifyRequest, reply: FastifyReply, limitBytes: number): Promise<Buffer>;
  /**
   * Begins reading a body that is consumed as a stream: asks the caller for it where it waits for that, and calls
   * `stalled` with a refusal when it stops coming while it is being read.
   */
  begin(request: FastifyRequest, reply: FastifyReply, stalled: (why: RefusalError) => void): void;
  /** Counts bytes as held until the answer is over. Refuses with SERVICE_UNAVAILABLE where that is too much. */
  hold(reply: FastifyReply, bytes: number): void;
}

/** Makes the reader; `onHeld` hears how many bytes are held whenever that changes. */
export function createBodyReader(options: {
  clock: Clock;
  maxBytesInFlight: number;
  onHeld: (bytes: number) => void;
}): BodyReader {
  const watchStalls = createStallWatch(options.clock);
  const hold = createHolder(options.maxBytesInFlight, options.onHeld);
  const begin: BodyReader["begin"] = (request, reply, stalled) => {
    watchStalls(request.raw, stalled);
    if (request.awaitsContinue) reply.raw.writeContinue();
  };
  return {
    begin,
    hold,
    json: async (request, reply, limitBytes) => {
      checkJsonHeaders(request, limitBytes);
      return collect(request, reply, limitBytes, { begin, hold });
    },
  };
}

function createHolder(maxBytes: number, onHeld: (bytes: number) => void): BodyReader["hold"] {
  const heldBy = new WeakMap<FastifyReply, number>();
  let held = 0;
  return (reply, bytes) => {
    if (held + bytes > maxBytes) {
      refuse(ErrorReason.SERVICE_UNAVAILABLE, {
        message: "Too much is being sent at the moment. Try again shortly.",
        metadata: { retry_after_ms: "1000" },
      });
    }
    const before = heldBy.get(reply);
    heldBy.set(reply, (before ?? 0) + bytes);
    if (before === undefined) {
      reply.raw.once("close", () => {
        held -= heldBy.get(reply) ?? 0;
        heldBy.delete(reply);
        onHeld(held);
      });
    }
    held += bytes;
    onHeld(held);
  };
}

function collect(
  request: FastifyRequest,
  reply: FastifyReply,
  limitBytes: number,
  reader: Pick<BodyReader, "begin" | "hold">,
): Promise<Buffer> {
  const source = request.raw;
  return new Promise((resolve, reject) => {
    if (source.destroyed) throw new CallerLeftError();
    const chunks: Buffer[] = [];
    let size = 0;
    const fail = (error: unknown) => {
      source.off("data", take);
      // What is held is let go at once; the rest of the body, where it comes, is thrown away.
      chunks.length = 0;
      source.resume();
      reject(error);
    };
    const take = (chunk: Buffer) => {
      size += chunk.length;
      try {
        if (size > limitBytes) refuse(ErrorReason.PAYLOAD_TOO_LARGE);
        reader.hold(reply, chunk.length);
      } catch (error) {
        fail(error);
        return;
      }
      chunks.push(chunk);
    };
    source.on("data", take);
    // The copy lets go of the socket's buffers, of which a short body is a sliver.
    source.once("end", () => resolve(Buffer.concat(chunks, size)));
    // Every body closes; only one that is not whole was left by its caller.
    const left = () => {
      if (!source.readableEnded) reject(new CallerLeftError());
    };
    source.once("error", left);
    source.once("close", left);
    reader.begin(request, reply, fail);
  });
}

function checkJsonHeaders(request: FastifyRequest, limitBytes: number): void {
  const { headers } = request;
  const encoding = headers["content-encoding"];
  if (!isMediaType(headers["content-type"], "application/json") || !isPlain(encoding)) {
    throw new RefusalError(ErrorReason.UNSUPPORTED_MEDIA_TYPE, {
      message: "The body is sent as Content-Type: application/json, without Content-Encoding.",
    });
  }
  if (Number(headers["content-length"] ?? 0) > limitBytes) refuse(ErrorReason.PAYLOAD_TOO_LARGE);
}

/** Is a Content-Type of this media type, whatever its parameters? */
export function isMediaType(contentType: string | undefined, mediaType: string): boolean {
  const end = contentType?.indexOf(";") ?? -1;
  const named = end < 0 ? contentType : contentType?.slice(0, end);
  return named?.trim().toLowerCase() === mediaType;
}

/** Is there no content coding? */
export function isPlain(contentEncoding: string | undefined): boolean {
  return contentEncoding === undefined || contentEncoding.trim().toLowerCase() === "identity";
}

/** Does the request announce a body of which something may still be to come? */
export function hasUnreadBody(request: FastifyRequest): boolean {
  const { raw, headers } = request;
  if (raw.complete) return false;
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
}
