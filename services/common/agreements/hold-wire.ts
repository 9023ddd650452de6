// Sends the operations of `hold-client.ts` to a billing service in another process, those of one moment in one message. It writes
// requests' records as messages, too.

import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Client } from "@connectrpc/connect";
import { createBatchWait } from "#kit/base/batching.ts";
import { ErrorReason, knownReason, RefusalError } from "#kit/base/errors.ts";
import type { Payers } from "#kit/share/payers.ts";
import type { Clock } from "#kit/time/clock.ts";
import {
  type BillingService,
  DrawRequestSchema,
  FailedTrySchema,
  type Operation,
  OperationSchema,
  type Outcome,
  type Refusal,
  ReleaseRequestSchema,
  type RequestRecord as RequestRecordMessage,
  RequestRecordSchema,
  ReserveRequestSchema,
  SettleRequestSchema,
} from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import {
  createHoldClient,
  type FailedTry,
  type HoldClient,
  type HoldOperations,
  type KeyLimit,
  type Released,
  type RequestFailure,
  type RequestRecord,
} from "./hold-client.ts";
import type { Peers } from "./peers.ts";
import { pricedMessage, pricedText } from "./priced-record.ts";

/** The way of a service to billing. */
export interface HoldWay {
  /** Billing in the same process. Undefined: it is behind a wire. */
  holds?: HoldOperations | undefined;
  peers: { billing: Pick<Peers["billing"], "apply"> };
  clock: Clock;
  /** Gets each account whose money is held. */
  payers?: Pick<Payers, "paid"> | undefined;
}

/** The client of holds of a service, over the wire or without one. */
export function holdClientOf({ holds, peers, ...options }: HoldWay): HoldClient {
  return createHoldClient(holds ?? createWireHolds(peers.billing), options);
}

/** Operations in one message: the most that Apply takes. */
const maxOperations = 256;

/** An operation that waits for its outcome. */
interface Waiting {
  operation: Operation;
  timeoutMs: number;
  resolve: (outcome: Outcome["outcome"]) => void;
  reject: (error: unknown) => void;
}

/**
 * The operations at a billing service behind a wire. Those of one turn of the event loop travel as one Apply. An operation that is alone
 * is sent at once.
 */
export function createWireHolds(
  billing: Pick<Client<typeof BillingService>, "apply">,
): HoldOperations {
  const queue = new OperationQueue(billing);
  return {
    async reserve(hold, timeoutMs) {
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
      const outcome = await queue.add({ case: "reserve", value }, timeoutMs);
      if (outcome.case !== "reserve") return unexpected(outcome);
      // An older billing, without least amounts, holds the whole amount only.
      return { state: outcome.value.state, held: outcome.value.heldAmount ?? amount };
    },
    async draw(drawn, timeoutMs) {
      const { accountId, unit, holdId, amount, keyId, record, fromFree } = drawn;
      const value = create(DrawRequestSchema, {
        accountId,
        unit,
        holdId,
        amount,
        keyId,
        ...(record ? { record: recordMessage(record) } : {}),
        fromFree: fromFree !== undefined,
        ...limitFields(fromFree?.keyLimit),
      });
      const outcome = await queue.add({ case: "draw", value }, timeoutMs);
      return outcome.case === "draw" ? outcome.value.chargedAmount : unexpected(outcome);
    },
    async settle(settled, timeoutMs) {
      const value = create(SettleRequestSchema, {
        ...endedFields(settled),
        amount: settled.amount,
      });
      const outcome = await queue.add({ case: "settle", value }, timeoutMs);
      return outcome.case === "settle" ? outcome.value : unexpected(outcome);
    },
    async release(released, timeoutMs) {
      const value = create(ReleaseRequestSchema, endedFields(released));
      const outcome = await queue.add({ case: "release", value }, timeoutMs);
      return outcome.case === "release" ? outcome.value : unexpected(outcome);
    },
  };
}

function endedFields({ accountId, unit, holdId, record }: Released) {
  return { accountId, unit, holdId, ...(record ? { record: recordMessage(record) } : {}) };
}

function recordMessage(record: RequestRecord): RequestRecordMessage {
  const { startMs, firstOutputMs, endMs } = record;
  return create(RequestRecordSchema, {
    model: record.model ?? "",
    operation: record.operation ?? "",
    status: record.status ?? "",
    streamed: record.streamed ?? false,
    estimated: record.estimated ?? false,
    upstream: record.upstream ?? "",
    inputTokens: BigInt(record.inputTokens ?? 0),
    cachedInputTokens: BigInt(record.cachedInputTokens ?? 0),
    outputTokens: BigInt(record.outputTokens ?? 0),
    reasoningTokens: BigInt(record.reasoningTokens ?? 0),
    characters: BigInt(record.characters ?? 0),
    images: BigInt(record.images ?? 0),
    mediaMs: BigInt(record.mediaMs ?? 0),
    answerId: record.answerId ?? "",
    requestId: record.requestId ?? "",
    finishReason: record.finishReason ?? "",
    ...(record.priced ? { priced: pricedMessage(pricedText(record.priced)) } : {}),
    ...(record.failure ? { failure: failureMessage(record.failure) } : {}),
    ...(record.failedTries ? { failedTries: record.failedTries.map(tryMessage) } : {}),
    ...(startMs === undefined ? {} : { startTime: timestampFromMs(startMs) }),
    ...(firstOutputMs === undefined ? {} : { firstOutputTime: timestampFromMs(firstOutputMs) }),
    ...(endMs === undefined ? {} : { endTime: timestampFromMs(endMs) }),
  });
}

function failureMessage({ code, upstreamKind, upstreamStatus }: RequestFailure) {
  return { code, upstreamKind: upstreamKind ?? "", upstreamStatus: upstreamStatus ?? 0 };
}

function tryMessage({ lane, kind, status = 0 }: FailedTry) {
  return create(FailedTrySchema, { lane, kind, status });
}

/** Operations on their way to billing, several in one message. */
class OperationQueue {
  readonly #billing: Pick<Client<typeof BillingService>, "apply">;
  readonly #batchWait = createBatchWait();
  #queue: Waiting[] = [];

  constructor(billing: Pick<Client<typeof BillingService>, "apply">) {
    this.#billing = billing;
  }

  /** Resolves with the operation's outcome. Rejects with billing's refusal. */
  add(operation: Operation["operation"], timeoutMs: number): Promise<Outcome["outcome"]> {
    return new Promise((resolve, reject) => {
      const message = create(OperationSchema, { operation });
      this.#queue.push({ operation: message, timeoutMs, resolve, reject });
      if (this.#queue.length > 1) return;
      if (this.#batchWait.isWorthwhile()) setImmediate(this.#flush);
      else queueMicrotask(this.#flush);
    });
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
    const timeoutMs = Math.min(...batch.map((one) => one.timeoutMs));
    let outcomes: readonly Outcome[];
    try {
      const operations = batch.map(({ operation }) => operation);
      outcomes = (await this.#billing.apply({ operations }, { timeoutMs })).outcomes;
    } catch (error) {
      for (const one of batch) one.reject(error);
      return;
    }
    for (const [i, one] of batch.entries()) {
      const outcome = outcomes[i]?.outcome;
      if (outcome?.case === "refusal") one.reject(refusalOf(outcome.value));
      else one.resolve(outcome ?? { case: undefined });
    }
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
