// Reads request bodies as bytes, and shares the memory for them among accounts, so that slow or large bodies of one do not stop
// others.

import type { IncomingMessage } from "node:http";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Awaitable } from "#kit/base/awaitable.ts";
import { ErrorReason, RefusalError, refuse } from "#kit/base/errors.ts";
import { Stop, type StopSignal } from "#kit/base/stop.ts";
import { networkOf } from "#kit/edge/connection-bounds.ts";
import {
  createFairShare,
  type FairShare,
  type FairShareBounds,
  type Places,
} from "#kit/share/fair-share.ts";
import { createGiveWay, type GiveWay } from "#kit/share/give-way.ts";
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
import { whenClosed } from "./request.ts";
import { type ComingMessage, createSweep } from "./sweep.ts";

/** The parts that a reader needs. */
interface BodyReaderOptions {
  clock: Clock;
  maxBytesInFlight: number;
  /** An account that pays has a larger share of these bytes. */
  payers: Pick<Payers, "isPaying">;
  /** Called with the number of held bytes whenever it changes. */
  onHeld: (bytes: number) => void;
}

interface Bounds {
  limitBytes: number;
  /** The most bytes that may come. */
  announced: number;
  /** The body counts as stalled when it is not complete after this many ms. */
  mostMs: number;
}

/** A body that is still coming. */
interface Coming {
  /** Time at which it counts as stalled, even though bytes still come. */
  untilMs: number;
  lastByteAtMs: number;
  /** The time at which the bytes so far would have come at the slowest pace that is allowed while others wait. */
  paceAtMs: number;
  /** Called once where it brings no byte for too long, is not complete in time, or was ended. */
  stalled: (why: RefusalError) => void;
}

/** Reads request bodies as bytes, because the services parse them, and within the memory of this process. */
export class BodyReader {
  readonly #clock: Clock;
  readonly #large: Room;
  readonly #small: Room;
  readonly #onHeld: (bytes: number) => void;
  #held = 0;
  /** Bodies that are being read. */
  readonly #coming = new Map<IncomingMessage, Coming>();
  readonly #sweep: () => void;

  constructor(options: BodyReaderOptions) {
    const { clock, maxBytesInFlight, onHeld } = options;
    this.#clock = clock;
    this.#large = new Room(bodyBounds(maxBytesInFlight), options);
    this.#small = new Room(smallBodyBounds(maxBytesInFlight), options);
    this.#onHeld = onHeld;
    const look = () => this.#endStalled();
    this.#sweep = createSweep(clock, this.#coming, { everyMs: bodySweepMs, look });
  }

  /**
   * The body of a JSON request, once its account may have that many bytes under way. Refuses with UNSUPPORTED_MEDIA_TYPE,
   * PAYLOAD_TOO_LARGE, or RATE_LIMIT_EXCEEDED (too many bodies of the account wait). Refuses with SERVICE_UNAVAILABLE (too many bytes
   * under way) or INVALID_VALUE (it stalled, or took more than `mostMs`). Rejects with {@link CallerLeftError} where the caller left.
   */
  json(
    request: FastifyRequest,
    reply: FastifyReply,
    limitBytes: number,
    mostMs = bodyTotalMs,
  ): Promise<Buffer> {
    checkJsonHeaders(request, limitBytes);
    const length = request.headers["content-length"];
    // Without a stated length, the most that it may have.
    const announced = length === undefined ? limitBytes : Number(length);
    const held = this.hold(request, reply, announced);
    const bounds = { limitBytes, announced, mostMs };
    if (!(held instanceof Promise)) return this.#collect(request, reply, bounds, held);
    return held.then((room) => this.#collect(request, reply, bounds, room));
  }

  /**
   * Begins reading a body that is consumed as a stream. Asks the caller for it where the caller waits for that. Calls `stalled` with a
   * refusal when the body stops coming while it is being read.
   */
  begin(request: FastifyRequest, reply: FastifyReply, stalled: (why: RefusalError) => void): void {
    const source = request.raw;
    const coming = this.#watch(source, stalled);
    const over = () => this.#coming.delete(source);
    source.once("end", over);
    source.once("close", over);
    source.on("data", (chunk: Buffer) => this.#moved(coming, chunk.length));
    if (request.awaitsContinue) reply.raw.writeContinue();
  }

  /**
   * Holds room for this many bytes until the answer is over. A promise where the account has to wait for it. The result gives back those
   * that did not come. Refuses as {@link json}. Rejects with {@link CallerLeftError}. While an account waits for room, a body of another
   * account that comes too slowly, or not at all, is refused. Its room is that of its announced length, and a caller could announce much
   * and send little.
   */
  hold(request: FastifyRequest, reply: FastifyReply, bytes: number): Awaitable<Places> {
    if (bytes === 0) return nothing;
    const source = request.raw;
    const { raw } = reply;
    if (raw.destroyed) throw new CallerLeftError();
    const coming = {
      stillMs: () => this.#behindMs(source),
      end: () => this.#end(source, tooMuchAtOnce()),
    };
    const accountId = sharerOf(request);
    const room = this.#roomFor(bytes);
    const free = room.takeFree(accountId, bytes, coming);
    if (free) return this.#untilClosed(reply, free);
    const left = new Stop();
    const leave = () => left.abort(new CallerLeftError());
    raw.once("close", leave);
    return room.take(accountId, bytes, left, coming).then((place) => {
      raw.off("close", leave);
      return this.#untilClosed(reply, place);
    });
  }

  /**
   * Room for bytes that come on a WebSocket, until its disposal. A promise where the account has to wait for it. Refuses as {@link json},
   * and with the signal's reason. `coming`: they are of a message that is not complete, which is ended where it is slow and others wait.
   */
  room(
    accountId: string,
    bytes: number,
    signal: StopSignal,
    coming?: ComingMessage,
  ): Awaitable<Places> {
    const room = this.#roomFor(bytes);
    return room.takeFree(accountId, bytes, coming) ?? room.take(accountId, bytes, signal, coming);
  }

  /** Counts bytes that have come. They are kept in room that is held until the answer is over. */
  came(reply: FastifyReply, bytes: number): void {
    if (reply.raw.destroyed) return;
    reply.heldBytes += bytes;
    this.#count(bytes);
  }

  /** Does a body come more slowly than it may while others wait? A body that this process does not read is not slow. */
  isSlow(source: IncomingMessage): boolean {
    return this.#behindMs(source) >= bodyBehindMs;
  }

  #roomFor(bytes: number): Room {
    return bytes <= smallBodyBytes ? this.#small : this.#large;
  }

  /** Gives the room back, with the bytes in it, when the answer is over. */
  #untilClosed(reply: FastifyReply, room: Places): Places {
    const release = () => {
      room[Symbol.dispose]();
      this.#count(-reply.heldBytes);
      reply.heldBytes = 0;
    };
    if (reply.raw.destroyed) release();
    else whenClosed(reply, release);
    // Until now this process did not read it.
    const body = this.#coming.get(reply.request.raw);
    if (body) body.paceAtMs = this.#clock.steady();
    return room;
  }

  #count(bytes: number): void {
    this.#held += bytes;
    this.#onHeld(this.#held);
  }

  #collect(
    request: FastifyRequest,
    reply: FastifyReply,
    { limitBytes, announced, mostMs }: Bounds,
    room: Places,
  ): Promise<Buffer> {
    const source = request.raw;
    return new Promise((resolve, reject) => {
      if (source.destroyed) throw new CallerLeftError();
      // Filled as chunks come, because joining a large body at its end would block the event loop. Pages that are never written take
      // no memory.
      let body: Buffer | undefined;
      let size = 0;
      const fail = (error: unknown) => {
        source.off("data", take);
        // Held bytes are freed at once. The rest of the body, where it comes, is thrown away.
        body = undefined;
        source.resume();
        reject(error);
      };
      const coming = this.#watch(source, fail, mostMs);
      const take = (chunk: Buffer) => {
        this.#moved(coming, chunk.length);
        const at = size;
        size += chunk.length;
        if (size > limitBytes) return fail(new RefusalError(ErrorReason.PAYLOAD_TOO_LARGE));
        this.came(reply, chunk.length);
        // Most bodies come in one piece.
        if (chunk.length === announced) body = chunk;
        else {
          body ??= Buffer.allocUnsafeSlow(announced);
          body.set(chunk, at);
        }
      };
      // Every body ends or closes. Where it only closes, its caller has left. An idle connection keeps its last request. A listener
      // that stayed on the request would keep the body, which counts as held no longer.
      const over = () => {
        this.#coming.delete(source);
        source.off("data", take).off("end", over).off("close", over);
        if (!source.readableEnded) return reject(new CallerLeftError());
        room.shrink(size);
        resolve(body?.subarray(0, size) ?? Buffer.alloc(0));
      };
      source.on("data", take).on("end", over).on("close", over);
      if (request.awaitsContinue) reply.raw.writeContinue();
    });
  }

  /** Watches a body from now on. Its caller reads it, in the same turn, and takes it out of {@link #coming} at its end. */
  #watch(source: IncomingMessage, stalled: Coming["stalled"], mostMs = bodyTotalMs): Coming {
    const nowMs = this.#clock.steady();
    const body = { untilMs: nowMs + mostMs, lastByteAtMs: nowMs, paceAtMs: nowMs, stalled };
    this.#coming.set(source, body);
    this.#sweep();
    return body;
  }

  #moved(body: Coming, bytes: number): void {
    body.lastByteAtMs = this.#clock.steady();
    // A body that came faster than it had to must not pause longer later.
    body.paceAtMs = Math.min(body.lastByteAtMs, body.paceAtMs + bytes / bodyBytesAMs);
  }

  /** By how much a body is later than it may be while others wait, in ms. 0 where it is not being read. */
  #behindMs(source: IncomingMessage): number {
    const body = this.#coming.get(source);
    return body && !waitsForUs(source) ? this.#clock.steady() - body.paceAtMs : 0;
  }

  #endStalled(): void {
    const nowMs = this.#clock.steady();
    for (const [source, body] of this.#coming) {
      if (isStalled(source, body, nowMs)) {
        this.#end(source, malformed("The body did not arrive in time."));
      }
    }
  }

  /** Makes a body that is being read count as stalled. */
  #end(source: IncomingMessage, why: RefusalError): void {
    const body = this.#coming.get(source);
    this.#coming.delete(source);
    body?.stalled(why);
  }
}

/** Room for bytes, shared between accounts. */
class Room {
  readonly #share: FairShare;
  readonly #giveWay: GiveWay;

  constructor(bounds: FairShareBounds, { clock, payers }: BodyReaderOptions) {
    const { isPaying } = payers;
    this.#share = createFairShare(bounds, { clock, isPaying, late: tooMuchAtOnce });
    const looks = { afterMs: bodyBehindMs, lookMs: bodyBehindLookMs };
    this.#giveWay = createGiveWay({ share: this.#share, clock, ...looks });
  }

  /** Room that is free at once. `coming` is ended where it is slow and others wait. */
  takeFree(accountId: string, bytes: number, coming?: ComingMessage): Places | undefined {
    const place = this.#share.takeFree(accountId, bytes);
    return place && this.#watched(place, accountId, coming);
  }

  async take(
    accountId: string,
    bytes: number,
    signal: StopSignal,
    coming?: ComingMessage,
  ): Promise<Places> {
    const asked = this.#share.take(accountId, signal, bytes);
    this.#giveWay.look();
    return this.#watched(await asked, accountId, coming);
  }

  #watched(place: Places, accountId: string, coming: ComingMessage | undefined): Places {
    if (!coming) return place;
    const give = () => {
      holding[Symbol.dispose]();
      place[Symbol.dispose]();
    };
    const end = () => {
      // Its answer may wait for its connection to close.
      give();
      coming.end();
    };
    const holding = this.#giveWay.holds({ accountId, stillMs: coming.stillMs, end });
    return { shrink: place.shrink, [Symbol.dispose]: give };
  }
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

function checkJsonHeaders(request: FastifyRequest, limitBytes: number): void {
  const { headers } = request;
  const encoding = headers["content-encoding"];
  const isCoded = encoding !== undefined && !isPlain(encoding);
  if (isCoded || !isMediaType(headers["content-type"], "application/json")) {
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

function isStalled(source: IncomingMessage, body: Coming, nowMs: number): boolean {
  if (waitsForUs(source)) body.lastByteAtMs = nowMs;
  return nowMs - body.lastByteAtMs >= bodyIdleMs || nowMs >= body.untilMs;
}

/** Is the body not being read at the moment? Then its caller is not slow. */
function waitsForUs(source: IncomingMessage): boolean {
  return source.readableFlowing === false;
}
