import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { randomIds } from "#kit/base/ids.ts";
import type { JsonObject } from "#kit/base/json.ts";
import { createLogger } from "#kit/base/logger.ts";
import { createMetrics } from "#kit/base/metrics.ts";
import { manualClock } from "#kit/time/clock.ts";
import { createHttpClient } from "#kit/upstream/client.ts";
import {
  type Upstream,
  UpstreamProtocol,
  UpstreamSchema,
} from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { createBuiltinText } from "../../services/builtin/index.ts";
import type { UpstreamsContext } from "../../services/upstreams/text/context.ts";
import type {
  AnswerEvent,
  OutputBound,
  StreamAnswer,
  UpstreamRequest,
} from "../../services/upstreams/text/port.ts";

/** A context for the upstream side of text whose ids count up and whose log is silent. */
export function testContext(changes: Partial<UpstreamsContext> = {}): UpstreamsContext {
  let made = 0;
  return {
    log: createLogger("silent"),
    metrics: createMetrics(),
    clock: manualClock(),
    ids: { make: (prefix) => `${prefix}_${++made}`, secret: () => "secret" },
    secrets: () => undefined,
    http: createHttpClient(),
    builtin: createBuiltinText({ clock: manualClock(), ids: randomIds }),
    ...changes,
  };
}

/** An upstream in the catalog's form, with short times. */
export function testUpstream(
  protocol: keyof typeof UpstreamProtocol,
  changes: MessageInitShape<typeof UpstreamSchema> = {},
): Upstream {
  const init: MessageInitShape<typeof UpstreamSchema> = {
    name: protocol.toLowerCase(),
    protocol: UpstreamProtocol[protocol],
    timeoutMs: 10_000n,
    idleTimeoutMs: 5000n,
    connectTimeoutMs: 2000n,
  };
  return create(UpstreamSchema, Object.assign(init, changes));
}

/** More than the answer of any test. */
const unbounded: OutputBound = { tokens: Number.MAX_SAFE_INTEGER / 4, count: async () => 0 };

/** A request of an operation. The public model is `chat-1`, and the upstream calls it `up-model`. */
export function testRequest(
  operation: UpstreamRequest["operation"],
  upstreams: readonly Upstream[],
  changes: Partial<UpstreamRequest> & { fields?: JsonObject } = {},
): UpstreamRequest {
  const { fields, ...rest } = changes;
  const limit = fields?.max_output_tokens;
  const isChat = operation === "chat";
  const prompt: JsonObject = isChat
    ? {
        messages: [
          { role: "system", content: "SECRET PROMPT" },
          { role: "user", content: "Hi" },
        ],
      }
    : { input: "Hi", instructions: "SECRET PROMPT\n\nBe kind.", store: false };
  return {
    accountId: "acc_1",
    operation,
    body: { model: "chat-1", ...prompt, ...fields },
    asked: { model: "chat-1", ...prompt, ...fields },
    passParameters: [],
    stream: false,
    maxOutputTokens: typeof limit === "number" ? limit : undefined,
    outputBound: unbounded,
    modelId: "chat-1",
    upstreamModel: "up-model",
    upstreams,
    callerInstructions: isChat ? null : "Be kind.",
    requestId: "req_1",
    callId: "call_1",
    signal: new AbortController().signal,
    ...rest,
  };
}

/** The parts of a whole stream, and its text as bytes. */
export async function collect(answer: StreamAnswer): Promise<{
  events: AnswerEvent[];
  wire: string;
  /** The parsed data of each event. */
  // biome-ignore lint/suspicious/noExplicitAny: events of every shape.
  data: any[];
}> {
  const events: AnswerEvent[] = [];
  for await (const batch of answer.batches) events.push(...batch);
  return { events, ...readEvents(events) };
}

/** The events' text on the wire, and the parsed data of each. */
// biome-ignore lint/suspicious/noExplicitAny: events of every shape.
export function readEvents(events: readonly AnswerEvent[]): { wire: string; data: any[] } {
  const frames = events.map(({ frame }) => Buffer.from(frame).toString());
  const data = frames
    .filter(Boolean)
    .map((frame) => JSON.parse(frame.replace(/^(event: .*\n)?data: /, "")));
  return { wire: frames.join(""), data };
}
