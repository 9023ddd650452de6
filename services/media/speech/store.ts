import type { SoundFormat } from "#kit/sound/formats.ts";
import type { PutOffWork } from "#kit/time/lease-time.ts";

/** Under what a request is found again by its caller. */
export interface SpeechSlot {
  keyId: string;
  /** The caller's Idempotency-Key. */
  key: string;
}

/** A speech request as it is written before any money is held for it (docs/money.md). */
export interface SpeechIntent {
  /** Also the id of its hold: [a-z0-9_]{8,40}. */
  speechId: string;
  /** Of the sound that it will have. */
  fileId: string;
  accountId: string;
  keyId: string;
  modelId: string;
  catalogVersion: string;
  /** Unicode code points of the input. */
  characters: number;
  /** The price in force when it was accepted, USD micros for a million characters. */
  pricePerMillion: bigint;
  /** USD micros: what is held, and charged on success. */
  amount: bigint;
  /** As sent to billing; ms since the epoch. */
  holdCheckAt: number;
  /** The process that runs it. */
  owner: string;
  openedAt: number;
  /** Until when it counts as alive without a beat; ms since the epoch. */
  leaseUntil: number;
  /** The caller's Idempotency-Key and the fingerprint of the body; absent: none. */
  idempotency?: { key: string; fingerprint: string };
  /** The caller's HTTP request; not written down, so absent in what another process ends. */
  requestId?: string | undefined;
}

/** A sound in the blob store. */
export interface SpeechAudio {
  /** Of one that an earlier release wrote: mp3. */
  format: SoundFormat;
  sizeBytes: number;
  /** Lower-case hexadecimal. */
  sha256: string;
  durationSeconds: number;
}

/** How a request is closed: once, by the process that comes first. */
export type SpeechClosing =
  /** Its sound is stored, or upstream spoke what could not be kept (no audio): it costs its amount. */
  | { kind: "settling"; audio?: SpeechAudio }
  /** It came to nothing, and costs nothing. */
  | { kind: "releasing" };

/** Who closes: the process that runs it, or any once its lease is over at this time. */
export type SpeechCloser = { owner: string } | { leaseOverAt: number };

/** A request as it stands. */
export interface SpeechRecord extends SpeechIntent {
  status: "open" | "settling" | "releasing" | "closed";
  /** From `settling` on, where it was kept. */
  audio?: SpeechAudio;
}

/**
 * Where speech requests are written down. Every method is one transition of one record, atomic and durable when its
 * promise resolves, and safe to repeat; conditions hold at the moment of the change (compare-and-set). Reads see what was
 * acknowledged before they began. All refuse with SERVICE_UNAVAILABLE where the store is away; whether the change was made
 * is then not known.
 */
export interface SpeechStore extends PutOffWork {
  /** Writes an intent, `open`. False where its idempotency slot is taken. A repeat of the same intent answers true. */
  open(intent: SpeechIntent): Promise<boolean>;
  /** Moves the lease of an `open` request that is still the owner's, else false. */
  beat(speechId: string, owner: string, leaseUntil: number): Promise<boolean>;
  /**
   * The one closer: from `open` to `settling` or `releasing`, else false. Others take it up at `dueAt`. Without a
   * sound its idempotency slot is free.
   */
  close(
    speechId: string,
    closer: SpeechCloser,
    closing: SpeechClosing,
    dueAt: number,
  ): Promise<boolean>;
  /**
   * The hold is ended: from `settling` to `closed`, kept until `expireAt` (undefined: for ever); one that was `releasing`,
   * or has no sound, is deleted. Does nothing where it is neither.
   */
  finish(speechId: string, expireAt: number | undefined): Promise<void>;
  /** Deletes an `open` request of the owner whose reserve was refused: there is no hold. */
  withdraw(speechId: string, owner: string): Promise<void>;
  /** Deletes a `closed` request whose time is over, once its bytes are gone. */
  forget(speechId: string): Promise<void>;
  /** Tries a request that is not `open` again at `dueAt`, not before. */
  defer(speechId: string, dueAt: number): Promise<void>;

  /** Undefined where there is none. */
  find(speechId: string): Promise<SpeechRecord | undefined>;
  /** The request in an idempotency slot: `open`, `settling` or `closed`. */
  findBySlot(slot: SpeechSlot): Promise<SpeechRecord | undefined>;
  /** `closed` ones of these keys, by an index. */
  closedOf(keyIds: readonly string[], limit: number): Promise<SpeechRecord[]>;
  /**
   * `open` past their lease, `settling` and `releasing` that are due, `closed` whose time is over: read by one index, the
   * longest due first.
   */
  due(now: number, limit: number): Promise<SpeechRecord[]>;
}
