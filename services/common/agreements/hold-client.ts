// Says how the services that have work paid open a hold at billing and end it, and tries an operation again where its outcome is
// unknown. The way of one attempt is not decided here: `hold-wire.ts` sends it to another process, and billing itself takes it in
// the same one.

import { ErrorReason, isRefusal, unavailable } from "#kit/base/errors.ts";
import type { Payers } from "#kit/share/payers.ts";
import type { Clock } from "#kit/time/clock.ts";
import type { HoldKind, HoldState, Unit } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import type { Admission, KeyLimitReset } from "#proto/genmesh/common/v1/access_pb.ts";
import type { PricedRecord } from "./priced-record.ts";

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

/**
 * The part of a request that billing keeps, as `billing_service.proto` describes it. Numbers are whole, times in ms since the epoch.
 * An absent field is empty or 0.
 */
export interface RequestRecord {
  model?: string | undefined;
  operation?: string | undefined;
  status?: string | undefined;
  streamed?: boolean | undefined;
  estimated?: boolean | undefined;
  upstream?: string | undefined;
  inputTokens?: number | undefined;
  cachedInputTokens?: number | undefined;
  outputTokens?: number | undefined;
  reasoningTokens?: number | undefined;
  startMs?: number | undefined;
  firstOutputMs?: number | undefined;
  endMs?: number | undefined;
  characters?: number | undefined;
  images?: number | undefined;
  mediaMs?: number | undefined;
  answerId?: string | undefined;
  requestId?: string | undefined;
  finishReason?: string | undefined;
  /** Parts that have prices of their own, and their upstream's cost. */
  priced?: PricedRecord | undefined;
  failure?: RequestFailure | undefined;
  failedTries?: readonly FailedTry[] | undefined;
}

/** A try of a request at an upstream that failed. Only operators see it. */
export interface FailedTry {
  /** The upstream with one of its keys, by the key's place. */
  lane: string;
  /** The kind of the failure, as the log names it. */
  kind: string;
  /** The HTTP status. Absent or 0: it gave none. */
  status?: number | undefined;
}

/** The failed tries that a record names at most, the newest. A job may be offered for a day. */
export const maxFailedTries = 8;

/** Why a request failed. */
export interface RequestFailure {
  /** The code of the error that its caller got. */
  code: string;
  /** The kind of the upstream's failure, and its HTTP status. Only operators see them. */
  upstreamKind?: string | undefined;
  upstreamStatus?: number | undefined;
}

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

/** An ended hold. */
export interface Ended {
  state: HoldState;
  /** The charge, in the unit. */
  chargedAmount: bigint;
  /** It was ended before. */
  replayed: boolean;
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
   * operation is still under way. Refuses with SERVICE_UNAVAILABLE where the request was ended meanwhile.
   */
  open(hold: NewHold, options?: HoldCallOptions): Promise<Reserved>;
  /** Ends a hold by its request's charge. Answers what was charged, by this call or an earlier one. Never refused. */
  draw(drawn: Drawn, options?: HoldCallOptions): Promise<bigint>;
  /** Ends a hold by charging min(amount, hold), or answers how it ended before. Refuses with HOLD_NOT_FOUND. */
  settle(hold: Settled, options?: HoldCallOptions): Promise<Ended>;
  /** Ends a hold without a charge, or answers how it ended before. Refuses with HOLD_NOT_FOUND. */
  release(hold: Released, options?: HoldCallOptions): Promise<Ended>;
}

/**
 * One attempt of each operation, which may take some milliseconds: over the wire, or at the billing of the same process. Refuses as
 * {@link HoldClient} does. After SERVICE_UNAVAILABLE the outcome is unknown.
 */
export interface HoldOperations {
  reserve(hold: NewHold, timeoutMs: number): Promise<Reserved>;
  draw(drawn: Drawn, timeoutMs: number): Promise<bigint>;
  settle(settled: Settled, timeoutMs: number): Promise<Ended>;
  release(released: Released, timeoutMs: number): Promise<Ended>;
}

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

/** Makes the error of an operation that is given up, after this many attempts. */
type Refused = (error: unknown, attempts: number) => Promise<unknown>;

/** Makes the client. `payers` gets each account whose money is held. An operation is tried again where that makes sense. */
export function createHoldClient(
  operations: HoldOperations,
  { clock, payers }: { clock: Clock; payers?: Pick<Payers, "paid"> | undefined },
): HoldClient {
  return new HoldCalls(operations, clock, payers);
}

class HoldCalls implements HoldClient {
  readonly #operations: HoldOperations;
  readonly #clock: Clock;
  readonly #payers: Pick<Payers, "paid"> | undefined;
  #waiting = 0;

  constructor(operations: HoldOperations, clock: Clock, payers: Pick<Payers, "paid"> | undefined) {
    this.#operations = operations;
    this.#clock = clock;
    this.#payers = payers;
  }

  reserve(hold: NewHold, options?: HoldCallOptions, refused?: Refused): Promise<Reserved> {
    const taken = ({ held }: Reserved) => {
      if (held > 0n) this.#payers?.paid(hold.accountId);
    };
    return this.#withTries(this.#operations.reserve, hold, options, taken, refused);
  }

  open(hold: NewHold, options?: HoldCallOptions): Promise<Reserved> {
    return this.reserve(hold, options, async (error, attempts) => {
      // Only after the first attempt's refusal can no copy be under way.
      const mayBeOpened = attempts > 1 && !isRefusal(error, ErrorReason.SERVICE_UNAVAILABLE);
      if (mayBeOpened) await this.draw({ ...hold, amount: 0n });
      // Another process has taken the request over meanwhile, and ended it without a charge.
      return isRefusal(error, ErrorReason.OPERATION_CONFLICT) ? unavailable() : error;
    });
  }

  draw(drawn: Drawn, options?: HoldCallOptions): Promise<bigint> {
    return this.#withTries(this.#operations.draw, drawn, options);
  }

  settle(settled: Settled, options?: HoldCallOptions): Promise<Ended> {
    return this.#withTries(this.#operations.settle, settled, options);
  }

  release(released: Released, options?: HoldCallOptions): Promise<Ended> {
    return this.#withTries(this.#operations.release, released, options);
  }

  /** Makes attempts until one has an outcome. The same operation id makes that safe. */
  #withTries<I, T>(
    operation: (input: I, timeoutMs: number) => Promise<T>,
    input: I,
    { timeoutMs = defaultTimeoutMs }: HoldCallOptions = {},
    taken?: (result: T) => void,
    refused?: Refused,
  ): Promise<T> {
    if (this.#waiting >= maxWaiting) return Promise.reject(unavailable());
    this.#waiting++;
    const clock = this.#clock;
    const deadline = clock.steady() + Math.max(timeoutMs, minAttemptMs);
    let attempts = 1;
    const done = (result: T) => {
      this.#waiting--;
      taken?.(result);
      return result;
    };
    const failed = async (error: unknown): Promise<T> => {
      const pauseMs = firstPauseMs * 3 ** (attempts - 1);
      const isInTime = clock.steady() + pauseMs + minAttemptMs <= deadline;
      const isWorthIt = isRefusal(error, ErrorReason.SERVICE_UNAVAILABLE) && isInTime;
      if (isWorthIt && attempts < maxAttempts) {
        await clock.sleep(pauseMs);
        attempts++;
        const leftMs = Math.max(deadline - clock.steady(), minAttemptMs);
        return operation(input, Math.min(leftMs, attemptTimeoutMs)).then(done, failed);
      }
      this.#waiting--;
      throw refused ? await refused(error, attempts) : error;
    };
    const firstMs = Math.min(Math.max(timeoutMs, minAttemptMs), attemptTimeoutMs);
    return operation(input, firstMs).then(done, failed);
  }
}
