// Answers a speech request: finds a recorded answer or one under way, else begins one. `speaker.ts` runs what begins.

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
import type { Boarded, Flight, Flights } from "./flights.ts";
import { waitPollMs } from "./limits.ts";
import { LiveSound } from "./live-sound.ts";
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
  /** Does its body ask for server-sent events? */
  asEvents: boolean;
}

/** A piece of a speech, while it is spoken. */
export interface Heard extends Pick<LiveSound, "format" | "amount">, Omit<Spoken, "record"> {
  piece: Uint8Array;
}

/** A request, and who asks. */
export interface Asked extends Pick<Caller, "principal" | "requestId"> {
  request: GenerateSpeechRequest;
  /** Aborts when the caller leaves. */
  signal: AbortSignal;
}

/** Answers a request when its speech is stored. See {@link speakSpeech}. */
export async function generateSpeech(asked: Asked, context: SpeechServiceContext): Promise<Spoken> {
  const speaking = speakSpeech(asked, { hears: false }, context);
  for (;;) {
    const { done, value } = await speaking.next();
    if (done) return value;
  }
}

/**
 * Answers a request in this order: syntax, a recorded answer or work in flight under its key, the edge's refusal, validation, hold.
 * Yields the audio to a caller that hears it while it is spoken, as far as it comes before the speech is stored.
 */
export async function* speakSpeech(
  { request, principal, requestId, signal }: Asked,
  { hears }: { hears: boolean },
  context: SpeechServiceContext,
): AsyncGenerator<Heard, Spoken> {
  const isKeyed = request.idempotencyKey !== undefined;
  // Bytes and events are two forms of one answer.
  const without = request.form === BodyForm.OPENAI ? ["stream_format"] : [];
  const { value: body, fingerprint } = await context.reader.read(
    request.body,
    isKeyed ? { fingerprint: { without } } : {},
    { accountId: principal.accountId, signal },
  );
  const key = checkIdempotencyKey(request.idempotencyKey);
  const { admission, form } = request;
  const asEvents = hears && body.stream_format === "sse";
  const prepare = () => {
    refuseAtEdge(admission);
    return prepareSpeech(body, admission, context.catalog.current(), { form, hears });
  };
  if (key !== undefined) {
    // No header contains a line feed. So the two routes of speech have separate keys.
    const route = form === BodyForm.OPENAI ? "audio/speech\n" : "";
    const idempotency = {
      key: `${route}${key}`,
      fingerprint: ownFingerprint(fingerprint, body, form),
    };
    const caller = { principal, requestId, admission, idempotency, hears, prepare };
    return { ...(yield* speakOnce(caller, asEvents, signal, context)), asEvents };
  }
  const prepared = prepare();
  const caller = { principal, requestId, admission, idempotency: undefined, hears };
  const boarded = lead(undefined, prepared, caller, signal, context);
  const record = yield* hear(boarded, { replayed: false, asEvents }, signal);
  if (!record) throw new Error("a speech without a key found its slot taken");
  return { record, replayed: false, asEvents };
}

/** The audio of a flight as it comes, and the record in which it ends. */
async function* hear(
  { sound, ended }: Boarded<SpeechRecord | undefined>,
  how: Omit<Spoken, "record">,
  signal: AbortSignal,
): AsyncGenerator<Heard, SpeechRecord | undefined> {
  if (sound) {
    const { format, amount } = sound;
    for await (const piece of sound.listen(signal)) yield { piece, format, amount, ...how };
  }
  return await ended;
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
  /** Does it hear the audio while it is spoken? */
  hears: boolean;
}

interface KeyedCaller extends Caller {
  idempotency: NonNullable<SpeechIntent["idempotency"]>;
  prepare: () => PreparedSpeech;
}

async function* speakOnce(
  caller: KeyedCaller,
  asEvents: boolean,
  signal: AbortSignal,
  context: SpeechServiceContext,
): AsyncGenerator<Heard, Omit<Spoken, "asEvents">> {
  const { clock, store, flights, events } = context;
  const { key, fingerprint } = caller.idempotency;
  const slot = { keyId: caller.principal.keyId, key };
  const name = `${slot.keyId}\n${key}`;
  for (;;) {
    signal.throwIfAborted();
    const joined = flights.join(name, fingerprint, signal);
    if (joined) {
      events.repeated("joined");
      const record = yield* hear(joined, { replayed: true, asEvents }, signal);
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
    const led = lead({ name, fingerprint }, caller.prepare(), caller, signal, context);
    const record = yield* hear(led, { replayed: false, asEvents }, signal);
    if (record) return { record, replayed: false };
  }
}

function lead(
  named: { name: string; fingerprint: string } | undefined,
  prepared: PreparedSpeech,
  caller: Caller,
  signal: AbortSignal,
  context: SpeechServiceContext,
): Boarded<SpeechRecord | undefined> {
  const sound = caller.hears ? new LiveSound(prepared) : undefined;
  const work = (flight: Flight) => begin(prepared, caller, { ...flight, sound }, context);
  return context.flights.lead(named, signal, work, sound);
}

async function begin(
  prepared: PreparedSpeech,
  { principal, requestId, admission, idempotency }: Caller,
  flight: Flight & { sound: LiveSound | undefined },
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
