import type { PutOffWork } from "#kit/lease-time.ts";
import type { TextPrice, TokenBounds } from "./pricing.ts";
import type { OpaqueMaker } from "./request/opaque.ts";
import type { TextOperation } from "./upstream/port.ts";
import type { EndKind } from "./usage.ts";

/** Under what a request is found again by its caller: unique while it runs and while its answer is kept. */
export interface IdempotencySlot {
  keyId: string;
  operation: TextOperation;
  /** The caller's Idempotency-Key. */
  key: string;
}

/** A request as it is written before any money is held for it (docs/money.md). */
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
  /** USD micros: the most that is held, and once that is confirmed what is held. */
  holdAmount: bigint;
  /** As sent to billing, for a repeat of the same reserve; ms since the epoch. */
  holdCheckAt: number;
  /** Input tokens that are charged if the process dies before its first checkpoint. */
  inputTokens: number;
  /** The process that runs it. */
  owner: string;
  openedAt: number;
  /** Until when it counts as alive without a checkpoint; ms since the epoch. */
  leaseUntil: number;
  /** The caller's Idempotency-Key and the fingerprint of the body; absent: none. */
  idempotency?: { key: string; fingerprint: string };
}

/** What the hold of a request came to. */
export type HeldBounds = Pick<Intent, "bounds" | "holdAmount">;

/** What a request costs, once that is decided. */
export interface Charge {
  /** USD micros; undefined: nothing, the hold is released. */
  amount: bigint | undefined;
  input: number;
  cachedInput: number;
  output: number;
  /** Counted by us, not reported. */
  estimated: boolean;
}

/** The complete answer of a request with an idempotency key; `not_kept`: it was given, but is too large to be stored. */
export type KeptAnswer = Uint8Array | "not_kept";

/** How a request is closed: once, by whoever comes first. */
export interface Closing {
  kind: "settling";
  end: EndKind;
  charge: Charge;
  answer?: KeptAnswer;
  /** Kept beside the answer: what the header names of it. Absent: nothing. */
  ignored?: readonly string[];
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

/** Who closes: the process that runs it, or any once its lease is over at `now`. */
export type Closer = { owner: string } | { leaseOverAt: number };

/** A request as it stands. */
export interface UsageRecord extends Intent {
  status: "open" | "settling" | "review" | "closed";
  /** Set once it may have been sent upstream. */
  dispatched: boolean;
  /** Output tokens at the last checkpoint. */
  outputTokens: number;
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
   * Writes an intent, with status `open`, undispatched. False where its idempotency slot is taken: nothing is written
   * then. An answer whose time is over at `openedAt` takes no slot. A repeat of the same intent answers true.
   */
  open(intent: Intent): Promise<boolean>;
  /** Its money is held, and from now on it may be upstream: `open` and still the owner's, else false. Moves the lease. */
  confirm(requestId: string, owner: string, leaseUntil: number, held: HeldBounds): Promise<boolean>;
  /** Writes down what was seen: `open` and still the owner's, else false. Moves the lease. */
  checkpoint(
    requestId: string,
    owner: string,
    seen: { inputTokens: number; outputTokens: number; leaseUntil: number },
  ): Promise<boolean>;
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
   * The hold is ended: from `settling` or `review` to `closed`. One with an answer stays until `keepUntil` (ms since the
   * epoch), any other is deleted; the ledger's entries are its trace. Does nothing where it is not found.
   */
  finish(requestId: string, keepUntil: number): Promise<void>;
  /** Deletes an undispatched `open` request of the owner whose reserve was refused: there is no hold. */
  withdraw(requestId: string, owner: string): Promise<void>;
  /** Tries a `settling` or `review` request again at `dueAt`, not before. */
  defer(requestId: string, dueAt: number): Promise<void>;

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

  /** Deletes up to `limit` answers, makers and reviews of each whose time is over; answers how many went. */
  forget(now: number, limit: number): Promise<number>;
}
