// Orders the steps of a request: look for a recorded answer, prepare, hold the money, send. Requests over HTTP, on sockets and
// from other processes all pass here.

import type { LiveCatalog } from "#common/agreements/catalog-client.ts";
import { keyLimitOf } from "#common/agreements/hold-client.ts";
import { checkIdempotencyKey, refuseAtEdge } from "#common/words/idempotency.ts";
import { type Awaitable, after, promiseOf } from "#kit/base/awaitable.ts";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import { Stop, type StopSignal } from "#kit/base/stop.ts";
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
import type { AnswerRoom } from "./answer-room.ts";
import { behind } from "./behind.ts";
import { type Answer, type Begin, createJoins, type Joins, type Seat } from "./joins.ts";
import { type FoundAnswer, findKeptAnswer } from "./kept-answer.ts";
import { piecesOf } from "./replay.ts";
import { type Begun, dropsBlocks, Sending, type SendingContext } from "./sending.ts";
import { asRefusal, type StopReason, stopped } from "./stop-reason.ts";

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
  /** Beta features that a client of Anthropic's asks for. Absent: none. */
  betas?: readonly string[] | undefined;
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
    return keyed
      ? keptAnswerOr(call, keyed, stop, context)
      : newAnswer(call, undefined, stop, context);
  };
  const joins = createJoins(running, context.clock);
  return {
    ask(call) {
      const { parsed, principal, admission } = call;
      const { operation, form, startingAfter } = parsed;
      const key = checkIdempotencyKey(call.idempotencyKey);
      if (startingAfter !== undefined) checkGoesOn(key, form);
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
      if (startingAfter !== undefined) {
        const seat = joins.join(name) ?? refuse(ErrorReason.INVALID_VALUE, noStream);
        context.events.joined(operation);
        return behind(seat, startingAfter);
      }
      // A request that the gateway refuses can find an answer, but not begin one. Other requests must not join in its refusal.
      const seat = admission?.refuseWith
        ? (joins.join(name) ?? new Alone(begin, running))
        : joins.take(name, { accountId: principal.accountId, isStream: form !== "json" }, begin);
      if (seat.joined) context.events.joined(operation);
      return seat;
    },
    async count(call, signal) {
      refuseAtEdge(call.admission);
      const prepared = await prepare({ ...call, idempotencyKey: undefined }, signal, context);
      const there = await countAtUpstream(prepared, call, signal, context);
      const counter = counterFor(call.principal.accountId, context.counter);
      const tally = createTally(prepared, counter, (error) => {
        context.events.trouble("tokens are guessed", call.requestId, error);
      });
      const own = there ?? (await tally.input());
      // Clients of Messages compact by this number. One that is too low makes them do so too late.
      const isUpper = there === undefined && prepared.operation === "messages";
      const inputTokens = isUpper ? tally.most()[0] : own;
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

/** The count of the upstream that would get a message. Undefined: it has none. */
async function countAtUpstream(
  request: PreparedRequest,
  { requestId }: Pick<Call, "requestId">,
  signal: AbortSignal,
  { upstreams }: AnsweringContext,
): Promise<number | undefined> {
  const { operation, model, stick = requestId } = request;
  if (operation !== "messages") return undefined;
  const { id: modelId, upstreamModel, shares } = model;
  const names = { modelId, upstreamModel, shares, stick, dropsBlocks: dropsBlocks(model) };
  const { body, betas, passParameters } = request;
  const asked = { body, betas, passParameters, upstreams: request.upstreams, signal };
  return await upstreams.count?.({ ...asked, ...names });
}

const param = "starting_after";
const noStream = {
  param,
  message:
    "No stream of this Idempotency-Key is under way, or its first events are not there any more. Send the request without " +
    "'starting_after' for the whole answer.",
};

/** Only a stream that others can find goes on behind an event. */
function checkGoesOn(key: string | undefined, form: AnswerForm): void {
  if (key !== undefined && form !== "json") return;
  const message =
    "'starting_after' goes on with a stream that broke off: it needs the Idempotency-Key of that stream, and 'stream: true'.";
  refuse(ErrorReason.INVALID_VALUE, { param, message });
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

async function keptAnswerOr(
  call: Call,
  keyed: Keyed,
  stop: Stop,
  context: AnsweringContext,
): Promise<Answer> {
  const found = await findKeptAnswer(keyed.slot, keyed.fingerprint, context, stop.signal);
  if (!found) return await newAnswer(call, keyed, stop, context);
  context.events.replayed(call.parsed.operation);
  const again = await replay(call, found, stop, context);
  return { ...again, replayed: true, ignored: found.ignored };
}

function newAnswer(
  call: Call,
  keyed: Keyed | undefined,
  stop: Stop,
  context: AnsweringContext,
): Awaitable<Answer> {
  const { principal, admission, requestId: callId } = call;
  refuseAtEdge(admission);
  stop.throwIfAborted();
  return after(prepare(call, stop, context), (request) => {
    stop.throwIfAborted();
    const payer = { principal, callId, keyLimit: keyLimitOf(admission) };
    const slot = keyed && { key: keyed.slot.key, fingerprint: keyed.fingerprint };
    return context.meter.open(request, payer, slot, stop).then((metered) => {
      const isKept = keyed !== undefined;
      if (metered) return new Sending({ request, callId, metered, stop, isKept }, context).answer();
      if (!keyed) throw new Error("a request without a slot was not opened");
      // The slot was taken meanwhile, by another process or by an equal request that has another form.
      return keptAnswerOr(call, keyed, stop, context);
    });
  });
}

function prepare(
  { parsed, principal, admission, conversation, betas, requestId }: Call,
  signal: StopSignal,
  context: AnsweringContext,
): Awaitable<PreparedRequest> {
  const { accountId } = principal;
  return prepareRequest(
    parsed,
    { accountId, admission, conversation, betas },
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

/** The only seat of a request that no other can join. */
export class Alone implements Seat {
  readonly joined = false;
  readonly answer: Promise<Answer>;
  readonly #stop = new Stop();
  readonly #running: UnderWay<Stop>;
  #isLeft = false;
  /** True once its events can be read. */
  #isStream = false;
  /** True where nothing is left to stop. */
  #isLanded = false;
  #room: AnswerRoom | undefined;

  constructor(begin: Begin, running: UnderWay<Stop>) {
    this.#running = running;
    this.#stop.addEventListener("abort", () => {
      // An abandoned stream is no longer read.
      if (this.#isStream) this.#land();
    });
    running.began(this.#stop);
    this.answer = promiseOf(begin, this.#stop).then(
      (answer) => this.#begun(answer),
      (error) => {
        this.#land();
        throw asRefusal(error, this.#stop);
      },
    );
  }

  readonly leave = (): void => {
    if (this.#isLeft) return;
    this.#isLeft = true;
    this.#room?.[Symbol.dispose]();
    if (!this.#isLanded) this.#stop.abort(stopped("left"));
  };

  #begun(answer: Answer): Answer {
    if (answer.kind === "json") {
      this.#land();
      if (this.#isLeft) answer.room?.[Symbol.dispose]();
      else this.#room = answer.room;
      return answer;
    }
    this.#isStream = true;
    if (this.#stop.aborted) this.#land();
    const end = () => this.#land();
    const fail = (error: unknown) => {
      end();
      return error;
    };
    return { ...answer, events: staged(answer.events, { end, fail }) };
  }

  #land(): void {
    this.#isLanded = true;
    this.#running.ended(this.#stop);
  }
}
