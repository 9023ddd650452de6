// Decides what an error of NATS or JetStream means: a missing stream, a wrong setting, refused credentials, or a queue that is
// away.

import { JetStreamApiError, JetStreamError } from "@nats-io/jetstream";
import { errors } from "@nats-io/transport-node";
import { ErrorReason, RefusalError } from "#kit/base/errors.ts";

/** Hint for when to try again, in ms, in the refusal of a queue that is away. */
const awayRetryMs = 1_000;

/** The refusal of a queue that is away. `cause` is for our own log. */
export function awayRefusal(cause: unknown): RefusalError {
  return new RefusalError(ErrorReason.SERVICE_UNAVAILABLE, {
    metadata: { retry_after_ms: `${awayRetryMs}` },
    cause,
  });
}

/** The server's numbers of the errors that matter here. */
const code = {
  streamNotFound: 10_059,
  consumerNotFound: 10_014,
  streamNameInUse: 10_058,
  consumerExists: 10_148,
  streamInvalidConfig: 10_052,
  replicasNotSupported: 10_074,
  noSuitablePeers: 10_005,
};

/** Is the addressee missing: does no stream listen to the subject, or is there no stream or consumer of the name? */
export function isMissing(error: unknown): boolean {
  if (isApiError(error, code.streamNotFound, code.consumerNotFound)) return true;
  for (let one = error; one instanceof Error; one = one.cause) {
    if (one instanceof errors.NoRespondersError) return true;
  }
  return false;
}

/**
 * Did JetStream itself end a request for a message, and not the network? The consumer is gone, moves to another server, or is silent.
 * Looking for the consumer again shows which.
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
  // A cluster that is still starting has too few servers.
  if (!isApiError(error) || error.code === code.noSuitablePeers) return false;
  return (
    error.status < 500 || isApiError(error, code.streamInvalidConfig, code.replicasNotSupported)
  );
}

/** Did JetStream itself refuse, and not the network? With `codes`: for one of these reasons. */
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
