import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Client } from "@connectrpc/connect";
import { createBatchWait } from "#kit/base/batching.ts";
import {
  ErrorReason,
  isRefusal,
  knownReason,
  RefusalError,
  unavailable,
} from "#kit/base/errors.ts";
import type { Payers } from "#kit/share/payers.ts";
import type { Clock } from "#kit/time/clock.ts";
import {
  type BillingService,
  DrawRequestSchema,
  type HoldKind,
  type HoldState,
  type Operation,
  OperationSchema,
  type Outcome,
  type Refusal,
  ReleaseRequestSchema,
  type ReleaseResponse,
  type RequestRecordSchema,
  ReserveRequestSchema,
  SettleRequestSchema,
  type SettleResponse,
  type Unit,
} from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import type { Admission, KeyLimitReset } from "#proto/genmesh/common/v1/access_pb.ts";

/** Names a hold. */
export interface HoldRef {
  accountId: string;
  unit: Unit;
  /** [a-z0-9_]{8,40}, unique in the wallet for ever. Make one for each request or job that is paid for. */
  holdId: string;
}

/** The most that a key may have charged and held in a period. */
export interface KeyLimit {
  /** 0 or more. */
  usdMicros: bigint;
  reset: KeyLimitReset;
}

/** The limit that the edge sends for a request's key. Undefined: it has none. */
export function keyLimitOf(admission: Admission | undefined): KeyLimit | undefined {
  const usdMicros = admission?.monthlyUsdMicrosLimit;
  return admission && usdMicros !== undefined
    ? { usdMicros, reset: admission.limitReset }
    : undefined;
}

/** A hold to be opened. A repeat must bring the same content, except for {@link NewHold.keyLimit}. */
export interface NewHold extends HoldRef {
  /** 0 or more, in the unit. */
  amount: bigint;
  kind: HoldKind;
  /** The key that pays. */
  keyId: string;
  /** Id of the job or request, up to 100 characters. */
  ref: string;
  /** When billing asks the owner about it, in ms since the epoch. It is content: a repeat brings the same time. */
  checkTimeMs: number;
  /** Absent: none. */
  keyLimit?: KeyLimit | undefined;
  /**
   * The least amount that the hold may take, 0 up to the amount, where wallet or key have less. It then takes what they have. Absent:
   * all of it.
   */
  least?: bigint | undefined;
}

/** The part of a request that billing keeps, as `billing_service.proto` describes it. */
export type RequestRecord = MessageInitShape<typeof RequestRecordSchema>;

/** A request's charge. */
export interface Drawn extends HoldRef {
  /** 0 or more, in the unit. */
  amount: bigint;
  /** The key that pays. */
  keyId: string;
  record?: RequestRecord | undefined;
  /**
   * Where the hold is closed already, the charge is taken from the free balance, within the key's limit. Absent: nothing is charged.
   */
  fromFree?: { keyLimit: KeyLimit | undefined } | undefined;
}

/** A hold that ends without a charge. */
export interface Released extends HoldRef {
  /** The journal's record of unpaid work. Absent: no work was begun. */
  record?: RequestRecord | undefined;
}

/** A hold that ends with a charge. */
export interface Settled extends Released {
  /** 0 or more, in the unit. */
  amount: bigint;
}

/** An opened hold. */
export interface Reserved {
  /** Its state now. */
  state: HoldState;
  /** The amount that was held when it was opened, in the unit. */
  held: bigint;
}

/** The reasons with which billing refuses a hold for good. After one of them there is no hold. */
export const noHoldReasons = [
  ErrorReason.INSUFFICIENT_CREDITS,
  ErrorReason.INSUFFICIENT_BALANCE,
  ErrorReason.KEY_LIMIT_EXCEEDED,
  ErrorReason.TOO_MANY_OPEN_REQUESTS,
  // The reason in an older billing that lacks TOO_MANY_OPEN_REQUESTS.
  ErrorReason.RATE_LIMIT_EXCEEDED,
] as const;

/** How long one operation may take. */
export interface HoldCallOptions {
  /** Milliseconds, retries included. Default: 5,000, at least 50. After that it is SERVICE_UNAVAILABLE, with the outcome unknown. */
  timeoutMs?: number;
}

/**
 * The operations of billing that owners of holds use. Each is idempotent. After SERVICE_UNAVAILABLE the outcome is unknown, so make the
 * same one again. Refusals are RefusalErrors, as of single calls. Await the opening of a hold before you end it: operations that wait
 * at the same time may overtake each other.
 */
export interface HoldClient {
  /** Opens a hold. Refuses as BillingService.Reserve does. */
  reserve(hold: NewHold, options?: HoldCallOptions): Promise<Reserved>;
  /**
   * Like {@link reserve}, for a hold that is ended by `draw`. After a refusal the hold can never be opened, even where a copy of the
   * operation is still under way.
   */
  open(hold: NewHold, options?: HoldCallOptions): Promise<Reserved>;
  /** Ends a hold by its request's charge. Answers what was charged, by this call or an earlier one. Never refused. */
  draw(drawn: Drawn, options?: HoldCallOptions): Promise<bigint>;
  /** Ends a hold by charging min(amount, hold), or answers how it ended before. Refuses with HOLD_NOT_FOUND. */
  settle(hold: Settled, options?: HoldCallOptions): Promise<SettleResponse>;
  /** Ends a hold without a charge, or answers how it ended before. Refuses with HOLD_NOT_FOUND. */
  release(hold: Released, options?: HoldCallOptions): Promise<ReleaseResponse>;
}

/** Operations in one message: the most that Apply takes. */
const maxOperations = 256;
/** Operations that wait for an answer. A billing service that does not answer must not fill the memory. */
const maxWaiting = 16_384;
/** Default time of an operation, in ms. A client at the edge has not given up by then. */
const defaultTimeoutMs = 5_000;
/** Milliseconds of one attempt. A lost reply is noticed in time for another attempt. */
const attemptTimeoutMs = 2_000;
/** Least milliseconds in which an attempt can succeed. With less time left, none is made. */
const minAttemptMs = 50;
/** Attempts in all. */
const maxAttempts = 4;
/**
 * Pause after the first failed attempt, in ms. Each further one is three times as long: 1.3 s in all, in which a process is replaced.
 */
const firstPauseMs = 100;

/** How often an operation was sent without success. */
interface Tried {
  attempts: number;
}

/** An operation that waits for its outcome. */
interface Waiting {
  operation: Operation;
  /** Milliseconds since the epoch. */
  deadline: number;
  tried: Tried;
  resolve: (outcome: Outcome["outcome"]) => void;
  reject: (error: unknown) => void;
}

/**
 * Makes the client. `payers` gets each account whose money is held. Operations of one turn of the event loop travel as one Apply. An
 * operation that is alone is sent at once.
 */
export function createHoldClient(
  billing: Pick<Client<typeof BillingService>, "apply">,
  { clock, payers }: { clock: Clock; payers?: Pick<Payers, "paid"> | undefined },
): HoldClient {
  return new HoldCalls(new OperationQueue(billing, clock), payers);
}

/** Makes each call of a {@link HoldClient} one operation. */
class HoldCalls implements HoldClient {
  readonly #operations: OperationQueue;
  readonly #payers: Pick<Payers, "paid"> | undefined;

  constructor(operations: OperationQueue, payers: Pick<Payers, "paid"> | undefined) {
    this.#operations = operations;
    this.#payers = payers;
  }

  reserve(hold: NewHold, options?: HoldCallOptions): Promise<Reserved> {
    return this.#reserve(hold, options, { attempts: 0 });
  }

  async open(hold: NewHold, options?: HoldCallOptions): Promise<Reserved> {
    const tried = { attempts: 0 };
    try {
      return await this.#reserve(hold, options, tried);
    } catch (error) {
      // Only after the first attempt's refusal can no copy be under way.
      const mayBeOpened = tried.attempts > 1;
      if (mayBeOpened && !isRefusal(error, ErrorReason.SERVICE_UNAVAILABLE)) {
        await this.draw({ ...hold, amount: 0n });
      }
      throw error;
    }
  }

  async draw(drawn: Drawn, options?: HoldCallOptions): Promise<bigint> {
    const { accountId, unit, holdId, amount, keyId, record, fromFree } = drawn;
    const value = create(DrawRequestSchema, {
      accountId,
      unit,
      holdId,
      amount,
      keyId,
      ...(record ? { record } : {}),
      fromFree: fromFree !== undefined,
      ...limitFields(fromFree?.keyLimit),
    });
    const outcome = await this.#operations.add({ case: "draw", value }, options);
    return outcome.case === "draw" ? outcome.value.chargedAmount : unexpected(outcome);
  }

  async settle(settled: Settled, options?: HoldCallOptions): Promise<SettleResponse> {
    const { accountId, unit, holdId, amount, record } = settled;
    const hold = { accountId, unit, holdId, ...(record ? { record } : {}) };
    const value = create(SettleRequestSchema, { ...hold, amount });
    const outcome = await this.#operations.add({ case: "settle", value }, options);
    return outcome.case === "settle" ? outcome.value : unexpected(outcome);
  }

  async release(released: Released, options?: HoldCallOptions): Promise<ReleaseResponse> {
    const { accountId, unit, holdId, record } = released;
    const hold = { accountId, unit, holdId, ...(record ? { record } : {}) };
    const value = create(ReleaseRequestSchema, hold);
    const outcome = await this.#operations.add({ case: "release", value }, options);
    return outcome.case === "release" ? outcome.value : unexpected(outcome);
  }

  async #reserve(
    hold: NewHold,
    options: HoldCallOptions | undefined,
    tried: Tried,
  ): Promise<Reserved> {
    const { accountId, unit, holdId, amount, kind, keyId, ref, keyLimit, least } = hold;
    const value = create(ReserveRequestSchema, {
      accountId,
      unit,
      holdId,
      amount,
      kind,
      keyId,
      ref,
      checkTime: timestampFromMs(hold.checkTimeMs),
      ...limitFields(keyLimit),
      ...(least === undefined ? {} : { leastAmount: least }),
    });
    const outcome = await this.#operations.add({ case: "reserve", value }, options, tried);
    if (outcome.case !== "reserve") return unexpected(outcome);
    // An older billing, without least amounts, holds the whole amount only.
    const held = outcome.value.heldAmount ?? amount;
    if (held > 0n) this.#payers?.paid(accountId);
    return { state: outcome.value.state, held };
  }
}

/** Operations on their way to billing, several in one message. Each is sent again where its attempt failed. */
class OperationQueue {
  readonly #billing: Pick<Client<typeof BillingService>, "apply">;
  readonly #clock: Clock;
  readonly #batchWait = createBatchWait();
  #queue: Waiting[] = [];
  #waiting = 0;

  constructor(billing: Pick<Client<typeof BillingService>, "apply">, clock: Clock) {
    this.#billing = billing;
    this.#clock = clock;
  }

  /** Resolves with the operation's outcome. Rejects with billing's refusal. `tried` counts the attempts. */
  async add(
    operation: Operation["operation"],
    { timeoutMs = defaultTimeoutMs }: HoldCallOptions = {},
    tried: Tried = { attempts: 0 },
  ): Promise<Outcome["outcome"]> {
    if (this.#waiting >= maxWaiting) {
      throw unavailable();
    }
    this.#waiting++;
    try {
      return await new Promise((resolve, reject) => {
        const deadline = this.#clock.steady() + Math.max(timeoutMs, minAttemptMs);
        const message = create(OperationSchema, { operation });
        this.#enqueue({ operation: message, deadline, tried, resolve, reject });
      });
    } finally {
      this.#waiting--;
    }
  }

  #enqueue(one: Waiting): void {
    this.#queue.push(one);
    if (this.#queue.length > 1) return;
    if (this.#batchWait.isWorthwhile()) setImmediate(this.#flush);
    else queueMicrotask(this.#flush);
  }

  readonly #flush = (): void => {
    const all = this.#queue;
    this.#queue = [];
    this.#batchWait.ended(all.length);
    for (let from = 0; from < all.length; from += maxOperations) {
      void this.#send(all.slice(from, from + maxOperations));
    }
  };

  async #send(batch: readonly Waiting[]): Promise<void> {
    const left = Math.min(...batch.map(({ deadline }) => deadline)) - this.#clock.steady();
    const timeoutMs = Math.max(Math.min(left, attemptTimeoutMs), minAttemptMs);
    let outcomes: readonly Outcome[];
    try {
      const operations = batch.map(({ operation }) => operation);
      outcomes = (await this.#billing.apply({ operations }, { timeoutMs })).outcomes;
    } catch (error) {
      for (const one of batch) this.#failed(one, error);
      return;
    }
    for (const [i, one] of batch.entries()) {
      const outcome = outcomes[i]?.outcome;
      if (outcome?.case === "refusal") this.#failed(one, refusalOf(outcome.value));
      else one.resolve(outcome ?? { case: undefined });
    }
  }

  /** Tries an operation again where that makes sense. The same operation id makes that safe. */
  #failed(one: Waiting, error: unknown): void {
    const { tried } = one;
    tried.attempts++;
    const pauseMs = firstPauseMs * 3 ** (tried.attempts - 1);
    const inTime = this.#clock.steady() + pauseMs + minAttemptMs <= one.deadline;
    const worthIt = isRefusal(error, ErrorReason.SERVICE_UNAVAILABLE) && inTime;
    if (worthIt && tried.attempts < maxAttempts) {
      this.#clock.sleep(pauseMs).then(() => this.#enqueue(one));
    } else one.reject(error);
  }
}

function refusalOf({ reason, message, metadata }: Refusal): RefusalError {
  const known = knownReason(reason) ?? ErrorReason.INTERNAL_ERROR;
  return new RefusalError(known, { message, metadata: { ...metadata } });
}

/** Billing answered another operation than the one that was sent. */
function unexpected(outcome: Outcome["outcome"]): never {
  throw new RefusalError(ErrorReason.INTERNAL_ERROR, {
    cause: new Error(`billing answered with ${outcome.case ?? "nothing"}`),
  });
}

// An older billing, without other periods, takes each limit for a monthly one.
function limitFields(limit: KeyLimit | undefined) {
  return limit ? { keyMonthlyLimit: limit.usdMicros, keyLimitReset: limit.reset } : {};
}
