// Says what the end of a try means for the upstream that was tried, so that the pools know whether it rests.

import { isRefusal } from "#kit/base/errors.ts";
import { ImageError } from "#kit/images/index.ts";
import { UpstreamError } from "#kit/upstream/errors.ts";
import type { Outcome } from "../pools/outcomes.ts";
import { StatusError } from "./faults.ts";
import { type GenerationError, NotTakenError, type Refusal } from "./port.ts";

/** The meaning of an upstream's refusal for its lane. */
const ofRefusal: Readonly<Record<Refusal, Outcome>> = {
  too_many_requests: "limited",
  unavailable: "failed",
  unreachable: "failed",
  account_empty: "account_empty",
  denied: "key_refused",
};

/** The outcome for its lane, of a try to speak. `isSent`: the upstream may have spoken. */
export function outcomeOfSpeaking(error: GenerationError, isSent: boolean): Outcome {
  if (isSent || error.fault !== "unknown") return outcomeOfBeginning(error);
  return error.cause instanceof UpstreamError && error.cause.kind === "full" ? "full" : "failed";
}

/** The kind of a failure, as its log line names it, and the HTTP status. */
export function kindOf(error: GenerationError): { kind: string; status: number | undefined } {
  const kind = error instanceof NotTakenError ? error.refusal : error.fault;
  return { kind, status: error.cause instanceof StatusError ? error.cause.status : undefined };
}

/** The milliseconds that the upstream asked to be left alone. */
export function askedMsOf(error: GenerationError): number | undefined {
  return error instanceof NotTakenError ? error.retryAfterMs : undefined;
}

/** The outcome for its lane, of a try that should have begun a generation. */
export function outcomeOfBeginning(error: GenerationError): Outcome {
  const { fault, cause } = error;
  const status = cause instanceof StatusError ? cause.status : undefined;
  if (error instanceof NotTakenError) {
    return status === 404 ? "model_missing" : ofRefusal[error.refusal];
  }
  if (fault === "content_policy") return "refused";
  if (fault === "failed") return status === undefined ? "open" : "refused";
  if (fault === "broke_off") return "failed";
  // Our reading of images may fail, and our stores and services may be away.
  const isOurs = cause instanceof ImageError || isRefusal(cause);
  return fault === "unknown" && !isOurs ? "perhaps_paid" : "open";
}
