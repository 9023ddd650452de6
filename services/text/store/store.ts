import type { PutOffWork } from "#kit/time/lease-time.ts";
import type { TextOperation } from "../../upstreams/text/port.ts";
import type { EndKind } from "../metering/charge.ts";
import type { TextPrice, TokenBounds } from "../metering/pricing.ts";
import type { OpaqueMaker } from "../request/opaque.ts";

/** Under what a request is found again by its caller: unique while it runs and while its answer is kept. */
export interface IdempotencySlot {
  keyId: string;
  operation: TextOperation;
  /** The caller's Idempotency-Key. */
  key: string;
}

/**
 * What the record of a request says beside its charge, for whichever process ends it. Absent: not known yet, or an older release wrote
 * the row.
 */
export interface Told {
  /** The caller's HTTP request. */
  callId?: string;
  /** Its caller asked for a stream. */
  streamed?: boolean;
  /** Name of the upstream that answered. */
  upstream?: string;
  /** The id that the caller knows the answer by. */
  answerId?: string;
  /** Why the answer ended, in OpenAI's words. */
  finishReason?: string;
  /** Ms since the epoch. */
  firstOutputAt?: number;
}

/** A request of which money is held. Most leave no row; see {@link UsageStore.open}. */
export interface Intent {
  /** Also the id of its hold: [a-z0-9_]{8,40}. */
  requestId: string;
  accountId: string;
  keyId: string;
  operation: TextOperation;
  modelId: string;
  catalogVersion: string;
  price: TextPrice;
  /** Its output may fall when the money is held. */
  bounds: TokenBounds;
  /** USD micros: the most that is held, or, in a row that was written after that, what is held. */
  holdAmount: bigint;
  /** As sent to billing, for a repeat of the same reserve; ms since the epoch. */
  holdCheckAt: number;
  /** The process that runs it: an id that is new at each start. */
  owner: string;
  openedAt: number;
  /** Until when its row counts as alive without a checkpoint; ms since the epoch. */
  leaseUntil: number;
  /** Tokens at the last checkpoint: what is charged if the process dies. */
  inputTokens: number;
  outputTokens: number;
  /** The caller's Idempotency-Key and the fingerprint of the body; absent: none. */
  idempotency?: { key: string; fingerprint: string };
  told?: Told;
}

/** What a request costs, once that is decided. */
export interface Charge {
  /** USD micros; undefined: nothing, the hold is released. */
  amount: bigint | undefined;
  input: number;
  cachedInput: number;
  output: number;
  /** Of the output, tokens of reasoning that upstream told of. Absent: none, or an older release wrote this. */
  reasoning?: number | undefined;
  /** Counted by us, not reported. */
  estimated: boolean;
}

/**
 * The complete answer of a request with an idempotency key; `not_kept`: it was given, but is too large to be stored, or its
 * account has too many.
 */
export type KeptAnswer = Uint8Array | "not_kept";

/** How a request is closed: once, by the process that comes first. */
export interface Closing {
  kind: "settling";
  end: EndKind;
  charge: Charge;
  answer?: KeptAnswer;
  /** Kept beside the answer: what the header names of it. Absent: nothing. */
  ignored?: readonly string[];
  /** Absent: what stands in the row. */
  told?: Told;
}

/** Until when kept bytes count, in ms since the epoch, and how many an account may have. */
export interface KeptCount {
  now: number;
  until: number;
  most: number;
}

/** Usage that an upstream reported and that cannot be: for the operator to look into. */
export interface Review {
  requestId: string;
  accountId: string;
  modelId: string;
  /** JSON of numbers. */
  reported: string;
  /** USD micros that were charged, by our count; undefined: an older release left its hold to the operator. */
  charged: bigint | undefined;
  /** Ms since the epoch. */
  at: number;
}

/** What a checkpoint writes down. */
export interface Seen extends Pick<Intent, "inputTokens" | "outputTokens" | "leaseUntil"> {
  /** Absent: what stands in the row. */
  told?: Told;
}

/** Who closes: the process that runs it, or any once its lease is over at `now`. */
export type Closer = { owner: string } | { leaseOverAt: number };

/** A request as it stands. */
export interface UsageRecord extends Intent {
  status: "open" | "settling" | "review" | "closed";
  /** False in rows that older releases wrote before they held money, and that were not sent upstream. */
  dispatched: boolean;
  /** Set from `settling` on. */
  charge?: Charge;
  /** Set in `review`, in which older releases put requests. */
  reported?: string;
  end?: EndKind;
  closedAt?: number;
}

/** What stands under an idempotency key. */
export interface KeyedRecord {
  requestId: string;
  /** The id that the caller knows the answer by. Absent: an older release wrote the row. */
  answerId?: string;
  fingerprint: string;
  /** Undefined while it runs. */
  answer: KeptAnswer | undefined;
  /** Properties of the request that had no effect. Absent: none, or the answer is an older release's. */
  ignored?: readonly string[];
  /** USD micros that it cost; undefined while it runs, and where that is not decided. */
  cost: bigint | undefined;
}

/**
 * Where requests and what they cost are written down. Every method is one transition of one record, atomic and durable
 * when its promise resolves, and safe to repeat; conditions hold at the moment of the change (compare-and-set). All
 * reads see what was acknowledged before they began. All refuse with SERVICE_UNAVAILABLE where the store is away; whether
 * the change was made is then not known.
 */
export interface UsageStore extends PutOffWork {
  /** Makes tables, collections and indexes. To be called once, before all else. */
  prepare(): Promise<void>;
  /**
   * Writes a row, with status `open`: of a request with an idempotency key before its money is held, of any other at its
   * first checkpoint. False where its idempotency slot is taken: nothing is written then. An answer whose time is over at
   * `openedAt` takes no slot. A repeat of the same intent answers true. `signal`: its caller has left; where others ask for the same slot
   * before it, it may be rejected with the signal's reason, and nothing is written then.
   */
  open(intent: Intent, signal?: AbortSignal): Promise<boolean>;
  /** Writes down what was seen: `open` and still the owner's, else false. Moves the lease. */
  checkpoint(requestId: string, owner: string, seen: Seen): Promise<boolean>;
  /**
   * The one closer: from `open` to `settling`, else false. Without an answer its idempotency slot is free from then on;
   * with one, kept or not, the slot stays taken, and the answer is found there. `dueAt`: when others take it up.
   */
  close(
    requestId: string,
    closer: Closer,
    closing: Closing,
    at: { now: number; dueAt: number },
  ): Promise<boolean>;
  /**
   * The hold is ended: from `settling` or `review` to `closed`, and, without an idempotency key, from `open` too. One with an
   * answer stays until `keepUntil` (ms since the epoch), any other is deleted; the ledger's entries are its trace. Its charge
   * is from then on what was drawn. Does nothing where it is not found.
   */
  finish(requestId: string, keepUntil: number, charged: bigint): Promise<void>;
  /** Deletes an `open` request of the owner that was not sent upstream. */
  withdraw(requestId: string, owner: string): Promise<void>;
  /** Tries a `settling` or `review` request again at `dueAt`, not before. */
  defer(requestId: string, dueAt: number): Promise<void>;

  /**
   * Counts bytes that are about to be kept for an account. False, and nothing is counted, where it would then have more than
   * `most`. What is counted stays so until `until`, also where the bytes were never kept.
   */
  countKept(accountId: string, bytes: number, at: KeptCount): Promise<boolean>;

  /** Undefined where there is none: it was never written, or is closed and deleted. */
  find(requestId: string): Promise<UsageRecord | undefined>;
  /** What stands in an idempotency slot; an answer past its time is not found. */
  findByKey(slot: IdempotencySlot, now: number): Promise<KeyedRecord | undefined>;
  /** `open` past their lease, `settling` and `review` that are due: read by one index, the longest due first. */
  due(now: number, limit: number): Promise<UsageRecord[]>;
  /** Writes down a review, to be shown until `until`, the same time after `at` for all. A repeat changes nothing. */
  noteReview(review: Review, until: number): Promise<void>;
  /** Reviews, oldest first; of one account, or all. */
  reviews(accountId: string | undefined, limit: number): Promise<Review[]>;

  /** Remembers who opaque states were made for, until `until`; a repeat moves that. */
  rememberMakers(makers: readonly OpaqueMaker[], until: number): Promise<void>;
  /** Makers of these hashes, of every account, that are not forgotten at `now`. */
  findMakers(hashes: readonly string[], now: number): Promise<OpaqueMaker[]>;

  /** Deletes up to `limit` answers that are kept for these keys, by an index; answers how many went. */
  eraseKept(keyIds: readonly string[], limit: number): Promise<number>;
  /** Deletes up to `limit` answers, makers, reviews and counts of each whose time is over; answers how many went. */
  forget(now: number, limit: number): Promise<number>;
}
