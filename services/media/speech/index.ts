import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import { ErrorReason, RefusalError } from "#kit/errors.ts";
import { createFairShare } from "#kit/fair-share.ts";
import { createLeaseTime } from "#kit/lease-time.ts";
import { type Principal, principalOf } from "#kit/rpc/principal.ts";
import type { HoldVerdict } from "#proto/genmesh/common/v1/hold_verdict_pb.ts";
import type { MediaService } from "#proto/genmesh/media/v1/media_service_pb.ts";
import {
  blobKeyOf,
  openSpeechStore,
  type SpeechContext,
  type SpeechDeps,
  speechIdOf,
} from "./context.ts";
import { createSpeechEvents } from "./events.ts";
import { createFlights } from "./flights.ts";
import { leaseMs, speechShare } from "./limits.ts";
import { createOrphans } from "./orphans.ts";
import { generateSpeech, type SpeechServiceContext } from "./service.ts";
import { createSpeaker } from "./speaker.ts";
import type { SpeechRecord } from "./store.ts";

export type { SpeechDeps } from "./context.ts";
export { speechMongoSchema } from "./store-mongo-schema.ts";

/** Verified by the drivers. */
const mimeType = "audio/mpeg";

/** An MP3 that a key made. */
export interface LocatedSpeech {
  blobKey: string;
  mimeType: string;
  sizeBytes: number;
  sha256: string;
  /** Ms since the epoch. */
  createdAt: number;
}

/** Speech, made while the caller waits. */
export interface Speech extends AsyncDisposable {
  readonly methods: Pick<ServiceImpl<typeof MediaService>, "generateSpeech">;
  /** What is to become of a hold; undefined where it is none of speech's by its id. */
  resolveHold(holdId: string, accountId: string): Promise<HoldVerdict | undefined>;
  /** The MP3 of a speech of this key id; undefined for everything else alike. */
  locate(
    name: { parentId: string; fileId: string },
    principal: Principal,
  ): Promise<LocatedSpeech | undefined>;
  /** May the bytes of this blob key still be wanted? False for keys that are not of speeches. */
  isReferenced(blobKey: string): Promise<boolean>;
  start(): Promise<void>;
  /** Stops sweeping and lets requests end, also those whose callers have left; those that have not at `signal` are aborted, and cost nothing. */
  drain(signal: AbortSignal): Promise<void>;
  /** Ends once what is due now. */
  sweep(): Promise<void>;
}

/** Makes the speech of media. */
export function createSpeech(deps: SpeechDeps): Speech {
  const { clock, ids, blobs, catalog, holds, upstreams, retentionMs } = deps;
  const { store, prepare } = openSpeechStore(deps.database);
  const context: SpeechContext = {
    clock,
    ids,
    blobs,
    catalog,
    holds,
    upstreams,
    retentionMs,
    store,
    events: createSpeechEvents(deps),
    leaseTime: createLeaseTime(clock, leaseMs),
    owner: ids.make("owner", 12),
  };
  const speaker = createSpeaker(context);
  const share = createFairShare(speechShare, { isPaying: deps.payers?.isPaying, clock });
  const flights: SpeechServiceContext["flights"] = createFlights();
  const orphans = createOrphans(context);
  const life = new AbortController();
  let sweeping: Promise<void> | undefined;

  const idle = async () => {
    await flights.idle();
    await speaker.idle();
  };
  const stop = async (signal: AbortSignal) => {
    life.abort();
    await sweeping;
    const abort = () => flights.abortAll(new RefusalError(ErrorReason.SERVICE_UNAVAILABLE));
    if (signal.aborted) abort();
    signal.addEventListener("abort", abort, { once: true });
    await idle();
    signal.removeEventListener("abort", abort);
  };
  return {
    methods: {
      async generateSpeech(request, call) {
        const serving = { ...context, speaker, flights, share, reader: deps.reader };
        const spoken = await generateSpeech(request, principalOf(call), call.signal, serving);
        return { ...toAnswer(spoken.record), replayed: spoken.replayed };
      },
    },
    async resolveHold(holdId, accountId) {
      return holdId.startsWith("speech_") ? orphans.verdict(holdId, accountId) : undefined;
    },
    async locate({ parentId, fileId }, { keyId }) {
      const record = await store.find(parentId);
      if (record?.keyId !== keyId || record.fileId !== fileId || !record.audio) return undefined;
      const { sizeBytes, sha256 } = record.audio;
      const blobKey = blobKeyOf(parentId);
      return { blobKey, mimeType, sizeBytes, sha256, createdAt: record.openedAt };
    },
    async isReferenced(blobKey) {
      const speechId = speechIdOf(blobKey);
      const record = speechId === undefined ? undefined : await store.find(speechId);
      return record !== undefined && record.status !== "releasing";
    },
    async start() {
      await prepare();
      sweeping = orphans.run(life.signal);
    },
    drain: stop,
    sweep: () => orphans.sweep(),
    [Symbol.asyncDispose]: () => stop(AbortSignal.abort()),
  };
}

function toAnswer(record: SpeechRecord) {
  const { speechId, fileId, openedAt, modelId, characters, amount, audio } = record;
  if (!audio) throw new Error("an answered speech without its MP3");
  const { sha256, durationSeconds } = audio;
  return {
    speechId,
    createTime: timestampFromMs(openedAt),
    model: modelId,
    audio: { fileId, mimeType, sizeBytes: BigInt(audio.sizeBytes), sha256, durationSeconds },
    characters: BigInt(characters),
    costUsdMicros: amount,
  };
}
