import type { LiveCatalog } from "#kit/catalog-client.ts";
import { ErrorReason, isRefusal, knownReason, RefusalError } from "#kit/errors.ts";
import { checkIdempotencyKey } from "#kit/idempotency.ts";
import type { Principal } from "#kit/rpc/principal.ts";
import type { Admission } from "#proto/genmesh/common/v1/access_pb.ts";
import { type Begun, type GenerateContext, generate, wholeStream } from "./generate.ts";
import { createJoins, type Seat } from "./joins.ts";
import type { Meter } from "./meter.ts";
import { findRecorded } from "./recorded.ts";
import { eventsOfAnswer } from "./replay/events.ts";
import type { ImageSources } from "./request/images.ts";
import { type ParsedRequest, requestFingerprint } from "./request/parse.ts";
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
  /** Images of one caller's requests. */
  images(principal: Principal, requestId: string): ImageSources;
}

/** A request of the public API, its body parsed. */
export interface Call {
  parsed: ParsedRequest;
  principal: Principal;
  admission: Admission | undefined;
  idempotencyKey: string | undefined;
  /** For calls to peers. */
  requestId: string;
}

/** Answers requests: the order of decisions section 6, from the idempotency look-up on. */
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
  return {
    ask(call) {
      const { parsed, principal, admission } = call;
      const { operation } = parsed;
      const key = checkIdempotencyKey(call.idempotencyKey);
      const keyed = key !== undefined && {
        slot: { keyId: principal.keyId, operation, key },
        fingerprint: requestFingerprint(parsed),
      };
      const refusal = edgeRefusal(admission);
      const begin = async (stop: AbortController) => {
        if (closedFor) stop.abort(stopped(closedFor));
        try {
          return await answerOf(call, keyed || undefined, refusal, stop, context);
        } catch (error) {
          throw asRefusal(error, stop.signal);
        }
      };
      if (!keyed) return joins.take(undefined, begin);
      const name = JSON.stringify([
        principal.keyId,
        operation,
        parsed.form,
        key,
        keyed.fingerprint,
      ]);
      // What the edge refuses can only find an answer, not begin one; others must not join in its refusal.
      const seat = refusal
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

async function answerOf(
  call: Call,
  keyed: Keyed | undefined,
  refusal: RefusalError | undefined,
  stop: AbortController,
  context: AnsweringContext,
): Promise<Begun & { replayed: boolean }> {
  const { parsed, principal, admission } = call;
  let prepared: PreparedRequest | undefined;
  for (;;) {
    if (keyed) {
      const answer = await findRecorded(keyed.slot, keyed.fingerprint, context, stop.signal);
      if (answer) {
        context.events.replayed(parsed.operation);
        return { ...replay(parsed, answer), replayed: true };
      }
    }
    if (refusal) throw refusal;
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
    const begun = await generate(prepared, metered, stop, keyed !== undefined, context);
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

/** What the edge would have refused with, had there not been an idempotency key. */
function edgeRefusal(admission: Admission | undefined): RefusalError | undefined {
  if (!admission?.refuseWith) return undefined;
  // A reason of a newer edge than this build knows.
  const reason = knownReason(admission.refuseWith) ?? ErrorReason.PERMISSION_DENIED;
  return new RefusalError(
    reason,
    admission.refusalMessage ? { message: admission.refusalMessage } : {},
  );
}
