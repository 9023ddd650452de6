import { isJsonObject, type JsonObject } from "#kit/json.ts";
import { jsonInTurns } from "#kit/json-in-turns.ts";
import type { HttpClient, HttpReply } from "#kit/upstream/client.ts";
import { answerLimits } from "#kit/upstream/limits.ts";
import {
  OutputLimit,
  type Upstream,
  UpstreamProtocol,
} from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import type { UpstreamsContext } from "./context.ts";
import type { UpstreamEvents } from "./events.ts";
import { factsOf } from "./facts.ts";
import { failureOf, failureOfStatus, UpstreamFailure } from "./failure.ts";
import { ignoredParameters } from "./ignored.ts";
import { cutAt, OutputGate } from "./output-gate.ts";
import { type Plan, planFor } from "./plans.ts";
import type { JsonAnswer, StreamAnswer, UpstreamRequest } from "./port.ts";
import { readStream } from "./read-stream.ts";
import { readWhole } from "./read-whole.ts";
import type { ReadAnswer } from "./responses/json-answer.ts";
import { unseenOf } from "./unseen.ts";
import { usageIn } from "./usage.ts";

/** Answers a request at one upstream. Throws `UpstreamFailure`, a refusal, or the signal's reason. */
export type Driver = (
  request: UpstreamRequest,
  upstream: Upstream,
) => Promise<JsonAnswer | StreamAnswer>;

/** The driver of `openai`, `genmesh` and `chat-completions`. */
export function createHttpDriver(
  context: Pick<UpstreamsContext, "clock" | "ids" | "secrets">,
  client: HttpClient,
  events: UpstreamEvents,
): Driver {
  return async (request, upstream) => {
    const plan = planFor(upstream, request, factsOf(request, context));
    if (!plan) throw new UpstreamFailure("incapable");
    const reply = await post(plan, request, upstream, { context, client });
    if (reply.status < 200 || reply.status > 299) throw await failureOfReply(reply, request);
    const isPeer = upstream.protocol === UpstreamProtocol.GENMESH;
    const there = isPeer ? ignoredBy(reply) : [];
    request.onIgnored?.(ignoredParameters(request, plan.body, plan.path, there));
    const type = `${reply.headers["content-type"] ?? ""}`;
    const isStream = request.stream && request.operation !== "compact";
    const onCut = () => {
      const isTold = upstream.outputLimit !== OutputLimit.NONE;
      events.cut(upstream.name, isTold && request.maxOutputTokens !== undefined);
    };
    const gate = new OutputGate(request.outputBound, cutAt(request, upstream));
    if (isStream && !type.includes("json")) {
      const reader = plan.reader();
      return readStream({ reply, reader, gate, onCut, request, upstream: upstream.name, events });
    }
    request.onAnswering?.();
    const came = await wholeObject(reply);
    const cut = await gate.cutWhole(came);
    if (cut) onCut();
    const found = cut ?? came;
    const told = { upstream: upstream.name, isCut: cut !== undefined };
    try {
      // An upstream that cannot stream answers whole.
      if (isStream) return readWhole(found, plan.reader(), told);
      const answer = jsonAnswer(plan.readJson(found), upstream.name);
      return { ...answer, isCut: told.isCut, unseen: unseenOf(came) };
    } catch (error) {
      throw withUsage(error, came);
    }
  };
}

/** What is no answer was generated all the same, where its usage says so. */
function withUsage(error: unknown, came: JsonObject): unknown {
  if (error instanceof UpstreamFailure) error.usage ??= usageIn(came);
  return error;
}

/** An answer as the port has it. */
export function jsonAnswer({ object, ...rest }: ReadAnswer, upstream: string): JsonAnswer {
  return { kind: "json", ...rest, body: Buffer.from(JSON.stringify(object)), upstream };
}

/** What another deployment says that it did not send upstream. */
function ignoredBy({ headers }: HttpReply): string[] {
  const names = `${headers["x-genmesh-ignored-parameters"] ?? ""}`.split(/, */);
  return names.filter((name) => /^[\w.~%-]{1,64}$/.test(name));
}

async function post(
  plan: Plan,
  request: UpstreamRequest,
  upstream: Upstream,
  { context, client }: { context: Pick<UpstreamsContext, "secrets">; client: HttpClient },
): Promise<HttpReply> {
  const isStream = plan.body.stream === true;
  const headers: Record<string, string> = {
    "content-type": "application/json",
    accept: isStream ? "text/event-stream" : "application/json",
    // Events must come when they are made, not when a compressor's window is full.
    "accept-encoding": "identity",
    "user-agent": "genmesh",
    ...authorization(upstream, context),
  };
  if (upstream.protocol === UpstreamProtocol.GENMESH)
    headers["idempotency-key"] = request.requestId;
  const timeoutMs = Number(upstream.timeoutMs);
  const idleTimeoutMs = Number(upstream.idleTimeoutMs);
  const body = await jsonInTurns(plan.body);
  request.signal.throwIfAborted();
  try {
    return await client.request({
      method: "POST",
      url: `${upstream.baseUrl}${plan.path}`,
      headers,
      body,
      connectTimeoutMs: Number(upstream.connectTimeoutMs),
      // A whole answer has its head when it is done; a stream has it when it begins.
      headTimeoutMs: isStream ? idleTimeoutMs : timeoutMs,
      idleTimeoutMs,
      timeoutMs,
      onSent: request.onSent,
      signal: request.signal,
    });
  } catch (error) {
    throw failureOf(error) ?? error;
  }
}

function authorization(
  upstream: Upstream,
  { secrets }: Pick<UpstreamsContext, "secrets">,
): Record<string, string> {
  if (!upstream.apiKeyEnv) return {};
  const key = secrets(upstream.apiKeyEnv);
  if (!key) throw new UpstreamFailure("misconfigured");
  return { authorization: `Bearer ${key}` };
}

async function wholeObject({ body }: HttpReply): Promise<JsonObject> {
  let value: unknown;
  try {
    value = JSON.parse((await body.whole(answerLimits.jsonBytes)).toString());
  } catch (error) {
    if (error instanceof SyntaxError) throw new UpstreamFailure("garbage");
    throw failureOf(error) ?? error;
  }
  if (!isJsonObject(value)) throw new UpstreamFailure("garbage");
  return value;
}

async function failureOfReply(reply: HttpReply, request: UpstreamRequest): Promise<Error> {
  const { status } = reply;
  const isPlain = status >= 500 || status === 429;
  if (isPlain) reply.body.release();
  const error = isPlain ? {} : await errorOf(reply);
  // Of an upstream that has /responses but not this beside it. A missing model is another 404.
  const isMissing = status === 404 || status === 405 || status === 501;
  if (request.operation === "compact" && isMissing && error.code !== "model_not_found") {
    return new UpstreamFailure("incapable", { status });
  }
  return failureOfStatus(status, error, request.body);
}

/** The `error` of an error's body, as far as it comes soon. */
async function errorOf({ body }: HttpReply): Promise<JsonObject> {
  const timer = setTimeout(() => body.close(), answerLimits.errorMs);
  try {
    const value: unknown = JSON.parse((await body.whole(answerLimits.errorBytes)).toString());
    if (!isJsonObject(value)) return {};
    return isJsonObject(value.error) ? value.error : value;
  } catch {
    return {};
  } finally {
    clearTimeout(timer);
    body.release();
  }
}
