// Reports generations of text to telemetry.

import { type Awaitable, promiseOf } from "#kit/base/awaitable.ts";
import {
  errorOfAbort,
  followedStream,
  type Inference,
  type InferenceCall,
  type InferenceFacts,
  type Inferences,
} from "#kit/telemetry/inference.ts";
import { errorType } from "#kit/telemetry/spans.ts";
import type { Upstream } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { answerIdOf } from "./answer-defaults.ts";
import { failureOf } from "./failure.ts";
import { finishReasonOf } from "./finish-reason.ts";
import type { Driver } from "./http-driver.ts";
import type {
  AnswerEvent,
  Ending,
  JsonAnswer,
  ReportedUsage,
  StreamAnswer,
  UpstreamRequest,
} from "./port.ts";

/** Runs a driver as an inference of telemetry: its time until the last event, and its usage. */
export function withInference(
  inferences: Inferences | undefined,
  driver: Driver,
  request: UpstreamRequest,
  upstream: Upstream,
): Awaitable<JsonAnswer | StreamAnswer> {
  if (!inferences) return driver(request, upstream);
  const inference = inferences.begin(callOf(request, upstream));
  if (inference.isTraced) inference.note(factsOfSpan(request));
  const failed = (error: unknown): never => {
    const kind = failureOf(error)?.kind ?? errorType(error);
    inference.end(request.signal.aborted ? errorOfAbort(request.signal) : kind);
    throw error;
  };
  const answered = (answer: JsonAnswer | StreamAnswer) => {
    if (answer.kind === "json") {
      if (inference.isTraced) noteFinish(inference, answer.body, answer.ending);
      ended(inference, answer.usage, answer.ending);
      return answer;
    }
    const note = (events: readonly AnswerEvent[]) => {
      for (const { usage, ending, frame } of events) {
        if (!ending) continue;
        if (inference.isTraced) noteFinish(inference, frame, ending);
        ended(inference, usage, ending);
      }
    };
    return { ...answer, batches: followedStream(answer.batches, inference, note) };
  };
  const answering = inference.isTraced
    ? promiseOf(inference.run, () => driver(request, upstream))
    : promiseOf(driver, request, upstream);
  return answering.then(answered, failed);
}

/** Reports that no place at an upstream came free in time. The upstream is treated like one that cannot be reached. */
export function noPlaceCameFree(
  inferences: Inferences | undefined,
  request: UpstreamRequest,
  upstream: Upstream,
): void {
  inferences?.begin(callOf(request, upstream)).end("unreachable");
}

function callOf(request: UpstreamRequest, { name }: Upstream): InferenceCall {
  const { operation } = request;
  return {
    // In the words of the conventions for telemetry, a conversation is a chat in every format.
    operation: operation === "responses" || operation === "messages" ? "chat" : operation,
    provider: name,
    model: request.modelId,
    isStream: request.stream,
  };
}

function factsOfSpan(request: UpstreamRequest): InferenceFacts {
  const { maxOutputTokens: maxTokens, upstreamModel, callId: requestId } = request;
  return { maxTokens, upstreamModel, requestId, responseId: answerIdOf(request) };
}

/** A cut answer ends with an error, in the words of the conventions. */
function noteFinish(inference: Inference, answer: JsonAnswer["body"], ending: Ending): void {
  inference.note({ finishReason: finishReasonOf(answer, ending) || "error" });
}

function ended(inference: Inference, usage: ReportedUsage | undefined, ending: Ending): void {
  if (usage) inference.used(usage);
  inference.end(ending === "failed" ? "failed" : undefined);
}
