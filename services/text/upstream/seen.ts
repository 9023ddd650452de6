import { followedStream, type Inference, type Inferences } from "#kit/telemetry/inference.ts";
import { errorType } from "#kit/telemetry/traced.ts";
import type { Upstream } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { failureOf } from "./failure.ts";
import type { Driver } from "./http-driver.ts";
import type {
  AnswerEvent,
  Ending,
  JsonAnswer,
  ReportedUsage,
  StreamAnswer,
  UpstreamRequest,
} from "./port.ts";

/** Runs a driver, seen from outside: how long it takes, to the last event, and what it used. */
export async function seenBy(
  inferences: Inferences | undefined,
  driver: Driver,
  request: UpstreamRequest,
  upstream: Upstream,
): Promise<JsonAnswer | StreamAnswer> {
  if (!inferences) return driver(request, upstream);
  const inference = inferences.begin({
    operation: request.operation === "compact" ? "compact" : "chat",
    provider: upstream.name,
    model: request.modelId,
    isStream: request.stream,
  });
  try {
    const answer = await inference.run(() => driver(request, upstream));
    if (answer.kind === "json") {
      ended(inference, answer.usage, answer.ending);
      return answer;
    }
    const note = (events: readonly AnswerEvent[]) => {
      for (const { usage, ending } of events) if (ending) ended(inference, usage, ending);
    };
    return { ...answer, batches: followedStream(answer.batches, inference, note) };
  } catch (error) {
    const kind = failureOf(error)?.kind ?? errorType(error);
    inference.end(request.signal.aborted ? "cancelled" : kind);
    throw error;
  }
}

function ended(inference: Inference, usage: ReportedUsage | undefined, ending: Ending): void {
  if (usage) inference.used(usage);
  inference.end(ending === "failed" ? "failed" : undefined);
}
