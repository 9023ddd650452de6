import type { LiveCatalog } from "#common/agreements/catalog-client.ts";
import { keyLimitOf } from "#common/agreements/hold-client.ts";
import { checkIdempotencyKey, refuseAtEdge } from "#common/words/idempotency.ts";
import type { Awaitable } from "#kit/base/awaitable.ts";
import type { Stop, StopSignal } from "#kit/base/stop.ts";
import type { Principal } from "#kit/rpc/principal.ts";
import type { FairShare } from "#kit/share/fair-share.ts";
import { consume } from "#kit/stream/push-stream.ts";
import { staged } from "#kit/stream/stages.ts";
import type { Admission } from "#proto/genmesh/common/v1/access_pb.ts";
import { replayFactor } from "../base/limits.ts";
import { UnderWay } from "../base/under-way.ts";
import type { SoundMeter } from "../files/measuring/meter.ts";
import { chargeOf } from "../metering/pricing.ts";
import type { Meter } from "../paid/meter.ts";
import type { ImageSources } from "../request/images.ts";
import { type AnswerForm, answerForms, type ParsedRequest } from "../request/parse.ts";
import { prepareRequest } from "../request/prepare.ts";
import type { PreparedRequest } from "../request/prepared.ts";
import type { IdempotencySlot, UsageStore } from "../store/store.ts";
import { counterFor, type TokenCounter } from "../tokens/count.ts";
import { createTally } from "../tokens/tally.ts";
import { Alone } from "./alone.ts";
import { type Answer, createJoins, type Joins, type Seat } from "./joins.ts";
import { type FoundAnswer, findKeptAnswer } from "./kept-answer.ts";
import { piecesOf } from "./replay.ts";
import { type Begun, Sending, type SendingContext } from "./sending.ts";
import { type StopReason, stopped } from "./stop-reason.ts";

/** Dependencies of answering. */
export interface AnsweringContext extends SendingContext {
  catalog: Pick<LiveCatalog, "current">;
  store: UsageStore;
  meter: Meter;
  counter: TokenCounter;
  soundMeter: SoundMeter;
  /** Places for counting before there is a hold. */
  contextCounts: FairShare;
  /** Places for bytes of kept answers that are replayed as streams. */
  replays: FairShare;
  /** Images of one caller's requests. */
  images(principal: Principal, requestId: string): ImageSources;
}

/** A request of the public API, its body parsed. */
export interface Call {
  parsed: ParsedRequest;
  principal: Principal;
  admission: Admission | undefined;
  idempotencyKey: string | undefined;
  /** The edge's name for the conversation. Absent or empty: none. */
  conversation?: string | undefined;
  /** The caller's request id, for calls to other services and for logs. */
  requestId: string;
}

/** The tokens and amounts of an input, by the present price. Amounts are in USD micros. */
export interface CountedInput {
  inputTokens: number;
  /** The cost, with no part of the input cached. */
  cost: bigint;
  /** The hold, with the bound of the output. */
  hold: bigint;
}

/** Answers requests: the idempotency look-up, then scope, catalog, imports, limits, hold. */
export interface Answering {
  /** A seat at the answer, see `joins.ts`. Refuses at once with INVALID_IDEMPOTENCY_KEY, INVALID_JSON or RATE_LIMIT_EXCEEDED. */
  ask(call: Call): Seat;
  /** Counts the input of a request. Refuses like a request does before its hold. */
  count(call: Omit<Call, "idempotencyKey">, signal: AbortSignal): Promise<CountedInput>;
  /** Resolves when nothing is in flight. */
  whenEmpty(): Promise<void>;
  /** Stops everything that runs. Later requests are refused with SERVICE_UNAVAILABLE. */
  stop(reason: StopReason): void;
}

/** Makes the answering side of a process. */
export function createAnswering(context: AnsweringContext): Answering {
  const running = new UnderWay<Stop>();
  let closedFor: StopReason | undefined;
  const answer = (call: Call, keyed: Keyed | undefined, stop: Stop) => {
    if (closedFor) stop.abort(stopped(closedFor));
    return answerOf(call, keyed, stop, context);
  };
  const joins = createJoins(running);
  return {
    ask(call) {
      const { parsed, principal, admission } = call;
      const { operation, form } = parsed;
      const key = checkIdempotencyKey(call.idempotencyKey);
      if (key === undefined) {
        return new Alone((stop) => answer(call, undefined, stop), running);
      }
      const slot = { keyId: principal.keyId, operation, key };
      const keyed: Keyed = { slot, fingerprint: parsed.fingerprint };
      const begin = async (stop: Stop) => {
        // Synchronous up to here, so that an equal request cannot end unnoticed in between.
        await waitForOtherForms(joins, keyed, form, stop);
        return await answer(call, keyed, stop);
      };
      const name = flightName(keyed, form);
      // A request that the gateway refuses can find an answer, but not begin one. Other requests must not join in its refusal.
      const seat = admission?.refuseWith
        ? (joins.join(name) ?? new Alone(begin, running))
        : joins.take(name, principal.accountId, begin);
      if (seat.joined) context.events.joined(operation);
      return seat;
    },
    async count(call, signal) {
      refuseAtEdge(call.admission);
      const prepared = await prepare({ ...call, idempotencyKey: undefined }, signal, context);
      const counter = counterFor(call.principal.accountId, context.counter);
      const tally = createTally(prepared, counter, (error) => {
        context.events.trouble("tokens are guessed", call.requestId, error);
      });
      const inputTokens = await tally.input();
      const { price, holdAmount: hold } = prepared;
      const tokens = { input: inputTokens, cachedInput: 0, output: 0 };
      return { inputTokens, cost: chargeOf(price, tokens, hold), hold };
    },
    whenEmpty: () => running.whenNone(),
    stop(reason) {
      closedFor = reason;
      for (const stop of running) stop.abort(stopped(reason));
    },
  };
}

/** The slot of a request with an idempotency key. */
interface Keyed {
  slot: IdempotencySlot;
  fingerprint: string;
}

/** Equal requests of one form share a flight. */
function flightName({ slot, fingerprint }: Keyed, form: AnswerForm): string {
  return JSON.stringify([slot.keyId, slot.operation, form, slot.key, fingerprint]);
}

/**
 * Waits until an equal request in flight that has another form is over. That one goes on though its own callers leave, and its answer
 * is recorded then. Never refuses.
 */
async function waitForOtherForms(
  joins: Joins,
  keyed: Keyed,
  form: AnswerForm,
  signal: StopSignal,
): Promise<void> {
  const others = answerForms.filter((other) => other !== form);
  for (const seat of others.map((other) => joins.watch(flightName(keyed, other)))) {
    if (!seat) continue;
    signal.addEventListener("abort", seat.leave, { once: true });
    try {
      const answer = await seat.answer;
      if (answer.kind === "json" || signal.aborted) continue;
      // The stream belongs to another request. Only its end counts here.
      await consume(answer.events, () => true);
    } catch {
      // The refusal belongs to the other request. This request is tried by itself.
    } finally {
      signal.removeEventListener("abort", seat.leave);
      seat.leave();
    }
  }
}

async function answerOf(
  call: Call,
  keyed: Keyed | undefined,
  stop: Stop,
  context: AnsweringContext,
): Promise<Answer> {
  const { parsed, principal, admission } = call;
  let prepared: PreparedRequest | undefined;
  for (;;) {
    if (keyed) {
      const answer = await findKeptAnswer(keyed.slot, keyed.fingerprint, context, stop.signal);
      if (answer) {
        context.events.replayed(parsed.operation);
        const again = await replay(call, answer, stop, context);
        return { ...again, replayed: true, ignored: answer.ignored };
      }
    }
    refuseAtEdge(admission);
    stop.throwIfAborted();
    if (!prepared) {
      const preparing = prepare(call, stop, context);
      prepared = preparing instanceof Promise ? await preparing : preparing;
    }
    stop.throwIfAborted();
    const metered = await context.meter.open(
      prepared,
      {
        principal,
        callId: call.requestId,
        keyLimit: keyLimitOf(admission),
      },
      keyed && { key: keyed.slot.key, fingerprint: keyed.fingerprint },
      stop,
    );
    // The slot was taken meanwhile, by another process or by an equal request that has another form.
    if (!metered) continue;
    const paid = { request: prepared, callId: call.requestId, metered, stop, isKept: !!keyed };
    return await new Sending(paid, context).answer();
  }
}

function prepare(
  { parsed, principal, admission, conversation, requestId }: Call,
  signal: StopSignal,
  context: AnsweringContext,
): Awaitable<PreparedRequest> {
  const { accountId } = principal;
  return prepareRequest(
    parsed,
    { accountId, admission, conversation },
    {
      view: context.catalog.current(),
      counter: context.counter,
      soundMeter: context.soundMeter,
      contextCounts: context.contextCounts,
      makers: (hashes) => context.store.findMakers(hashes, context.clock.now()),
      images: context.images(principal, requestId),
    },
    signal,
  );
}

async function replay(
  { parsed: { operation, form }, principal: { accountId } }: Call,
  { body: answer, cost }: FoundAnswer,
  signal: StopSignal,
  { replays, large }: AnsweringContext,
): Promise<Begun> {
  if (form === "json") return { kind: "json", body: answer, cost };
  const turn = await replays.take(accountId, signal, answer.length * replayFactor);
  const over = () => turn[Symbol.dispose]();
  signal.addEventListener("abort", over, { once: true });
  try {
    const ready = await large.run("events", { accountId, signal }, answer, operation, form);
    return { kind: "events", events: staged(piecesOf(ready), { end: over }) };
  } catch (error) {
    over();
    throw error;
  }
}
