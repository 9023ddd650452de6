// Builds speech from its parts, and answers its two methods. Media's index is its caller.

import { create } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { ErrorReason, RefusalError } from "#kit/base/errors.ts";
import { type Principal, principalOf, requestIdHeader } from "#kit/rpc/principal.ts";
import { createFairShare } from "#kit/share/fair-share.ts";
import { soundTypes } from "#kit/sound/formats.ts";
import type { HoldVerdict } from "#proto/genmesh/common/v1/hold_verdict_pb.ts";
import {
  type GenerateSpeechRequest,
  GenerateSpeechRequestSchema,
  type MediaService,
} from "#proto/genmesh/media/v1/media_service_pb.ts";
import { eraseBatch } from "../limits.ts";
import {
  blobKeyOf,
  openSpeechStore,
  type SpeechContext,
  type SpeechDeps,
  speechIdOf,
} from "./context.ts";
import { createSpeechEvents } from "./events.ts";
import { createFlights } from "./flights.ts";
import { soundsInMemory, speechShare } from "./limits.ts";
import { toAnswer, toParts } from "./messages.ts";
import { type Asked, generateSpeech, type SpeechServiceContext, speakSpeech } from "./service.ts";
import { createSpeaker } from "./speaker.ts";
import { createSpeechSweeper } from "./sweeper.ts";

export type { SpeechDeps } from "./context.ts";

/** A speech that a key made. */
export interface LocatedSpeech {
  blobKey: string;
  mimeType: string;
  sizeBytes: number;
  sha256: string;
  /** Ms since the epoch. */
  createdAt: number;
}

/** Speech that is made while the caller waits. */
export interface Speech extends AsyncDisposable {
  readonly methods: Pick<ServiceImpl<typeof MediaService>, "generateSpeech" | "streamSpeech">;
  /** Billing's answer about a hold. Undefined where the id is not of speech. */
  resolveHold(holdId: string, accountId: string): Promise<HoldVerdict | undefined>;
  /** The file of a speech of this key id. Undefined for every other case. */
  locate(
    name: { parentId: string; fileId: string },
    principal: Principal,
  ): Promise<LocatedSpeech | undefined>;
  /** May the bytes of this blob key still be needed? False for keys that are not of speeches. */
  isReferenced(blobKey: string): Promise<boolean>;
  start(): Promise<void>;
  /**
   * Stops sweeping and lets requests end, even if their callers have left. The requests that still run at `signal` are aborted, and
   * cost nothing.
   */
  drain(signal: AbortSignal): Promise<void>;
  /** Erases some speeches of these keys. True where none was left. */
  eraseOf(keyIds: readonly string[]): Promise<boolean>;
  /** Ends once the requests that are due now. */
  sweep(): Promise<void>;
}

/** Makes the speech of media. */
export function createSpeech(deps: SpeechDeps): Speech {
  const { clock, ids, blobs, catalog, upstreams, retentionMs } = deps;
  const { store, prepare } = openSpeechStore(deps.database);
  const context: SpeechContext = {
    clock,
    ids,
    blobs,
    catalog,
    holds: deps.holds,
    upstreams,
    retentionMs,
    store,
    events: createSpeechEvents(deps),
    leaseTime: deps.leaseTime,
    owner: ids.make("owner", 12),
  };
  const speaker = createSpeaker(context);
  const share = createFairShare(speechShare, { isPaying: deps.payers?.isPaying, clock });
  const memory = createFairShare(soundsInMemory, { isPaying: deps.payers?.isPaying, clock });
  const flights: SpeechServiceContext["flights"] = createFlights();
  const sweeper = createSpeechSweeper(context);
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
  const serving = { ...context, speaker, flights, share, memory, reader: deps.reader };
  const askedOf = (request: GenerateSpeechRequest, call: HandlerContext): Asked => {
    const requestId = call.requestHeader.get(requestIdHeader) ?? undefined;
    return { request, principal: principalOf(call), requestId, signal: call.signal };
  };
  return {
    methods: {
      generateSpeech: async (request, call) =>
        toAnswer(await generateSpeech(askedOf(request, call), serving)),
      async *streamSpeech({ speech }, call) {
        const asked = askedOf(speech ?? create(GenerateSpeechRequestSchema), call);
        yield* toParts(speakSpeech(asked, { hears: true }, serving));
      },
    },
    async resolveHold(holdId, accountId) {
      return holdId.startsWith("speech_") ? sweeper.verdict(holdId, accountId) : undefined;
    },
    async locate({ parentId, fileId }, { keyId }) {
      const record = await store.find(parentId);
      if (record?.keyId !== keyId || record.fileId !== fileId || !record.audio) return undefined;
      const { format, sizeBytes, sha256 } = record.audio;
      const mimeType = soundTypes[format];
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
      sweeping = sweeper.run(life.signal);
    },
    async eraseOf(keyIds) {
      const found = await store.closedOf(keyIds, eraseBatch);
      for (const { speechId } of found) {
        await blobs.delete(blobKeyOf(speechId));
        await store.forget(speechId);
      }
      return found.length === 0;
    },
    drain: stop,
    async sweep() {
      await sweeper.once();
    },
    [Symbol.asyncDispose]: () => stop(AbortSignal.abort()),
  };
}
