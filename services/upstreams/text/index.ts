// Makes the `TextUpstreams` of `port.ts`, which the text service uses: tries one upstream after the other, each in a place of its
// own.

import { type Awaitable, promiseOf } from "#kit/base/awaitable.ts";
import { RefusalError } from "#kit/base/errors.ts";
import { type StopSignal, signalOf } from "#kit/base/stop.ts";
import { staged } from "#kit/stream/stages.ts";
import type { Inferences } from "#kit/telemetry/inference.ts";
import type { Clock } from "#kit/time/clock.ts";
import { UpstreamError } from "#kit/upstream/errors.ts";
import { createSlots, type Place, type Slots } from "#kit/upstream/slots.ts";
import type { Upstream } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { createPools, type Pools, type Tries } from "../pools/index.ts";
import { type Lane, lanesOf, upstreamOfLane } from "../pools/lanes.ts";
import type { Outcome } from "../pools/outcomes.ts";
import { protocolName, servesText, speaksMessages } from "../protocols.ts";
import { countThere } from "./anthropic/count.ts";
import type { UpstreamsContext } from "./context.ts";
import { textDrivers } from "./drivers.ts";
import { createUpstreamEvents, type UpstreamEvents } from "./events.ts";
import { failureOf, inputParamOf, refusalOf, UpstreamFailure } from "./failure.ts";
import type { Driver } from "./http-driver.ts";
import { noPlaceCameFree, withInference } from "./inference.ts";
import type { JsonAnswer, StreamAnswer, TextUpstreams, UpstreamRequest } from "./port.ts";

export type { UpstreamsContext } from "./context.ts";

/**
 * Makes what sends a text request: it tries the upstreams in order, and falls back. The parts of the context are closed by the code that
 * made them.
 */
export function createTextUpstreams(context: UpstreamsContext): TextUpstreams {
  const { inferences } = context;
  const { pools = createPools(context) } = context;
  const events = createUpstreamEvents(context, pools);
  const drivers = new Map<string | undefined, Driver>(
    Object.entries(textDrivers).map(([name, create]) => [name, create(context, events)]),
  );
  const sender: Sender = {
    slots: createSlots(),
    pools,
    clock: context.clock,
    events,
    inferences,
    driverOf: ({ protocol }) =>
      drivers.get(protocolName(protocol)) ?? raise(new UpstreamFailure("incapable")),
  };
  return {
    send: (request) => send(request, sender),
    async count(request) {
      const lanes = lanesOf(request.upstreams, request);
      const first = pools.tries(lanes, request.modelId, request.stick).next();
      // A count tells nothing of the lane's room for requests, and takes none of it.
      first?.ended("open");
      if (!first || !speaksMessages(first.lane.upstream.protocol)) return undefined;
      const { upstream, upstreamModel } = first.lane;
      return await countThere(upstream, { ...request, upstreamModel }, context);
    },
  };
}

interface Sender {
  slots: Slots;
  pools: Pools;
  clock: Clock;
  events: UpstreamEvents;
  inferences: Inferences | undefined;
  driverOf: (upstream: Upstream) => Driver;
}

/** Tries the lanes of a request, as long as the failure of one allows the next. */
function send(request: UpstreamRequest, sender: Sender): Promise<JsonAnswer | StreamAnswer> {
  const { operation, shares = [], upstreamModel, modelId, stick = request.requestId } = request;
  // A lane that lacks the operation is skipped. The caller gets that as the error only where all lanes lack it.
  const capable = lanesOf(request.upstreams, { shares, upstreamModel }).filter(({ upstream }) =>
    servesText(upstream.protocol, operation),
  );
  const tryNext = (left: Tries, before?: UpstreamFailure): Promise<JsonAnswer | StreamAnswer> => {
    const one = left.next();
    if (!one) return Promise.reject(refused(before, request));
    return promiseOf(sendTo, one.lane, request, sender).then(
      (answer) => {
        one.ended("answered");
        return answer;
      },
      (error) => {
        const found = failureOf(error);
        const isOurs = request.signal.aborted || error instanceof RefusalError || !found;
        const mayMove = one.ended(isOurs ? "open" : outcomeOf(found, request), found?.retryAfterMs);
        request.signal.throwIfAborted();
        if (isOurs) throw error;
        const isLast = !mayMove || !left.hasNext;
        const { name } = one.lane.upstream;
        request.onFailedTry?.({ lane: name, kind: found.kind, status: found.status });
        sender.events.failed(name, found, { ...idsOf(request), isLast });
        const failure = graverOf(before, found);
        if (isLast) throw refused(failure, request);
        return tryNext(left, failure);
      },
    );
  };
  const tries = sender.pools.tries(capable, modelId, stick);
  const [only] = capable;
  if (!request.isPinned || !only) return tryNext(tries);
  return awake(only, request, sender).then(() => tryNext(tries));
}

function refused(
  failure: UpstreamFailure | undefined,
  { modelId, operation }: UpstreamRequest,
): RefusalError {
  return refusalOf(failure ?? new UpstreamFailure("incapable"), modelId, inputParamOf(operation));
}

/** A request that is pinned to its lane has no other lane to show whether its content makes servers fail. */
function outcomeOf(failure: UpstreamFailure, { isPinned }: UpstreamRequest): Outcome {
  return isPinned && failure.kind === "server_error" ? "open" : failure.outcome;
}

/** The failure that becomes the answer: the last one, except that a limit comes before a fault of the server. */
function graverOf(before: UpstreamFailure | undefined, last: UpstreamFailure): UpstreamFailure {
  if (before?.outcome !== "limited") return last;
  if (last.outcome === "failed") return before;
  const isSooner = (before.retryAfterMs ?? Infinity) < (last.retryAfterMs ?? Infinity);
  return last.outcome === "limited" && isSooner ? before : last;
}

/** Waits until a pinned lane's rest is over. Refuses where that takes longer than a connection may. */
async function awake(
  lane: Lane,
  { modelId, signal }: UpstreamRequest,
  { pools, clock }: Sender,
): Promise<void> {
  const restMs = pools.restMs(lane, modelId);
  if (restMs === 0) return;
  if (restMs > Number(lane.upstream.connectTimeoutMs)) {
    const failure = new UpstreamFailure("resting");
    failure.retryAfterMs = restMs;
    throw refusalOf(failure, modelId);
  }
  await clock.sleep(restMs, signalOf(signal));
}

function idsOf({ requestId: id, callId }: UpstreamRequest): { id: string; callId: string } {
  return { id, callId };
}

function sendTo(
  { upstream, upstreamModel }: Lane,
  asked: UpstreamRequest,
  sender: Sender,
): Awaitable<JsonAnswer | StreamAnswer> {
  asked.signal.throwIfAborted();
  const isNamedElse = upstreamModel !== asked.upstreamModel;
  const request = isNamedElse ? { ...asked, upstreamModel } : asked;
  if (upstream.maxConcurrent > 0) return sendInPlace(upstream, request, sender);
  return withInference(sender.inferences, sender.driverOf(upstream), request, upstream);
}

/** Sends to an upstream that takes a bounded number of requests. */
async function sendInPlace(
  upstream: Upstream,
  request: UpstreamRequest,
  { slots, inferences, driverOf }: Sender,
): Promise<JsonAnswer | StreamAnswer> {
  const waiting = slots.acquire({
    name: upstreamOfLane(upstream.name),
    max: upstream.maxConcurrent,
    accountId: request.accountId,
    // An upstream without a free place is treated like one that cannot be reached.
    waitMs: Number(upstream.connectTimeoutMs),
    signal: request.signal,
  });
  waiting.catch((error) => {
    if (error instanceof UpstreamError) noPlaceCameFree(inferences, request, upstream);
  });
  const place = await waiting;
  try {
    const answer = await withInference(inferences, driverOf(upstream), request, upstream);
    if (answer.kind === "stream") return holding(answer, place, request.signal);
    place[Symbol.dispose]();
    return answer;
  } catch (error) {
    place[Symbol.dispose]();
    throw error;
  }
}

/** Keeps the stream's place until the stream has ended, its reader has left, or the request is aborted. */
function holding(answer: StreamAnswer, place: Place, signal: StopSignal): StreamAnswer {
  const release = () => place[Symbol.dispose]();
  signal.addEventListener("abort", release, { once: true });
  const over = () => {
    signal.removeEventListener("abort", release);
    release();
  };
  const batches = staged(answer.batches, {
    end: over,
    fail(error) {
      over();
      return error;
    },
    leave: over,
  });
  return { ...answer, batches, place };
}

function raise(error: unknown): never {
  throw error;
}
