import type { FastifyReply, FastifyRequest } from "fastify";
import type { Clock } from "#kit/clock.ts";
import { ErrorReason, RefusalError, refuse } from "#kit/errors.ts";
import { createFairShare } from "#kit/fair-share.ts";
import type { Payers } from "#kit/payers.ts";
import { CallerLeftError } from "./errors.ts";
import { bodyBounds } from "./limits.ts";
import { callerOf } from "./request.ts";
import { createStallWatch } from "./stalls.ts";

/** Reads request bodies: as bytes, for the services parse them, and within what this process can hold. */
export interface BodyReader {
  /**
   * The body of a JSON request, once its account may have that many bytes under way. Refuses with UNSUPPORTED_MEDIA_TYPE,
   * PAYLOAD_TOO_LARGE, RATE_LIMIT_EXCEEDED (the account has too many waiting), SERVICE_UNAVAILABLE (too many bytes in
   * flight) or INVALID_VALUE (it stalled); rejects with {@link CallerLeftError} where the caller left.
   */
  json(request: FastifyRequest, reply: FastifyReply, limitBytes: number): Promise<Buffer>;
  /**
   * Begins reading a body that is consumed as a stream: asks the caller for it where it waits for that, and calls
   * `stalled` with a refusal when it stops coming while it is being read.
   */
  begin(request: FastifyRequest, reply: FastifyReply, stalled: (why: RefusalError) => void): void;
  /**
   * Resolves when so many bytes may be held until the answer is over. Refuses as {@link json}; rejects with
   * {@link CallerLeftError}.
   */
  hold(request: FastifyRequest, reply: FastifyReply, bytes: number): Promise<void>;
  /** Counts bytes that have come and are kept until the answer is over. */
  came(reply: FastifyReply, bytes: number): void;
}

/** What a reader works with. */
export interface BodyReaderOptions {
  clock: Clock;
  maxBytesInFlight: number;
  /** Who pays has a larger share of that. */
  payers: Pick<Payers, "isPaying">;
  /** Hears how many bytes are held whenever that changes. */
  onHeld: (bytes: number) => void;
}

/** Makes the reader. */
export function createBodyReader(options: BodyReaderOptions): BodyReader {
  const watchStalls = createStallWatch(options.clock);
  const hold = createHolder(options);
  const begin: BodyReader["begin"] = (request, reply, stalled) => {
    watchStalls(request.raw, stalled);
    if (request.awaitsContinue) reply.raw.writeContinue();
  };
  const came = createCounter(options.onHeld);
  return {
    begin,
    hold,
    came,
    async json(request, reply, limitBytes) {
      checkJsonHeaders(request, limitBytes);
      const length = request.headers["content-length"];
      // Without a length, as much as it may be.
      const announced = length === undefined ? limitBytes : Number(length);
      await hold(request, reply, announced);
      return collect(request, reply, { limitBytes, announced }, { begin, came });
    },
  };
}

function createHolder(options: BodyReaderOptions): BodyReader["hold"] {
  const { clock, maxBytesInFlight, payers } = options;
  const share = createFairShare(bodyBounds(maxBytesInFlight), {
    clock,
    isPaying: payers.isPaying,
    late: () =>
      new RefusalError(ErrorReason.SERVICE_UNAVAILABLE, {
        message: "Too much is being sent at the moment. Try again shortly.",
        metadata: { retry_after_ms: "1000" },
      }),
  });
  return async (request, reply, bytes) => {
    if (bytes === 0) return;
    const { raw } = reply;
    const left = new AbortController();
    const leave = () => left.abort(new CallerLeftError());
    if (raw.destroyed) leave();
    raw.once("close", leave);
    const { accountId } = callerOf(request).principal;
    const turn = await share.take(accountId, left.signal, bytes);
    const end = () => turn[Symbol.dispose]();
    if (raw.destroyed) end();
    else raw.once("close", end);
  };
}

function createCounter(onHeld: (bytes: number) => void): BodyReader["came"] {
  const heldBy = new WeakMap<FastifyReply, number>();
  let held = 0;
  return (reply, bytes) => {
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

interface Sizes {
  limitBytes: number;
  /** The most that is to come. */
  announced: number;
}

function collect(
  request: FastifyRequest,
  reply: FastifyReply,
  { limitBytes, announced }: Sizes,
  { begin, came }: Pick<BodyReader, "begin" | "came">,
): Promise<Buffer> {
  const source = request.raw;
  return new Promise((resolve, reject) => {
    if (source.destroyed) throw new CallerLeftError();
    // Filled as it comes: to put a large one together at its end would keep everybody waiting. Not touched, it is no memory.
    let body: Buffer | undefined = Buffer.allocUnsafeSlow(announced);
    let size = 0;
    const fail = (error: unknown) => {
      source.off("data", take);
      // What is held is let go at once; the rest of the body, where it comes, is thrown away.
      body = undefined;
      source.resume();
      reject(error);
    };
    const take = (chunk: Buffer) => {
      const at = size;
      size += chunk.length;
      if (size > limitBytes) return fail(new RefusalError(ErrorReason.PAYLOAD_TOO_LARGE));
      came(reply, chunk.length);
      body?.set(chunk, at);
    };
    source.on("data", take);
    source.once("end", () => resolve(body?.subarray(0, size) ?? Buffer.alloc(0)));
    // Every body closes; only one that is not whole was left by its caller.
    const left = () => {
      if (!source.readableEnded) reject(new CallerLeftError());
    };
    source.once("error", left);
    source.once("close", left);
    begin(request, reply, fail);
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
