import { refuseAtEdge } from "#kit/edge-refusal.ts";
import { ErrorReason, refuse } from "#kit/errors.ts";
import type { FairShare } from "#kit/fair-share.ts";
import { checkIdempotencyKey } from "#kit/idempotency.ts";
import type { JsonReader } from "#kit/json-reader/index.ts";
import type { Principal } from "#kit/rpc/principal.ts";
import type { Admission } from "#proto/genmesh/common/v1/access_pb.ts";
import type { GenerateSpeechRequest } from "#proto/genmesh/media/v1/media_service_pb.ts";
import type { SpeechContext } from "./context.ts";
import type { Flight, Flights } from "./flights.ts";
import { waitPollMs } from "./limits.ts";
import { type PreparedSpeech, prepareSpeech } from "./request.ts";
import type { Speaker } from "./speaker.ts";
import type { SpeechIntent, SpeechRecord } from "./store.ts";

/** What answering needs. */
export interface SpeechServiceContext extends SpeechContext {
  speaker: Speaker;
  flights: Flights<SpeechRecord | undefined>;
  share: FairShare;
  /** Reads bodies. */
  reader: JsonReader;
}

/** A request that is answered. */
export interface Spoken {
  record: SpeechRecord;
  replayed: boolean;
}

/**
 * Answers a request, in this order: syntax, what is recorded or in flight under its key, the edge's
 * refusal, validation, hold.
 */
export async function generateSpeech(
  request: GenerateSpeechRequest,
  principal: Principal,
  signal: AbortSignal,
  context: SpeechServiceContext,
): Promise<Spoken> {
  const isKeyed = request.idempotencyKey !== undefined;
  const { value: body, fingerprint } = await context.reader.read(
    request.body,
    isKeyed ? { fingerprint: {} } : {},
    { accountId: principal.accountId, signal },
  );
  const key = checkIdempotencyKey(request.idempotencyKey);
  const { admission } = request;
  const prepare = () => {
    refuseAtEdge(admission);
    return prepareSpeech(body, admission, context.catalog.current());
  };
  if (key !== undefined) {
    const idempotency = { key, fingerprint };
    return generateOnce({ principal, admission, idempotency, prepare }, signal, context);
  }
  const prepared = prepare();
  const record = await context.flights.lead(undefined, signal, (flight) =>
    begin(prepared, { principal, admission, idempotency: undefined }, flight, context),
  );
  if (!record) throw new Error("a fresh speech id was taken");
  return { record, replayed: false };
}

interface Caller {
  principal: Principal;
  admission: Admission | undefined;
  idempotency: SpeechIntent["idempotency"];
}

interface KeyedCaller extends Caller {
  idempotency: NonNullable<SpeechIntent["idempotency"]>;
  prepare: () => PreparedSpeech;
}

async function generateOnce(
  caller: KeyedCaller,
  signal: AbortSignal,
  context: SpeechServiceContext,
): Promise<Spoken> {
  const { clock, store, flights, events } = context;
  const { key, fingerprint } = caller.idempotency;
  const slot = { keyId: caller.principal.keyId, key };
  const name = `${slot.keyId}\n${key}`;
  for (;;) {
    signal.throwIfAborted();
    const joined = flights.join(name, fingerprint, signal);
    if (joined) {
      events.repeated("joined");
      const record = await joined;
      if (record) return { record, replayed: true };
      continue;
    }
    const found = await store.findBySlot(slot);
    if (found && found.idempotency?.fingerprint !== fingerprint) {
      refuse(ErrorReason.IDEMPOTENCY_KEY_REUSED);
    }
    if (found?.audio) {
      events.repeated("replayed");
      return { record: found, replayed: true };
    }
    // Another process is at it, or one of ours is winding down; its lease ends it in any case.
    if (found) await clock.sleep(waitPollMs, signal);
    if (found || flights.has(name)) continue;
    const prepared = caller.prepare();
    const record = await flights.lead({ name, fingerprint }, signal, (flight) =>
      begin(prepared, caller, flight, context),
    );
    if (record) return { record, replayed: false };
  }
}

async function begin(
  prepared: PreparedSpeech,
  { principal, admission, idempotency }: Caller,
  flight: Flight,
  { speaker, share }: SpeechServiceContext,
): Promise<SpeechRecord | undefined> {
  // Held to the end of the speech, also when its callers have left.
  using _turn = await share.take(principal.accountId, flight.signal);
  const keyMonthlyLimit = admission?.monthlyUsdMicrosLimit;
  return await speaker.run(prepared, { principal, keyMonthlyLimit }, idempotency, flight);
}
