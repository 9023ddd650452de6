// Says why an ended request failed, for its record in the journal. A refusal before the answer and a stream that broke are both
// described here.

import type { RequestFailure } from "#common/agreements/hold-client.ts";
import { ErrorReason, errorRow, isRefusal, type Reason, reasonOfName } from "#kit/base/errors.ts";
import { isJsonObject, type JsonObject } from "#kit/base/json.ts";
import { failureOf } from "../../upstreams/text/failure.ts";
import type { Ending } from "../../upstreams/text/port.ts";
import { dataOf } from "../base/frames.ts";
import type { EndKind } from "../metering/charge.ts";

/** The failure of a request that ended with an error before its answer began. */
export function failureOfError(error: unknown): RequestFailure {
  const reason = isRefusal(error) ? error.reason : ErrorReason.SERVICE_UNAVAILABLE;
  const upstream = error instanceof Error ? failureOf(error.cause) : undefined;
  return {
    ...failureFor(reason),
    ...(upstream ? { upstreamKind: upstream.kind, upstreamStatus: upstream.status } : {}),
  };
}

/** The failure for which the caller gets this reason. */
export function failureFor(reason: Reason): RequestFailure {
  return { code: errorRow(reason).code };
}

/** The failure of a stream that ended like this, with this last event. Undefined where it did not fail. */
export function failureOfEnd(
  kind: EndKind | Ending,
  frame: Uint8Array | undefined,
): RequestFailure | undefined {
  if (kind !== "failed" && kind !== "ended") return undefined;
  return frame ? failureOfFrame(frame) : failureFor(ErrorReason.SERVICE_UNAVAILABLE);
}

/** The failure that the last event of a stream names. Its code is one of genmesh, as the caller gets it. */
function failureOfFrame(frame: Uint8Array): RequestFailure {
  const data = dataOf(frame);
  const response = isJsonObject(data?.response) ? data.response : data;
  const reason = reasonOfName(codeIn(response).toUpperCase());
  return failureFor(reason ?? ErrorReason.MODEL_REQUEST_FAILED);
}

function codeIn(answer: JsonObject | undefined): string {
  const { code } = isJsonObject(answer?.error) ? answer.error : {};
  return typeof code === "string" ? code : "";
}
