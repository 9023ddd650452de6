// Declares what the store of speech requests must promise. `store-documents.ts` keeps the promises.

import type { FailedTry } from "#common/agreements/hold-client.ts";
import type { SoundFormat } from "#kit/sound/formats.ts";
import type { PutOffWork } from "#kit/time/lease-time.ts";

/** A caller finds its request again by these values. */
export interface SpeechSlot {
  keyId: string;
  /** The caller's Idempotency-Key. */
  key: string;
}

/** A speech request as it is stored before money is held for it (docs/money.md). */
export interface SpeechIntent {
  /** Also the id of its hold: [a-z0-9_]{8,40}. */
  speechId: string;
  /** The file id of the speech. */
  fileId: string;
  accountId: string;
  keyId: string;
  modelId: string;
  catalogVersion: string;
  /** Unicode code points of the input. */
  characters: number;
  /** The price when the request was accepted, USD micros for a million characters. */
  pricePerMillion: bigint;
  /** USD micros that are held, and charged on success. */
  amount: bigint;
  /** The time that billing gets. Ms since the epoch. */
  holdCheckAt: number;
  /** The process that runs the request. */
  owner: string;
  openedAt: number;
  /** Ms since the epoch. Until this time the request counts as alive without a beat. */
  leaseUntil: number;
  /** The caller's Idempotency-Key and the fingerprint of the body. Absent where there is no such key. */
  idempotency?: { key: string; fingerprint: string };
  /** The id of the caller's HTTP request. It is not stored, so it is absent in requests that another process ends. */
  requestId?: string | undefined;
  /** The lane that spoke, and the tries that failed before. It is filled while the request runs, and is not stored. */
  tries?: { upstream: string | undefined; failed: FailedTry[] } | undefined;
}

/** A speech in the blob store. */
export interface SpeechAudio {
  /** MP3 for a speech that an earlier release wrote. */
  format: SoundFormat;
  sizeBytes: number;
  /** Lower-case hexadecimal. */
  sha256: string;
  durationSeconds: number;
}

/** The closing of a request. It happens once, by the first process that tries. */
export type SpeechClosing =
  /** The speech is stored, or an upstream made it and it could not be kept (no audio). The request costs its amount. */
  | { kind: "settling"; audio?: SpeechAudio }
  /** There is no speech, and the request costs nothing. */
  | { kind: "releasing" };

/** The closer: the process that runs the request, or any process if its lease is over at this time. */
export type SpeechCloser = { owner: string } | { leaseOverAt: number };

/** A request in its present state. */
export interface SpeechRecord extends SpeechIntent {
  status: "open" | "settling" | "releasing" | "closed";
  /** Present from `settling` on, where the speech was kept. */
  audio?: SpeechAudio;
}

/**
 * The store of speech requests. Every method is one transition of one record, atomic and durable when its promise resolves, and safe
 * to repeat. Conditions hold at the moment of the change (compare-and-set). Reads see all changes that were acknowledged before they
 * began.
 *
 * All refuse with SERVICE_UNAVAILABLE where the store is away. Then it is not known whether the change was made.
 */
export interface SpeechStore extends PutOffWork {
  /** Stores an intent as `open`. False where its idempotency slot is taken. A repeat of the same intent answers true. */
  open(intent: SpeechIntent): Promise<boolean>;
  /** Moves the lease of an `open` request. False where another process has it, or it is not open. */
  beat(speechId: string, owner: string, leaseUntil: number): Promise<boolean>;
  /**
   * Closes an `open` request as `settling` or `releasing`, and answers false for any other. Other processes take it up at `dueAt`. A
   * request without a speech frees its idempotency slot.
   */
  close(
    speechId: string,
    closer: SpeechCloser,
    closing: SpeechClosing,
    dueAt: number,
  ): Promise<boolean>;
  /**
   * Ends a request whose hold has ended. A `settling` one becomes `closed`, and is kept until `expireAt` (undefined: for ever). A
   * `releasing` one, or one without a speech, is deleted. Does nothing in other states.
   */
  finish(speechId: string, expireAt: number | undefined): Promise<void>;
  /** Deletes an `open` request of the owner whose hold was refused. */
  withdraw(speechId: string, owner: string): Promise<void>;
  /** Deletes a `closed` request whose time is over, after its bytes. */
  forget(speechId: string): Promise<void>;
  /** Puts the next try of a request that is not `open` off until `dueAt`. */
  defer(speechId: string, dueAt: number): Promise<void>;

  /** Undefined where the request does not exist. */
  find(speechId: string): Promise<SpeechRecord | undefined>;
  /** The request in an idempotency slot: `open`, `settling` or `closed`. */
  findBySlot(slot: SpeechSlot): Promise<SpeechRecord | undefined>;
  /** The `closed` requests of these keys, by an index. */
  closedOf(keyIds: readonly string[], limit: number): Promise<SpeechRecord[]>;
  /**
   * The requests that are due, by one index, the longest due first. These are `open` ones past their lease, due `settling` and
   * `releasing` ones, and `closed` ones whose time is over.
   */
  due(now: number, limit: number): Promise<SpeechRecord[]>;
}
