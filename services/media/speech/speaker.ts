import { untilAborted } from "#kit/abort.ts";
import { ErrorReason, isRefusal, RefusalError, refuse } from "#kit/errors.ts";
import { noHoldReasons } from "#kit/holds.ts";
import type { Principal } from "#kit/rpc/principal.ts";
import { HoldKind, Unit } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { StatusError } from "../generate/faults.ts";
import { GenerationError } from "../generate/port.ts";
import { blobKeyOf, type SpeechContext } from "./context.ts";
import { endSpeech, withinBudget } from "./ending.ts";
import type { SpeechEnd } from "./events.ts";
import type { Flight } from "./flights.ts";
import { keepBeating } from "./heartbeat.ts";
import {
  busyRetryMs,
  confirmWithinMs,
  holdCheckMs,
  leaseMs,
  settleBudgetMs,
  settleRetryMs,
  speakTimeoutMs,
  storeTimeoutMs,
} from "./limits.ts";
import type { PreparedSpeech } from "./request.ts";
import type { SpeechAudio, SpeechIntent, SpeechRecord } from "./store.ts";

/** Who a speech is made for. */
export interface Payer {
  principal: Principal;
  /** USD micros of a calendar month; undefined: none. */
  keyMonthlyLimit: bigint | undefined;
}

/** Runs speech requests (docs/money.md, with one more step). */
export interface Speaker {
  /**
   * Intent, hold, upstream, object, `settling`, settlement: in this order. Undefined where the idempotency slot is taken.
   * Refuses as billing does, with INVALID_VALUE (upstream's 400 and 422), MODEL_REQUEST_FAILED,
   * CONTENT_POLICY_VIOLATION, UPSTREAM_TIMEOUT or SERVICE_UNAVAILABLE, or with the reason of the flight's signal; it then
   * costs nothing. Once the request goes upstream the flight is kept: what an upstream speaks is stored and charged.
   */
  run(
    request: PreparedSpeech,
    payer: Payer,
    idempotency: SpeechIntent["idempotency"],
    flight: Flight,
  ): Promise<SpeechRecord | undefined>;
  /** Resolves when every end that was decided is written down, or left to the sweeper. */
  idle(): Promise<void>;
}

const unavailable = { metadata: { retry_after_ms: String(busyRetryMs) } };

/** Makes a speaker. */
export function createSpeaker(context: SpeechContext): Speaker {
  const { clock, store, events } = context;
  const ending = new Set<Promise<unknown>>();

  /** Settles or releases, for a moment in front of the answer and else behind it. */
  const end = async (record: SpeechRecord): Promise<void> => {
    const work = endSpeech(record, context).catch((error) =>
      events.trouble("a speech is left to the sweeper", record.speechId, error),
    );
    ending.add(work);
    void work.finally(() => ending.delete(work));
    await withinBudget(work, settleBudgetMs, context);
  };

  const abandon = async (intent: SpeechIntent, error: unknown): Promise<void> => {
    const { speechId, owner } = intent;
    events.ended(intent, endOf(error), clock.now() - intent.openedAt);
    try {
      if (isRefusal(error, ...noHoldReasons)) return await store.withdraw(speechId, owner);
      const dueAt = clock.now() + settleRetryMs;
      const isOurs = await store.close(speechId, { owner }, { kind: "releasing" }, dueAt);
      if (isOurs) await end({ ...intent, status: "releasing" });
      else await forsake(intent, context);
    } catch (trouble) {
      events.trouble("a failed speech is left to the sweeper", speechId, trouble);
    }
  };

  return {
    async run(request, payer, idempotency, flight) {
      const openedAt = clock.steady();
      const intent = intentOf(request, payer, idempotency, context);
      if (!(await store.open(intent))) return undefined;
      try {
        await hold(intent, payer, context, { openedAt, signal: flight.signal });
        const audio = await speakAndStore(intent, request, context, flight);
        const dueAt = clock.now() + settleRetryMs;
        const closer = { owner: intent.owner };
        const closing = { kind: "settling", audio } as const;
        if (!(await store.close(intent.speechId, closer, closing, dueAt))) {
          events.lost(intent);
          refuse(ErrorReason.SERVICE_UNAVAILABLE, unavailable);
        }
        const record: SpeechRecord = { ...intent, status: "settling", audio };
        events.ended(intent, "completed", clock.now() - intent.openedAt);
        await end(record);
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
  { principal }: Payer,
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
    ...(idempotency ? { idempotency } : {}),
  };
}

/** Reserve, then confirm, both within 5 s of the intent: of `openedAt`, by the monotonic clock. */
async function hold(
  intent: SpeechIntent,
  payer: Payer,
  { clock, store, holds }: SpeechContext,
  { openedAt, signal }: { openedAt: number; signal: AbortSignal },
): Promise<void> {
  signal.throwIfAborted();
  await holds.reserve({
    accountId: intent.accountId,
    unit: Unit.USD_MICROS,
    holdId: intent.speechId,
    amount: intent.amount,
    kind: HoldKind.SPEECH,
    keyId: intent.keyId,
    ref: intent.speechId,
    checkTimeMs: intent.holdCheckAt,
    keyMonthlyLimit: payer.keyMonthlyLimit,
  });
  signal.throwIfAborted();
  const isInTime = () => clock.steady() <= openedAt + confirmWithinMs;
  const beat = () => store.beat(intent.speechId, intent.owner, clock.now() + leaseMs);
  if (!(isInTime() && (await beat()) && isInTime())) {
    refuse(ErrorReason.SERVICE_UNAVAILABLE, unavailable);
  }
}

async function speakAndStore(
  intent: SpeechIntent,
  request: PreparedSpeech,
  context: SpeechContext,
  { signal, keep }: Flight,
): Promise<SpeechAudio> {
  const { clock, upstreams, blobs } = context;
  const { speechId } = intent;
  const { text, voice, language, speed } = request;
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
      upstreamModel,
      upstreams: request.upstreams,
      sending() {
        either.throwIfAborted();
        keep();
      },
      signal: either,
    });
    // The hold ends when it must, also where a driver is slow to stop.
    const { bytes, durationSeconds } = await untilAborted(speaking, either);
    either.throwIfAborted();
    // It was spoken, and will be paid: from here on only we ourselves may fail.
    void expire(storeTimeoutMs, new RefusalError(ErrorReason.SERVICE_UNAVAILABLE, unavailable));
    const { sizeBytes, sha256 } = await blobs.put(blobKeyOf(speechId), once(bytes), stop.signal);
    return { sizeBytes, sha256, durationSeconds };
  } catch (error) {
    // Whatever an abort made of the call: why it was aborted is what counts.
    either.throwIfAborted();
    throw refusalOf(error);
  } finally {
    stop.abort(new Error("the speech has ended"));
  }
}

function refusalOf(error: unknown): unknown {
  if (!(error instanceof GenerationError)) return error;
  const { fault, cause } = error;
  const isCallers = cause instanceof StatusError && (cause.status === 400 || cause.status === 422);
  if (fault === "failed" && isCallers) {
    const message = "The model does not accept a value in this request.";
    return new RefusalError(ErrorReason.INVALID_VALUE, { message, cause: error });
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
  return isRefusal(error) ? "failed" : "caller_left";
}

/** The bytes of a request that somebody else ended, and that were stored all the same. */
async function forsake({ speechId }: SpeechIntent, { store, blobs }: SpeechContext): Promise<void> {
  const now = await store.find(speechId);
  if (!now || now.status === "releasing") await blobs.delete(blobKeyOf(speechId));
}

async function* once(bytes: Uint8Array): AsyncIterable<Uint8Array> {
  yield bytes;
}
