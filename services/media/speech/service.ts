import { keyLimitOf } from "#common/agreements/hold-client.ts";
import { checkIdempotencyKey, refuseAtEdge } from "#common/words/idempotency.ts";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import type { JsonObject } from "#kit/base/json.ts";
import type { JsonReader } from "#kit/json-reader/index.ts";
import type { Principal } from "#kit/rpc/principal.ts";
import type { FairShare } from "#kit/share/fair-share.ts";
import { soundFormats } from "#kit/sound/formats.ts";
import type { Admission } from "#proto/genmesh/common/v1/access_pb.ts";
import { BodyForm, type GenerateSpeechRequest } from "#proto/genmesh/media/v1/media_service_pb.ts";
import type { SpeechContext } from "./context.ts";
import type { Flight, Flights } from "./flights.ts";
import { waitPollMs } from "./limits.ts";
import { type PreparedSpeech, prepareSpeech } from "./request.ts";
import { takeRoom } from "./room.ts";
import type { Speaker } from "./speaker.ts";
import type { SpeechIntent, SpeechRecord } from "./store.ts";

/** Needs of answering. */
export interface SpeechServiceContext extends SpeechContext {
  speaker: Speaker;
  flights: Flights<SpeechRecord | undefined>;
  share: FairShare;
  /** Room for bytes of speeches in memory. */
  memory: FairShare;
  /** Reads bodies. */
  reader: JsonReader;
}

/** A request that has its answer. */
export interface Spoken {
  record: SpeechRecord;
  replayed: boolean;
}

/**
 * Answers a request in this order: syntax, a recorded answer or work in flight under its key, the edge's refusal, validation, hold.
 */
export async function generateSpeech(
  request: GenerateSpeechRequest,
  { principal, requestId }: Pick<Caller, "principal" | "requestId">,
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
  const { admission, form } = request;
  const prepare = () => {
    refuseAtEdge(admission);
    return prepareSpeech(body, admission, context.catalog.current(), form);
  };
  if (key !== undefined) {
    // No header contains a line feed. So the two routes of speech have separate keys.
    const route = form === BodyForm.OPENAI ? "audio/speech\n" : "";
    const idempotency = {
      key: `${route}${key}`,
      fingerprint: ownFingerprint(fingerprint, body, form),
    };
    const caller = { principal, requestId, admission, idempotency, prepare };
    return generateOnce(caller, signal, context);
  }
  const prepared = prepare();
  const caller = { principal, requestId, admission, idempotency: undefined };
  const record = await context.flights.lead(undefined, signal, (flight) =>
    begin(prepared, caller, flight, context),
  );
  if (!record) throw new Error("a speech without a key found its slot taken");
  return { record, replayed: false };
}

/**
 * A media service of an earlier release calls every speech an MP3. While releases are mixed, a repeat for another format may reach
 * one. It then finds another fingerprint and refuses, instead of answering with a wrong type.
 */
function ownFingerprint(fingerprint: string, body: JsonObject, form: BodyForm): string {
  const asked = form === BodyForm.OPENAI ? body.response_format : undefined;
  const isOther = soundFormats.some((format) => format === asked && format !== "mp3");
  return isOther ? `${fingerprint}:${asked}` : fingerprint;
}

interface Caller {
  principal: Principal;
  /** The id of the caller's HTTP request. */
  requestId: string | undefined;
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
    // Another process runs it, or a request of this process is about to end. In any case its lease ends it.
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
  { principal, requestId, admission, idempotency }: Caller,
  flight: Flight,
  { speaker, share, memory }: SpeechServiceContext,
): Promise<SpeechRecord | undefined> {
  // The place is kept to the end of the speech, even if its callers have left.
  const { accountId } = principal;
  using _turn = await share.take(accountId, flight.signal);
  const { mostBytes } = prepared;
  using room = await takeRoom(memory, { accountId, mostBytes }, flight.signal);
  const payer = { principal, requestId, keyLimit: keyLimitOf(admission) };
  return await speaker.run(prepared, payer, idempotency, { ...flight, room });
}
