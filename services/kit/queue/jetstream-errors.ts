import { JetStreamApiError, JetStreamError } from "@nats-io/jetstream";
import { errors } from "@nats-io/transport-node";
import { ErrorReason, RefusalError } from "#kit/base/errors.ts";

/** Hint of the refusal of a queue that is away, in ms. */
const awayRetryMs = 1_000;

/** The refusal of a queue that is away; `cause` is for our own log. */
export function awayRefusal(cause: unknown): RefusalError {
  return new RefusalError(ErrorReason.SERVICE_UNAVAILABLE, {
    metadata: { retry_after_ms: `${awayRetryMs}` },
    cause,
  });
}

/** The server's numbers for what matters here. */
const code = {
  streamNotFound: 10_059,
  consumerNotFound: 10_014,
  streamNameInUse: 10_058,
  consumerExists: 10_148,
  streamInvalidConfig: 10_052,
  replicasNotSupported: 10_074,
  noSuitablePeers: 10_005,
};

/** Is what was addressed not there: no stream listens to the subject, or there is no stream or consumer of the name? */
export function isMissing(error: unknown): boolean {
  if (isApiError(error, code.streamNotFound, code.consumerNotFound)) return true;
  for (let one = error; one instanceof Error; one = one.cause) {
    if (one instanceof errors.NoRespondersError) return true;
  }
  return false;
}

/**
 * Was a request for a message ended by JetStream, and not by the way to it? Its consumer is gone, moves to another server,
 * or is silent: looking for the consumer again tells which.
 */
export function isRequestEnded(error: unknown): boolean {
  return error instanceof JetStreamError || isMissing(error);
}

/** Does the stream or consumer exist with other settings? */
export function isInUse(error: unknown): boolean {
  return isApiError(error, code.streamNameInUse, code.consumerExists);
}

/** Did JetStream refuse settings that it would refuse at any time? */
export function isBadSetting(error: unknown): error is JetStreamApiError {
  // A cluster that is still coming up has too few servers.
  if (!isApiError(error) || error.code === code.noSuitablePeers) return false;
  return (
    error.status < 500 || isApiError(error, code.streamInvalidConfig, code.replicasNotSupported)
  );
}

/** Did JetStream itself refuse (and not the way to it)? With `codes`: for one of these reasons. */
export function isApiError(error: unknown, ...codes: number[]): error is JetStreamApiError {
  return error instanceof JetStreamApiError && (codes.length === 0 || codes.includes(error.code));
}

/** Does the server refuse our credentials? */
export function isRejection(error: unknown): boolean {
  for (let one = error; one instanceof Error; one = one.cause) {
    if (one instanceof errors.AuthorizationError) return true;
    if (one instanceof errors.UserAuthenticationExpiredError) return true;
  }
  return false;
}
