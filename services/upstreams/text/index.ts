import { RefusalError } from "#kit/base/errors.ts";
import type { StopSignal } from "#kit/base/stop.ts";
import { staged } from "#kit/stream/stages.ts";
import type { Inferences } from "#kit/telemetry/inference.ts";
import { UpstreamError } from "#kit/upstream/errors.ts";
import { createSlots, type Place, type Slots } from "#kit/upstream/slots.ts";
import type { Upstream } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { protocolName, servesText } from "../protocols.ts";
import type { UpstreamsContext } from "./context.ts";
import { textDrivers } from "./drivers.ts";
import { createUpstreamEvents, type UpstreamEvents } from "./events.ts";
import { failureOf, refusalOf, UpstreamFailure } from "./failure.ts";
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
  const events = createUpstreamEvents(context);
  const drivers = new Map<string | undefined, Driver>(
    Object.entries(textDrivers).map(([name, create]) => [name, create(context, events)]),
  );
  const sender: Sender = {
    slots: createSlots(),
    events,
    inferences,
    driverOf: ({ protocol }) =>
      drivers.get(protocolName(protocol)) ?? raise(new UpstreamFailure("incapable")),
  };
  return {
    send: (request) => send(request, sender),
  };
}

interface Sender {
  slots: Slots;
  events: UpstreamEvents;
  inferences: Inferences | undefined;
  driverOf: (upstream: Upstream) => Driver;
}

/** Tries the upstreams in their order, as long as the failure of one allows the next. */
async function send(request: UpstreamRequest, sender: Sender): Promise<JsonAnswer | StreamAnswer> {
  // An upstream that lacks the operation is skipped. The caller gets that as the error only where all upstreams lack it.
  const { operation } = request;
  const capable = request.upstreams.filter(({ protocol }) => servesText(protocol, operation));
  let failure: UpstreamFailure | undefined;
  for (const [at, upstream] of capable.entries()) {
    try {
      return await sendTo(upstream, request, sender);
    } catch (error) {
      request.signal.throwIfAborted();
      if (error instanceof RefusalError) throw error;
      failure = failureOf(error) ?? raise(error);
      const isLast = !failure.mayFallBack || at === capable.length - 1;
      sender.events.failed(upstream.name, failure, { ...idsOf(request), isLast });
      if (isLast) break;
    }
  }
  const inputParam = request.operation === "chat" ? "messages" : "input";
  throw refusalOf(failure ?? new UpstreamFailure("incapable"), request.modelId, inputParam);
}

function idsOf({ requestId: id, callId }: UpstreamRequest): { id: string; callId: string } {
  return { id, callId };
}

function sendTo(
  upstream: Upstream,
  request: UpstreamRequest,
  sender: Sender,
): Promise<JsonAnswer | StreamAnswer> {
  request.signal.throwIfAborted();
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
    name: upstream.name,
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
