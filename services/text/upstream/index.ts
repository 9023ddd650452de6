import { RefusalError } from "#kit/errors.ts";
import type { Turn } from "#kit/fair-share.ts";
import { staged } from "#kit/staged.ts";
import { tracedHttpClient } from "#kit/telemetry/http-client.ts";
import type { Inferences } from "#kit/telemetry/inference.ts";
import { noTelemetry } from "#kit/telemetry/port.ts";
import { createHttpClient } from "#kit/upstream/client.ts";
import { createSlots, type Slots } from "#kit/upstream/slots.ts";
import { type Upstream, UpstreamProtocol } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { createBuiltinDriver } from "./builtin/index.ts";
import type { UpstreamsContext } from "./context.ts";
import { createUpstreamEvents, type UpstreamEvents } from "./events.ts";
import { failureOf, refusalOf, UpstreamFailure } from "./failure.ts";
import { createHttpDriver, type Driver } from "./http-driver.ts";
import type { JsonAnswer, StreamAnswer, TextUpstreams, UpstreamRequest } from "./port.ts";
import { seenBy } from "./seen.ts";

export type { UpstreamsContext } from "./context.ts";

/** Makes the upstream side of a text process. Disposing closes its connections. */
export function createTextUpstreams(context: UpstreamsContext): TextUpstreams & AsyncDisposable {
  const { telemetry = noTelemetry, inferences } = context;
  const client = tracedHttpClient(createHttpClient(), telemetry);
  const events = createUpstreamEvents(context);
  const http = createHttpDriver(context, client, events);
  const builtin = createBuiltinDriver(context);
  const sender: Sender = {
    slots: createSlots(),
    events,
    inferences,
    driverOf: ({ protocol }) => (protocol === UpstreamProtocol.BUILTIN ? builtin.drive : http),
  };
  return {
    send: (request) => send(request, sender),
    async [Symbol.asyncDispose]() {
      await builtin[Symbol.asyncDispose]();
      await client[Symbol.asyncDispose]();
    },
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
  // One that lacks the operation is passed over, and only where all do is that the answer.
  const capable = request.upstreams.filter((upstream) => serves(upstream, request));
  let failure: UpstreamFailure | undefined;
  for (const [at, upstream] of capable.entries()) {
    try {
      const answer = await sendTo(upstream, request, sender);
      sender.events.answered(upstream.name);
      return answer;
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

function serves({ protocol }: Upstream, { operation }: UpstreamRequest): boolean {
  return operation === "chat" || protocol !== UpstreamProtocol.CHAT_COMPLETIONS;
}

async function sendTo(
  upstream: Upstream,
  request: UpstreamRequest,
  { slots, inferences, driverOf }: Sender,
): Promise<JsonAnswer | StreamAnswer> {
  request.signal.throwIfAborted();
  const turn = await slots.acquire({
    name: upstream.name,
    max: upstream.maxConcurrent,
    accountId: request.accountId,
    // An upstream that has no room is as far away as one that does not pick up.
    waitMs: Number(upstream.connectTimeoutMs),
    signal: request.signal,
  });
  try {
    const answer = await seenBy(inferences, driverOf(upstream), request, upstream);
    if (answer.kind === "stream" && upstream.maxConcurrent > 0) {
      return holding(answer, turn, request.signal);
    }
    turn[Symbol.dispose]();
    return answer;
  } catch (error) {
    turn[Symbol.dispose]();
    throw error;
  }
}

/** Keeps the stream's place until it has ended, its reader has left, or the request is aborted. */
function holding(answer: StreamAnswer, turn: Turn, signal: AbortSignal): StreamAnswer {
  const release = () => turn[Symbol.dispose]();
  signal.addEventListener("abort", release, { once: true });
  const over = () => {
    signal.removeEventListener("abort", release);
    release();
  };
  const batches = staged(answer.batches, {
    pass(step) {
      if (step.done) over();
      return step;
    },
    fail(error) {
      over();
      return error;
    },
    leave: over,
  });
  return { ...answer, batches };
}

function raise(error: unknown): never {
  throw error;
}
