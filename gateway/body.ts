import type { IncomingMessage } from "node:http";
import type { FastifyReply, FastifyRequest } from "fastify";
import { ErrorReason, RefusalError, refuse } from "#kit/base/errors.ts";
import { networkOf } from "#kit/edge/connection-bounds.ts";
import { createFairShare, type FairShareBounds, type Places } from "#kit/share/fair-share.ts";
import { createGiveWay } from "#kit/share/give-way.ts";
import type { Payers } from "#kit/share/payers.ts";
import type { Clock } from "#kit/time/clock.ts";
import { CallerLeftError, malformed } from "./errors.ts";
import {
  bodyBehindLookMs,
  bodyBehindMs,
  bodyBounds,
  bodyBytesAMs,
  bodyIdleMs,
  bodySweepMs,
  bodyTotalMs,
  smallBodyBounds,
  smallBodyBytes,
} from "./limits.ts";
import { endWithAnswer, whenClosed } from "./request.ts";
import { type ComingMessage, createSweep } from "./sweep.ts";

/** Reads request bodies as bytes, because the services parse them, and within the memory of this process. */
export interface BodyReader {
  /**
   * The body of a JSON request, once its account may have that many bytes under way. Refuses with UNSUPPORTED_MEDIA_TYPE,
   * PAYLOAD_TOO_LARGE, or RATE_LIMIT_EXCEEDED (too many bodies of the account wait). Refuses with SERVICE_UNAVAILABLE (too many bytes
   * under way) or INVALID_VALUE (it stalled, or took more than `mostMs`). Rejects with {@link CallerLeftError} where the caller left.
   */
  json(
    request: FastifyRequest,
    reply: FastifyReply,
    limitBytes: number,
    mostMs?: number,
  ): Promise<Buffer>;
  /**
   * Begins reading a body that is consumed as a stream. Asks the caller for it where the caller waits for that. Calls `stalled` with a
   * refusal when the body stops coming while it is being read.
   */
  begin(request: FastifyRequest, reply: FastifyReply, stalled: (why: RefusalError) => void): void;
  /**
   * Holds room for this many bytes until the answer is over. A promise where the account has to wait for it. The result gives back those
   * that did not come. Refuses as {@link json}. Rejects with {@link CallerLeftError}.
   */
  hold(request: FastifyRequest, reply: FastifyReply, bytes: number): Places | Promise<Places>;
  /**
   * Room for bytes that come on a WebSocket, until its disposal. A promise where the account has to wait for it. Refuses as {@link json},
   * and with the signal's reason. `coming`: they are of a message that is not complete, which is ended where it is slow and others wait.
   */
  room(
    accountId: string,
    bytes: number,
    signal: AbortSignal,
    coming?: ComingMessage,
  ): Places | Promise<Places>;
  /** Counts bytes that have come and are kept until the answer is over. */
  came(reply: FastifyReply, bytes: number): void;
  /** Does a body come more slowly than it may while others wait? A body that this process does not read is not slow. */
  isSlow(source: IncomingMessage): boolean;
}

/** The parts that a reader needs. */
interface BodyReaderOptions {
  clock: Clock;
  maxBytesInFlight: number;
  /** An account that pays has a larger share of these bytes. */
  payers: Pick<Payers, "isPaying">;
  /** Called with the number of held bytes whenever it changes. */
  onHeld: (bytes: number) => void;
}

/** Makes the reader. */
export function createBodyReader(options: BodyReaderOptions): BodyReader {
  const watch = createStallWatch(options.clock);
  const { hold, room } = createHolder(options, watch);
  const begin: BodyReader["begin"] = (request, reply, stalled) => {
    const source = request.raw;
    const coming = watch.begin(source, stalled);
    source.once("end", coming.over);
    source.once("close", coming.over);
    source.on("data", (chunk: Buffer) => coming.moved(chunk.length));
    if (request.awaitsContinue) reply.raw.writeContinue();
  };
  const came = createCounter(options.onHeld);
  return {
    begin,
    hold,
    room,
    came,
    isSlow: (source) => watch.behindMs(source) >= bodyBehindMs,
    json(request, reply, limitBytes, mostMs = bodyTotalMs) {
      checkJsonHeaders(request, limitBytes);
      const length = request.headers["content-length"];
      // Without a stated length, the most that it may have.
      const announced = length === undefined ? limitBytes : Number(length);
      const bounds = { limitBytes, announced, mostMs };
      const kit = { watch, came };
      const held = hold(request, reply, announced);
      return held instanceof Promise
        ? held.then((places) => collect(request, reply, bounds, places, kit))
        : collect(request, reply, bounds, held, kit);
    },
  };
}

/**
 * Bounds the held bytes. While an account waits for room, a body of another account that comes too slowly, or not at all, is refused.
 * Its room is that of its announced length, and a caller could announce much and send little.
 */
function createHolder(
  options: BodyReaderOptions,
  watch: StallWatch,
): Pick<BodyReader, "hold" | "room"> {
  const { clock, maxBytesInFlight, payers } = options;
  const shareOf = (bounds: FairShareBounds) => {
    const share = createFairShare(bounds, {
      clock,
      isPaying: payers.isPaying,
      late: tooMuchAtOnce,
    });
    const looks = { afterMs: bodyBehindMs, lookMs: bodyBehindLookMs };
    return { share, giveWay: createGiveWay({ share, clock, ...looks }) };
  };
  const large = shareOf(bodyBounds(maxBytesInFlight));
  const small = shareOf(smallBodyBounds(maxBytesInFlight));
  const room: BodyReader["room"] = (accountId, bytes, signal, coming) => {
    const { share, giveWay } = bytes <= smallBodyBytes ? small : large;
    const watched = (place: Places): Places => {
      if (!coming) return place;
      const give = () => {
        holding[Symbol.dispose]();
        place[Symbol.dispose]();
      };
      const end = () => {
        give();
        coming.end();
      };
      const holding = giveWay.holds({ accountId, stillMs: coming.stillMs, end });
      return { shrink: place.shrink, [Symbol.dispose]: give };
    };
    const free = share.takeFree(accountId, bytes);
    if (free) return watched(free);
    const asked = share.take(accountId, signal, bytes);
    giveWay.look();
    return asked.then(watched);
  };
  const hold: BodyReader["hold"] = (request, reply, bytes) => {
    if (bytes === 0) return nothing;
    const { share, giveWay } = bytes <= smallBodyBytes ? small : large;
    const { raw } = reply;
    if (raw.destroyed) throw new CallerLeftError();
    const accountId = sharerOf(request);
    const source = request.raw;
    const endingWith = (place: Places): Places => {
      endWithAnswer(reply, place);
      watch.restart(source);
      const holding = giveWay.holds({
        accountId,
        stillMs: () => watch.behindMs(source),
        end() {
          watch.end(source, tooMuchAtOnce());
          // Its answer may wait for its connection to close.
          holding[Symbol.dispose]();
          place[Symbol.dispose]();
        },
      });
      endWithAnswer(reply, holding);
      return place;
    };
    const free = share.takeFree(accountId, bytes);
    if (free) return endingWith(free);
    const left = new AbortController();
    const leave = () => left.abort(new CallerLeftError());
    raw.once("close", leave);
    const asked = share.take(accountId, left.signal, bytes);
    giveWay.look();
    return asked.then((place) => {
      raw.off("close", leave);
      return endingWith(place);
    });
  };
  return { hold, room };
}

/**
 * The name of the share of a request: that of its account. Operators have no account, and share one. A person who signs in has no
 * account yet, and shares with the same address. So no client without a key takes the room of all. No account has such an id.
 */
function sharerOf({ caller, session, ip }: FastifyRequest): string {
  if (caller) return caller.principal.accountId;
  return session?.role === "operator" ? "operators of the console" : `address ${networkOf(ip)}`;
}

const nothing: Places = { shrink() {}, [Symbol.dispose]() {} };

function tooMuchAtOnce(): RefusalError {
  return new RefusalError(ErrorReason.SERVICE_UNAVAILABLE, {
    message: "Too much is being sent at the moment. Try again shortly.",
    metadata: { retry_after_ms: "1000" },
  });
}

function createCounter(onHeld: (bytes: number) => void): BodyReader["came"] {
  let held = 0;
  return (reply, bytes) => {
    if (reply.heldBytes === 0) {
      whenClosed(reply, () => {
        held -= reply.heldBytes;
        reply.heldBytes = 0;
        onHeld(held);
      });
    }
    reply.heldBytes += bytes;
    held += bytes;
    onHeld(held);
  };
}

interface Bounds {
  limitBytes: number;
  /** The most bytes that may come. */
  announced: number;
  /** The body counts as stalled when it is not complete after this many ms. */
  mostMs: number;
}

function collect(
  request: FastifyRequest,
  reply: FastifyReply,
  { limitBytes, announced, mostMs }: Bounds,
  held: Places,
  { watch, came }: { watch: StallWatch; came: BodyReader["came"] },
): Promise<Buffer> {
  const source = request.raw;
  return new Promise((resolve, reject) => {
    if (source.destroyed) throw new CallerLeftError();
    // Filled as chunks come, because joining a large body at its end would block the event loop. Pages that are never written take no
    // memory.
    let body: Buffer | undefined;
    let size = 0;
    const fail = (error: unknown) => {
      source.off("data", take);
      // Held bytes are freed at once. The rest of the body, where it comes, is thrown away.
      body = undefined;
      source.resume();
      reject(error);
    };
    const coming = watch.begin(source, fail, mostMs);
    const take = (chunk: Buffer) => {
      coming.moved(chunk.length);
      const at = size;
      size += chunk.length;
      if (size > limitBytes) return fail(new RefusalError(ErrorReason.PAYLOAD_TOO_LARGE));
      came(reply, chunk.length);
      // Most bodies come in one piece.
      if (chunk.length === announced) body = chunk;
      else {
        body ??= Buffer.allocUnsafeSlow(announced);
        body.set(chunk, at);
      }
    };
    source.on("data", take);
    source.once("end", () => {
      coming.over();
      const whole = body?.subarray(0, size) ?? Buffer.alloc(0);
      body = undefined;
      held.shrink(size);
      resolve(whole);
    });
    // Every body closes. Where it is not complete, its caller has left. An idle connection keeps its last request. A listener that stayed
    // on the request would keep the body, which counts as held no longer.
    const left = () => {
      coming.over();
      source.off("data", take).off("error", left).off("close", left);
      if (!source.readableEnded) reject(new CallerLeftError());
    };
    source.on("error", left);
    source.on("close", left);
    if (request.awaitsContinue) reply.raw.writeContinue();
  });
}

function checkJsonHeaders(request: FastifyRequest, limitBytes: number): void {
  const { headers } = request;
  const encoding = headers["content-encoding"];
  if (!isMediaType(headers["content-type"], "application/json") || !isPlain(encoding)) {
    throw new RefusalError(ErrorReason.UNSUPPORTED_MEDIA_TYPE, {
      message: "Send the body as Content-Type: application/json, without Content-Encoding.",
    });
  }
  if (Number(headers["content-length"] ?? 0) > limitBytes) refuse(ErrorReason.PAYLOAD_TOO_LARGE);
}

/** Is a Content-Type of this media type, with any parameters? */
export function isMediaType(contentType: string | undefined, mediaType: string): boolean {
  const end = contentType?.indexOf(";") ?? -1;
  const named = end < 0 ? contentType : contentType?.slice(0, end);
  return named?.trim().toLowerCase() === mediaType;
}

/** Is there no content coding? */
export function isPlain(contentEncoding: string | undefined): boolean {
  return contentEncoding === undefined || contentEncoding.trim().toLowerCase() === "identity";
}

/** Does the request announce a body that may not have come completely? */
export function hasUnreadBody(request: FastifyRequest): boolean {
  return !request.raw.complete && announcesBody(request);
}

/** Does the request announce a body, whether or not it has come? */
export function announcesBody({ headers }: FastifyRequest): boolean {
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
}

/** A body that is still coming. */
interface Coming {
  /** Time at which it counts as stalled, even though bytes still come. */
  untilMs: number;
  lastByteAtMs: number;
  /** The time at which the bytes so far would have come at the slowest pace that is allowed while others wait. */
  paceAtMs: number;
  stalled: (why: RefusalError) => void;
}

/** Watches bodies while they come. */
interface StallWatch {
  /**
   * Watches a body from now on. The caller reads it, in the same turn. `stalled` is called once for a body that brings no byte for too
   * long, is not complete after `mostMs`, or was ended. Call `moved` with the number of bytes that came, and `over` at the end.
   */
  begin(
    source: IncomingMessage,
    stalled: Coming["stalled"],
    mostMs?: number,
  ): { moved(bytes: number): void; over(): void };
  /** Forgives a body its delay, because this process did not read it. */
  restart(source: IncomingMessage): void;
  /** By how much a body is later than it may be while others wait, in ms. 0 where it is not being read. */
  behindMs(source: IncomingMessage): number;
  /** Makes a body that is being read count as stalled. */
  end(source: IncomingMessage, why: RefusalError): void;
}

function createStallWatch(clock: Clock): StallWatch {
  const coming = new Map<IncomingMessage, Coming>();
  const end: StallWatch["end"] = (source, why) => {
    const body = coming.get(source);
    coming.delete(source);
    body?.stalled(why);
  };
  const look = () => {
    for (const [source, body] of coming) {
      if (!isStalled(source, body, clock.steady())) continue;
      end(source, malformed("The body did not arrive in time."));
    }
  };
  const sweep = createSweep(clock, coming, { everyMs: bodySweepMs, look });
  return {
    begin(source, stalled, mostMs = bodyTotalMs) {
      const nowMs = clock.steady();
      const untilMs = nowMs + mostMs;
      const body = { untilMs, lastByteAtMs: nowMs, paceAtMs: nowMs, stalled };
      coming.set(source, body);
      sweep();
      return {
        moved(bytes) {
          body.lastByteAtMs = clock.steady();
          // A body that came faster than it had to must not pause longer later.
          body.paceAtMs = Math.min(body.lastByteAtMs, body.paceAtMs + bytes / bodyBytesAMs);
        },
        over: () => coming.delete(source),
      };
    },
    restart(source) {
      const body = coming.get(source);
      if (body) body.paceAtMs = clock.steady();
    },
    behindMs(source) {
      const body = coming.get(source);
      return body && !waitsForUs(source) ? clock.steady() - body.paceAtMs : 0;
    },
    end,
  };
}

function isStalled(source: IncomingMessage, body: Coming, nowMs: number): boolean {
  if (waitsForUs(source)) body.lastByteAtMs = nowMs;
  return nowMs - body.lastByteAtMs >= bodyIdleMs || nowMs >= body.untilMs;
}

/** Is the body not being read at the moment? Then its caller is not slow. */
function waitsForUs(source: IncomingMessage): boolean {
  return source.readableFlowing === false;
}
