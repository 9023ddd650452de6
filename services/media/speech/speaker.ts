// Runs one speech request from its hold to its charge: asks the upstream, stores the speech, then has it paid. `service.ts` calls
// it, and `sweeper.ts` ends what it could not.

import { type KeyLimit, noHoldReasons } from "#common/agreements/hold-client.ts";
import { refuseLate } from "#common/paid-work/dispatch.ts";
import {
  beatMs,
  drawBudgetMs,
  holdCheckMs,
  leaseMarginMs,
  leaseMs,
  settleRetryMs,
} from "#common/paid-work/limits.ts";
import { untilAborted } from "#kit/base/abort.ts";
import { ErrorReason, errorRow, isRefusal, RefusalError, refuse } from "#kit/base/errors.ts";
import type { Principal } from "#kit/rpc/principal.ts";
import { noPlaceInTime } from "#kit/share/fair-share.ts";
import { UpstreamError } from "#kit/upstream/errors.ts";
import { HoldKind, Unit } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { StatusError } from "../../upstreams/media/faults.ts";
import { GenerationError, NotTakenError, UnkeptSpeechError } from "../../upstreams/media/port.ts";
import { untilStored } from "../until-stored.ts";
import { blobKeyOf, type SpeechContext } from "./context.ts";
import { type DrawnStatus, drawSpeech, finishSpeech, withinBudget } from "./ending.ts";
import type { SpeechEnd } from "./events.ts";
import type { Flight } from "./flights.ts";
import { busyRetryMs, speakTimeoutMs, storeTimeoutMs } from "./limits.ts";
import type { LiveSound } from "./live-sound.ts";
import type { PreparedSpeech } from "./request.ts";
import type { SoundRoom } from "./room.ts";
import type { SpeechAudio, SpeechIntent, SpeechRecord } from "./store.ts";

/** The payer of a speech. */
export interface Payer {
  principal: Principal;
  /** The id of the caller's HTTP request. */
  requestId: string | undefined;
  /** Undefined: none. */
  keyLimit: KeyLimit | undefined;
}

/** A flight whose speech has room in memory. */
export interface RoomyFlight extends Flight {
  room: SoundRoom;
  /** Gets the audio as it comes. Undefined: no one listens. */
  sound: LiveSound | undefined;
}

/** Runs speech requests (docs/money.md). */
export interface Speaker {
  /**
   * Does these steps in order: row and hold, upstream, object, `settling`, charge. Undefined where the idempotency slot is taken.
   *
   * Refuses like billing, with INVALID_VALUE (an upstream's 400 and 422), MODEL_REQUEST_FAILED, CONTENT_POLICY_VIOLATION,
   * UPSTREAM_TIMEOUT or SERVICE_UNAVAILABLE, or with the reason of the flight's signal. A refused request costs nothing, except a
   * MODEL_REQUEST_FAILED with its `cost`: then an upstream spoke a text and the result cannot be kept.
   *
   * Once the request is sent to an upstream the flight is kept. Speech that an upstream makes is stored and charged.
   */
  run(
    request: PreparedSpeech,
    payer: Payer,
    idempotency: SpeechIntent["idempotency"],
    flight: RoomyFlight,
  ): Promise<SpeechRecord | undefined>;
  /** Resolves when every decided end is stored, or left to the sweeper. */
  idle(): Promise<void>;
}

const unavailable = { metadata: { retry_after_ms: String(busyRetryMs) } };

/** Makes a speaker. */
export function createSpeaker(context: SpeechContext): Speaker {
  const { clock, store, events } = context;
  const ending = new Set<Promise<unknown>>();

  /** Work that only the end of the process waits for. The sweeper does the part that is not done then. */
  const behind = (speechId: string, work: Promise<unknown>): void => {
    const ended = work.catch((error) =>
      events.trouble("a speech is left to the sweeper", speechId, error),
    );
    ending.add(ended);
    void ended.finally(() => ending.delete(ended));
  };

  /** Charges the request. The answer waits a moment for the charge, which then continues in the background. */
  const end = async (record: SpeechRecord, status: DrawnStatus, error?: unknown): Promise<void> => {
    const drawing = drawSpeech(record, status, context, error);
    behind(
      record.speechId,
      drawing.then(() => finishSpeech(record, context)),
    );
    await withinBudget(drawing, drawBudgetMs, context);
  };

  /** The request was not sent. It has no hold, or its hold ends now, or when billing asks about it. */
  const giveUp = async (intent: SpeechIntent, error: unknown): Promise<void> => {
    const { speechId, owner } = intent;
    events.ended(intent, endOf(error), clock.now() - intent.openedAt);
    if (!isRefusal(error, ...noHoldReasons)) {
      behind(speechId, drawSpeech({ ...intent, status: "releasing" }, "unsent", context));
    }
    await store.withdraw(speechId, owner).catch((trouble) => {
      events.trouble("a speech that was not sent is left to the sweeper", speechId, trouble);
    });
  };

  const abandon = async (intent: SpeechIntent, error: unknown): Promise<void> => {
    const { speechId, owner } = intent;
    const how = endOf(error);
    events.ended(intent, how, clock.now() - intent.openedAt);
    try {
      // Its row already says that it is paid.
      if (how === "unkept") {
        return await end({ ...intent, status: "settling" }, "failed", error);
      }
      const dueAt = clock.now() + settleRetryMs;
      const isOurs = await store.close(speechId, { owner }, { kind: "releasing" }, dueAt);
      if (!isOurs) return await deleteIfReleased(intent, context);
      const left = how === "caller_left";
      const status = left ? "left" : "failed";
      await end({ ...intent, status: "releasing" }, status, left ? undefined : error);
    } catch (trouble) {
      events.trouble("a failed speech is left to the sweeper", speechId, trouble);
    }
  };

  return {
    async run(request, payer, idempotency, flight) {
      const openedAt = clock.steady();
      const intent = intentOf(request, payer, idempotency, context);
      const row = store.open(intent);
      // Of two requests that share a key only one may hold money. A request without a key holds money while its row is written.
      if (idempotency && !(await row)) return undefined;
      try {
        await hold(intent, row, payer, context);
        refuseLate(openedAt, clock);
        flight.signal.throwIfAborted();
      } catch (error) {
        await giveUp(intent, error);
        throw error;
      }
      try {
        const speaking = { ...context, openedAt };
        const audio = await speakAndStore(intent, request, speaking, flight);
        const record: SpeechRecord = { ...intent, status: "settling", audio };
        events.ended(intent, "completed", clock.now() - intent.openedAt);
        await end(record, "completed");
        return record;
      } catch (error) {
        await abandon(intent, error);
        throw error;
      }
    },
    async idle() {
      while (ending.size > 0) await Promise.all(ending);
    },
  };
}

function intentOf(
  request: PreparedSpeech,
  { principal, requestId }: Payer,
  idempotency: SpeechIntent["idempotency"],
  { clock, ids, owner }: SpeechContext,
): SpeechIntent {
  const now = clock.now();
  return {
    speechId: ids.make("speech"),
    fileId: ids.make("file"),
    accountId: principal.accountId,
    keyId: principal.keyId,
    modelId: request.model.id,
    catalogVersion: request.catalogVersion,
    characters: request.characters,
    pricePerMillion: request.pricePerMillion,
    amount: request.amount,
    holdCheckAt: now + holdCheckMs,
    owner,
    openedAt: now,
    leaseUntil: now + leaseMs,
    requestId,
    tries: { upstream: undefined, failed: [] },
    ...(idempotency ? { idempotency } : {}),
  };
}

/** Opens the hold and awaits the row. Throws the failure of either once both are decided. */
async function hold(
  intent: SpeechIntent,
  row: Promise<boolean>,
  { keyLimit }: Payer,
  { holds }: SpeechContext,
): Promise<void> {
  const { speechId: holdId, accountId, keyId, amount, holdCheckAt: checkTimeMs } = intent;
  const ofSpeech = { unit: Unit.USD_MICROS, kind: HoldKind.SPEECH, ref: holdId };
  const held = holds.open({ ...ofSpeech, holdId, accountId, keyId, amount, checkTimeMs, keyLimit });
  const [written] = await Promise.allSettled([row, held]);
  // Billing's refusal helps the caller more than the error of a store that is away.
  await held;
  if (written.status === "rejected") throw written.reason;
  if (!written.value) throw new Error("a fresh speech id was taken");
}

/**
 * Moves a running request's lease every 2 s, until `stop` aborts. Aborts `stop` with SERVICE_UNAVAILABLE where another process has
 * ended the request, or could before the next beat. Never rejects.
 */
async function keepBeating(
  intent: SpeechIntent,
  { clock, store, events, openedAt }: SpeechContext & { openedAt: number },
  stop: AbortController,
): Promise<void> {
  const { speechId, owner } = intent;
  // The monotonic clock counts here. So a change of the machine's clock takes no lease away and gives none.
  let leaseUntil = openedAt + leaseMs;
  const lose = () => {
    events.lost(intent);
    stop.abort(new RefusalError(ErrorReason.SERVICE_UNAVAILABLE, unavailable));
  };
  for (;;) {
    await clock.sleep(beatMs, stop.signal).catch(() => {});
    if (stop.signal.aborted) return;
    const until = clock.steady() + leaseMs;
    try {
      const isOurs = await store.beat(speechId, owner, clock.now() + leaseMs);
      if (stop.signal.aborted) return;
      if (!isOurs) return lose();
      leaseUntil = until;
    } catch (error) {
      events.trouble("a speech could not beat", speechId, error);
      if (clock.steady() > leaseUntil - leaseMarginMs) return lose();
    }
  }
}

async function speakAndStore(
  intent: SpeechIntent,
  request: PreparedSpeech,
  context: SpeechContext & { openedAt: number },
  { signal, keep, room, sound }: RoomyFlight,
): Promise<SpeechAudio> {
  const { clock, upstreams, blobs, events } = context;
  const { speechId } = intent;
  const { text, voice, language, speed, format } = request;
  const stop = new AbortController();
  const expire = (ms: number, reason: RefusalError) =>
    clock.sleep(ms, stop.signal).then(
      () => stop.abort(reason),
      () => {},
    );
  void expire(speakTimeoutMs, new RefusalError(ErrorReason.UPSTREAM_TIMEOUT));
  void keepBeating(intent, context, stop);
  const either = AbortSignal.any([signal, stop.signal]);
  try {
    const { upstreamModel } = request.model;
    const speaking = upstreams.speak({
      accountId: intent.accountId,
      requestId: speechId,
      text,
      voice,
      language,
      speed,
      format,
      upstreamModel,
      upstreams: request.upstreams,
      sending() {
        either.throwIfAborted();
        keep();
      },
      reach: room.reach,
      hear: sound && ((piece) => sound.push(piece)),
      tried(lane, failure) {
        if (!intent.tries) return;
        if (failure) intent.tries.failed.push({ lane, ...failure });
        else intent.tries.upstream = lane;
      },
      signal: either,
    });
    // The hold ends in time, even if a driver is slow to stop.
    const { bytes, durationSeconds } = await untilAborted(speaking, either);
    either.throwIfAborted();
    sound?.joined(bytes);
    room.shrink(bytes.length);
    // The speech is made, and will be paid. From here on only genmesh itself may fail.
    void expire(storeTimeoutMs, new RefusalError(ErrorReason.SERVICE_UNAVAILABLE, unavailable));
    const put = () => blobs.put(blobKeyOf(speechId), once(bytes), stop.signal);
    const { sizeBytes, sha256 } = await put().catch(async (error) => {
      if (!isRefusal(error, ErrorReason.SERVICE_UNAVAILABLE)) throw error;
      // The disk has no room. The speech waits for it, and keeps its room in memory.
      return await untilStored({ clock, signal: either }, put);
    });
    const audio = { format, sizeBytes, sha256, durationSeconds };
    const closed = () => closeSpoken(intent, audio, context);
    if (await untilStored({ clock, signal: either }, closed)) return audio;
    events.lost(intent);
    refuse(ErrorReason.SERVICE_UNAVAILABLE, unavailable);
  } catch (error) {
    // Where the call was aborted, the reason counts, and not the error that resulted.
    either.throwIfAborted();
    if (!(error instanceof UnkeptSpeechError)) throw refusalOf(error);
    // The speech was made and is paid, though there is nothing to store.
    void expire(storeTimeoutMs, new RefusalError(ErrorReason.SERVICE_UNAVAILABLE, unavailable));
    const closed = () => closeSpoken(intent, undefined, context);
    if (await untilStored({ clock, signal: either }, closed)) throw unkept(error, intent);
    events.lost(intent);
    refuse(ErrorReason.SERVICE_UNAVAILABLE, unavailable);
  } finally {
    stop.abort(new Error("the speech has ended"));
  }
}

/**
 * Notes that the speech is stored and is to be paid, or that it was made and could not be kept. False where another process has the
 * request.
 */
async function closeSpoken(
  intent: SpeechIntent,
  audio: SpeechAudio | undefined,
  { clock, store }: SpeechContext,
): Promise<boolean> {
  const { speechId, owner } = intent;
  const dueAt = clock.now() + settleRetryMs;
  const closing = { kind: "settling", ...(audio ? { audio } : {}) } as const;
  if (await store.close(speechId, { owner }, closing, dueAt)) return true;
  // An earlier try may have written this, and its answer was lost.
  const now = await store.find(speechId);
  const isPaid = now?.status === "settling" || now?.status === "closed";
  return isPaid && now.audio?.sha256 === audio?.sha256;
}

/** The caller's error for a speech that is paid and cannot be kept. It has the cost, and clients must not repeat it by themselves. */
function unkept(error: UnkeptSpeechError, { amount }: SpeechIntent): RefusalError {
  const message = isRefusal(error.cause)
    ? "The speech came out longer than was estimated, and there was no room to keep it. It was generated and is charged."
    : "The speech came out longer than can be kept. It was generated and is charged. Next time shorten 'input', raise 'speed', or ask for a smaller format.";
  const metadata = { cost: amount.toString() };
  return new RefusalError(ErrorReason.MODEL_REQUEST_FAILED, { message, metadata, cause: error });
}

function refusalOf(error: unknown): unknown {
  if (!(error instanceof GenerationError)) return error;
  const { fault, cause } = error;
  const isCallers = cause instanceof StatusError && (cause.status === 400 || cause.status === 422);
  if (fault === "failed" && isCallers) {
    const message = "The model does not accept a value in this request.";
    return new RefusalError(ErrorReason.INVALID_VALUE, { message, cause: error });
  }
  if (cause instanceof UpstreamError && cause.kind === "full") return noPlaceInTime(error);
  if (error instanceof NotTakenError && error.refusal === "account_empty") {
    const { message } = errorRow(ErrorReason.UPSTREAM_UNAVAILABLE);
    return new RefusalError(ErrorReason.SERVICE_UNAVAILABLE, { message, cause: error });
  }
  const reason =
    fault === "content_policy"
      ? ErrorReason.CONTENT_POLICY_VIOLATION
      : ErrorReason.MODEL_REQUEST_FAILED;
  return new RefusalError(reason, { cause: error });
}

function endOf(error: unknown): SpeechEnd {
  if (isRefusal(error, ErrorReason.UPSTREAM_TIMEOUT)) return "timeout";
  if (isRefusal(error, ErrorReason.CONTENT_POLICY_VIOLATION)) return "content_policy";
  if (isRefusal(error, ErrorReason.SERVICE_UNAVAILABLE)) return "stopped";
  if (isRefusal(error) && error.cause instanceof UnkeptSpeechError) return "unkept";
  return isRefusal(error) ? "failed" : "caller_left";
}

/** Deletes the bytes of a request that another process ended while this one stored them. */
async function deleteIfReleased(
  { speechId }: SpeechIntent,
  { store, blobs }: SpeechContext,
): Promise<void> {
  const now = await store.find(speechId);
  if (!now || now.status === "releasing") await blobs.delete(blobKeyOf(speechId));
}

async function* once(bytes: Uint8Array): AsyncIterable<Uint8Array> {
  yield bytes;
}
