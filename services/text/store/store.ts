// The contract of text's store: running requests, their charges, recorded answers and makers of sealed state. Its two forms are
// `store-sqlite.ts` and `store-mongo.ts`.

import type { FailedTry, RequestFailure } from "#common/agreements/hold-client.ts";
import type { PutOffWork } from "#kit/time/lease-time.ts";
import type { TextOperation } from "../../upstreams/text/port.ts";
import type { EndKind } from "../metering/charge.ts";
import type { ChargedTokens, TextPrice, TokenBounds } from "../metering/pricing.ts";
import type { OpaqueMaker } from "../request/opaque.ts";

/** The slot in which a caller finds a request again. Only one request has it while it runs and while its answer is kept. */
export interface IdempotencySlot {
  keyId: string;
  operation: TextOperation;
  /** The caller's Idempotency-Key. */
  key: string;
}

/**
 * Facts of a request for its record, beside the charge. The process that ends the request reads them. A fact is absent where it is
 * unknown, or where an earlier version wrote the row.
 */
export interface Told {
  /** The caller's HTTP request. */
  callId?: string;
  /** The caller asked for a stream. */
  streamed?: boolean;
  /** Name of the upstream that answered. */
  upstream?: string;
  /** Tries at upstreams that failed before. */
  failedTries?: readonly FailedTry[];
  /** The answer's id that the caller knows. */
  answerId?: string;
  /** Why the answer ended, in OpenAI's words. */
  finishReason?: string;
  /** Why the request failed. */
  failure?: RequestFailure;
  /** Ms since the epoch. */
  firstOutputAt?: number;
}

/** A request with a hold. Most requests leave no row. See {@link UsageStore.open}. */
export interface Intent {
  /** Also the id of its hold: [a-z0-9_]{8,40}. */
  requestId: string;
  accountId: string;
  keyId: string;
  operation: TextOperation;
  modelId: string;
  catalogVersion: string;
  price: TextPrice;
  /** The bound of the output may fall when the money is held. */
  bounds: TokenBounds;
  /** USD micros. The most that may be held, or the held amount where the row was written after the hold. */
  holdAmount: bigint;
  /** The `checkAt` that billing got. A repeat of the hold sends the same. Ms since the epoch. */
  holdCheckAt: number;
  /** The process that runs the request: an id that is new at each start. */
  owner: string;
  openedAt: number;
  /** The row counts as alive until then without a checkpoint. Ms since the epoch. */
  leaseUntil: number;
  /** Tokens at the last checkpoint. They are charged if the process dies. */
  inputTokens: number;
  outputTokens: number;
  /** The caller's Idempotency-Key and the fingerprint of the body. Absent means none. */
  idempotency?: { key: string; fingerprint: string };
  told?: Told;
}

/** The decided charge of a request, with its tokens. */
export interface Charge extends ChargedTokens {
  /** USD micros. Undefined means no charge: the hold is released. */
  amount: bigint | undefined;
  /** The bound of the price's row for a long input. Absent: the row without a bound. */
  priceAbove?: number;
  /** USD micros that the operator pays the upstream. Absent: unknown. */
  upstreamCost?: bigint;
  /** The source of that figure: the upstream's own report, or the catalog. */
  upstreamCostSource?: "reported" | "catalog";
  /** Of the output, the tokens of reasoning that the upstream reported. Absent means none, or a charge of an earlier version. */
  reasoning?: number | undefined;
  /** Counted by genmesh, not reported by the upstream. */
  estimated: boolean;
}

/**
 * The complete answer of a request with an idempotency key. `not_kept` means that the caller got the answer, but it is not stored.
 * It is too large, or its account has too many.
 */
export type KeptAnswer = Uint8Array | "not_kept";

/** The closing of a request. Only one process closes it: the first. */
export interface Closing {
  kind: "settling";
  end: EndKind;
  charge: Charge;
  answer?: KeptAnswer;
  /** Properties of the request that had no effect, stored with the answer. Absent means none. */
  ignored?: readonly string[];
  /** Absent means that the facts in the row stay. */
  told?: Told;
}

/** The time until which kept bytes count, in ms since the epoch, and the most that an account may have. */
export interface KeptCount {
  now: number;
  until: number;
  most: number;
}

/** Usage that an upstream reported and that is impossible. The operator looks into it. */
export interface Review {
  requestId: string;
  accountId: string;
  modelId: string;
  /** JSON of numbers. */
  reported: string;
  /** USD micros that were charged, as genmesh counted. Undefined where an earlier version left the hold to the operator. */
  charged: bigint | undefined;
  /** Ms since the epoch. */
  at: number;
}

/** The values that a checkpoint writes. */
export interface Seen extends Pick<Intent, "inputTokens" | "outputTokens" | "leaseUntil"> {
  /** Absent means that the facts in the row stay. */
  told?: Told;
}

/** The process that runs the request, or any process once the lease is over at `leaseOverAt`. */
export type Closer = { owner: string } | { leaseOverAt: number };

/** A request in its present state. */
export interface UsageRecord extends Intent {
  status: "open" | "settling" | "review" | "closed";
  /** False where an earlier version wrote the row before it held money, and the request was not sent upstream. */
  dispatched: boolean;
  /** Set from `settling` on. */
  charge?: Charge;
  /** Set in `review`. Only earlier versions put requests in review. */
  reported?: string;
  end?: EndKind;
  closedAt?: number;
}

/** The request under an idempotency key. */
export interface KeyedRecord {
  requestId: string;
  /** The answer's id that the caller knows. Absent where an earlier version wrote the row. */
  answerId?: string;
  fingerprint: string;
  /** Undefined while the request runs. */
  answer: KeptAnswer | undefined;
  /** Properties of the request that had no effect. Absent means none, or an answer of an earlier version. */
  ignored?: readonly string[];
  /** USD micros of the charge. Undefined while the request runs, and where the charge is not decided. */
  cost: bigint | undefined;
}

/**
 * Stores requests and their charges. Every method is one transition of one record, atomic and durable when its promise resolves,
 * and safe to repeat. Conditions apply at the moment of the change (compare-and-set). All reads see each change that was
 * acknowledged before they began. All methods refuse with SERVICE_UNAVAILABLE where the store is away. Whether the change was made
 * is then not known.
 */
export interface UsageStore extends PutOffWork {
  /** Makes tables, collections and indexes. To be called once, before all else. */
  prepare(): Promise<void>;
  /**
   * Writes a row with status `open`. A request with an idempotency key gets its row before its money is held, any other request at
   * its first checkpoint. False where the request's idempotency slot is taken: then nothing is written. An answer whose time has
   * ended at `openedAt` takes no slot. A repeat of the same intent answers true.
   *
   * `signal` aborts when the caller has left. If the intent still waits for other requests in its slot, the call may reject with
   * the signal's reason. Then nothing is written.
   */
  open(intent: Intent, signal?: AbortSignal): Promise<boolean>;
  /** Writes the values of a checkpoint and moves the lease. False where the request is not `open`, or not the owner's. */
  checkpoint(requestId: string, owner: string, seen: Seen): Promise<boolean>;
  /**
   * Closes a request: from `open` to `settling`. False where it is not `open`, or the closer may not close it. Without an answer
   * its idempotency slot is free from then on. With an answer, kept or not, the slot stays taken, and the answer is found there.
   * `dueAt` is the time from which any process may go on with the request.
   */
  close(
    requestId: string,
    closer: Closer,
    closing: Closing,
    at: { now: number; dueAt: number },
  ): Promise<boolean>;
  /**
   * Ends a request whose hold has ended: from `settling` or `review` to `closed`. Without an idempotency key also from `open`. A
   * request with an answer stays until `keepUntil` (ms since the epoch), with `charged` as its charge. Any other request is
   * deleted, and the ledger's entries record it. Does nothing where no request is found.
   */
  finish(requestId: string, keepUntil: number, charged: bigint): Promise<void>;
  /** Deletes an `open` request of the owner that was not sent upstream. */
  withdraw(requestId: string, owner: string): Promise<void>;
  /** Sets the next attempt for a `settling` or `review` request to `dueAt`. */
  defer(requestId: string, dueAt: number): Promise<void>;

  /**
   * Counts bytes that are about to be kept for an account. False where the account would then have more than `most`: then nothing
   * is counted. Counted bytes count until `until`, also where they were never kept.
   */
  countKept(accountId: string, bytes: number, at: KeptCount): Promise<boolean>;

  /** Undefined where the request was never written, or is closed and deleted. */
  find(requestId: string): Promise<UsageRecord | undefined>;
  /** The request in an idempotency slot. An answer whose time has ended is not found. */
  findByKey(slot: IdempotencySlot, now: number): Promise<KeyedRecord | undefined>;
  /**
   * Requests that are `open` past their lease, and `settling` and `review` requests that are due. By one index, the longest due
   * first.
   */
  due(now: number, limit: number): Promise<UsageRecord[]>;
  /** Writes a review, which is listed until `until`. That is the same time after `at` for all reviews. A repeat changes nothing. */
  noteReview(review: Review, until: number): Promise<void>;
  /** Reviews of one account, or of all, oldest first. */
  reviews(accountId: string | undefined, limit: number): Promise<Review[]>;

  /** Remembers makers of opaque states until `until`. A repeat moves that time. */
  rememberMakers(makers: readonly OpaqueMaker[], until: number): Promise<void>;
  /** Makers of these hashes, of every account, whose time has not ended at `now`. */
  findMakers(hashes: readonly string[], now: number): Promise<OpaqueMaker[]>;

  /** Deletes up to `limit` kept answers of these keys, by an index. Answers the number of deleted answers. */
  eraseKept(keyIds: readonly string[], limit: number): Promise<number>;
  /** Deletes up to `limit` of each: answers, makers, reviews and counts whose time has ended. Answers the number of all deleted. */
  forget(now: number, limit: number): Promise<number>;
}
