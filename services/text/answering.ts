import type { LiveCatalog } from "#kit/catalog-client.ts";
import { refuseAtEdge } from "#kit/edge-refusal.ts";
import { ErrorReason, isRefusal, RefusalError } from "#kit/errors.ts";
import type { FairShare } from "#kit/fair-share.ts";
import { checkIdempotencyKey } from "#kit/idempotency.ts";
import type { Principal } from "#kit/rpc/principal.ts";
import type { Admission } from "#proto/genmesh/common/v1/access_pb.ts";
import { type Begun, type GenerateContext, generate, wholeStream } from "./generate.ts";
import { type AnswerNotes, createJoins, type Joins, type Seat } from "./joins.ts";
import type { Meter } from "./meter.ts";
import { findRecorded } from "./recorded.ts";
import { eventsOfAnswer } from "./replay/events.ts";
import type { ImageSources } from "./request/images.ts";
import { type AnswerForm, answerForms, type ParsedRequest } from "./request/parse.ts";
import { type PreparedRequest, prepareRequest } from "./request/prepare.ts";
import { type StopReason, stopped, stopReasonOf } from "./stopped.ts";
import type { IdempotencySlot, UsageStore } from "./store.ts";
import type { TokenCounter } from "./tokens/count.ts";

/** What answering needs. */
export interface AnsweringContext extends GenerateContext {
  catalog: Pick<LiveCatalog, "current">;
  store: UsageStore;
  meter: Meter;
  counter: TokenCounter;
  /** Places for counting before there is money. */
  contextCounts: FairShare;
  /** Images of one caller's requests. */
  images(principal: Principal, requestId: string): ImageSources;
}

/** A request of the public API, its body parsed. */
export interface Call {
  parsed: ParsedRequest;
  principal: Principal;
  admission: Admission | undefined;
  idempotencyKey: string | undefined;
  /** The caller's, for calls to peers and for logs. */
  requestId: string;
}

/** Answers requests: the idempotency look-up, then scope, catalog, imports, limits, hold. */
export interface Answering {
  /** A seat at the answer; see `joins.ts`. Refuses at once with INVALID_IDEMPOTENCY_KEY or INVALID_JSON. */
  ask(call: Call): Seat;
  /** Resolves when nothing is in flight. */
  whenEmpty(): Promise<void>;
  /** Stops everything that runs; what comes later is refused with SERVICE_UNAVAILABLE. */
  stop(reason: StopReason): void;
}

/** Makes the answering side of a process. */
export function createAnswering(context: AnsweringContext): Answering {
  const joins = createJoins();
  let closedFor: StopReason | undefined;
  const answer = async (call: Call, keyed: Keyed | undefined, stop: AbortController) => {
    if (closedFor) stop.abort(stopped(closedFor));
    try {
      // Synchronous up to here, so that an equal request cannot end unnoticed in between.
      if (keyed) await sitOut(joins, keyed, call.parsed.form, stop.signal);
      return await answerOf(call, keyed, stop, context);
    } catch (error) {
      throw asRefusal(error, stop.signal);
    }
  };
  return {
    ask(call) {
      const { parsed, principal, admission } = call;
      const { operation, form } = parsed;
      const key = checkIdempotencyKey(call.idempotencyKey);
      if (key === undefined) {
        return joins.take(undefined, (stop) => answer(call, undefined, stop));
      }
      const slot = { keyId: principal.keyId, operation, key };
      const keyed: Keyed = { slot, fingerprint: parsed.fingerprint };
      const begin = (stop: AbortController) => answer(call, keyed, stop);
      const name = flightName(keyed, form);
      // What the edge refuses can find an answer, not begin one, and others must not join in its refusal.
      const seat = admission?.refuseWith
        ? (joins.join(name) ?? joins.take(undefined, begin))
        : joins.take(name, begin);
      if (seat.joined) context.events.joined(operation);
      return seat;
    },
    whenEmpty: joins.whenEmpty,
    stop(reason) {
      closedFor = reason;
      joins.stopAll(reason);
    },
  };
}

/** What callers are told of a request that this process stopped. */
function asRefusal(error: unknown, signal: AbortSignal): unknown {
  const reason = stopReasonOf(signal);
  if (isRefusal(error) || reason === undefined || reason === "left") return error;
  const metadata = { retry_after_ms: "1000" };
  return new RefusalError(ErrorReason.SERVICE_UNAVAILABLE, { metadata, cause: error });
}

/** The slot of a request with an idempotency key. */
interface Keyed {
  slot: IdempotencySlot;
  fingerprint: string;
}

/** Equal requests of one form share a flight. */
function flightName({ slot, fingerprint }: Keyed, form: AnswerForm): string {
  return JSON.stringify([slot.keyId, slot.operation, form, slot.key, fingerprint]);
}

/**
 * Sits in the flight of an equal request that wants another form, to its end: it goes on though its own callers leave,
 * and what it recorded is there then. Never refuses.
 */
async function sitOut(
  joins: Joins,
  keyed: Keyed,
  form: AnswerForm,
  signal: AbortSignal,
): Promise<void> {
  const others = answerForms.filter((other) => other !== form);
  for (const seat of others.map((other) => joins.join(flightName(keyed, other)))) {
    if (!seat) continue;
    signal.addEventListener("abort", seat.leave, { once: true });
    try {
      const answer = await seat.answer;
      if (answer.kind === "json") continue;
      while (!signal.aborted && (await answer.next())) {
        // The stream is another's; only its end counts here.
      }
    } catch {
      // Its refusal is its own; this request is tried by itself.
    } finally {
      signal.removeEventListener("abort", seat.leave);
      seat.leave();
    }
  }
}

async function answerOf(
  call: Call,
  keyed: Keyed | undefined,
  stop: AbortController,
  context: AnsweringContext,
): Promise<Begun & AnswerNotes> {
  const { parsed, principal, admission } = call;
  let prepared: PreparedRequest | undefined;
  for (;;) {
    if (keyed) {
      const answer = await findRecorded(keyed.slot, keyed.fingerprint, context, stop.signal);
      if (answer) {
        context.events.replayed(parsed.operation);
        return { ...replay(parsed, answer.body), replayed: true, ignored: answer.ignored };
      }
    }
    refuseAtEdge(admission);
    stop.signal.throwIfAborted();
    prepared ??= await prepare(call, stop.signal, context);
    const opened = await context.meter.open(
      prepared,
      { principal, keyMonthlyLimit: admission?.monthlyUsdMicrosLimit },
      keyed && { key: keyed.slot.key, fingerprint: keyed.fingerprint },
    );
    // Taken meanwhile: by another process, or by an equal request that wants another form.
    if (!opened) continue;
    const metered = await opened.pay(stop.signal);
    const begun = await generate(
      prepared,
      call.requestId,
      metered,
      stop,
      keyed !== undefined,
      context,
    );
    return { ...begun, replayed: false };
  }
}

function prepare(
  { parsed, principal, admission, requestId }: Call,
  signal: AbortSignal,
  context: AnsweringContext,
): Promise<PreparedRequest> {
  const { accountId } = principal;
  return prepareRequest(
    parsed,
    { accountId, admission },
    {
      view: context.catalog.current(),
      counter: context.counter,
      contextCounts: context.contextCounts,
      makers: (hashes) => context.store.findMakers(hashes, context.clock.now()),
      images: context.images(principal, requestId),
    },
    signal,
  );
}

function replay({ operation, form }: ParsedRequest, answer: Uint8Array): Begun {
  if (form === "json") return { kind: "json", body: answer };
  return wholeStream(eventsOfAnswer(operation, form, answer));
}
