// Decides what an error of the MongoDB driver means for the operation that failed.

import type { MongoBulkWriteError } from "mongodb";
import { ErrorReason, isRefusal, RefusalError } from "#kit/base/errors.ts";
import { mongodb } from "./driver.ts";
import { awayRetryMs } from "./limits.ts";

/**
 * The meaning of an error of the driver.
 * - `duplicate`: a unique index has the value already. Nothing was written (of several documents: not that one).
 * - `away`: the server cannot be reached, is no longer the primary, or failed to confirm. A write may have happened. Trying again
 *   makes sense.
 * - `final`: trying again would end the same way.
 */
export type MongoFault = "duplicate" | "away" | "final";

const duplicateCode = 11_000;

/** The server's codes for a write that lost to another one. */
const conflictCodes = {
  WriteConflict: 112,
  // Compatible servers over PostgreSQL pass on SQLSTATE 40001 and 40P01 as these. MongoDB itself tries again there.
  SerializationFailure: 16_777_220,
  DeadlockDetected: 16_908_292,
};
const conflicts: ReadonlySet<number> = new Set(Object.values(conflictCodes));

/** The server's codes for "not now". InternalError is among them: the server has failed, and the request is not at fault. */
const awayCodes: ReadonlySet<number> = new Set(
  Object.values({
    ...conflictCodes,
    InternalError: 1,
    HostUnreachable: 6,
    HostNotFound: 7,
    LockTimeout: 24,
    LockBusy: 46,
    MaxTimeMsExpired: 50,
    StaleShardVersion: 63,
    WriteConcernTimeout: 64,
    NetworkTimeout: 89,
    ShutdownInProgress: 91,
    FailedToSatisfyReadPreference: 133,
    ReadConcernMajorityNotAvailableYet: 134,
    StaleEpoch: 150,
    QueryPlanKilled: 175,
    PrimarySteppedDown: 189,
    NetworkInterfaceExceededTimeLimit: 202,
    ExceededTimeLimit: 262,
    // An operator forbids writes, or the server does as its disk fills.
    UserWritesBlocked: 371,
    ConnectionError: 384,
    IngressRequestRateLimitExceeded: 462,
    SocketException: 9001,
    LegacyNotPrimary: 10_058,
    NotWritablePrimary: 10_107,
    InterruptedAtShutdown: 11_600,
    Interrupted: 11_601,
    InterruptedDueToReplStateChange: 11_602,
    StaleConfig: 13_388,
    NotPrimaryNoSecondaryOk: 13_435,
    NotPrimaryOrSecondary: 13_436,
    OutOfDiskSpace: 14_031,
    // Compatible servers over PostgreSQL pass on SQLSTATE 53100 and 25006 as these: the disk is full, or it takes no writes.
    DiskFull: 4_293,
    ReadOnlyTransaction: 100_663_618,
  }),
);

/** The driver's names for a failed connection, beside the subclasses of MongoNetworkError. Not all are exported. */
const awayNames: ReadonlySet<string> = new Set([
  "MongoServerSelectionError",
  "MongoPoolClosedError",
  "MongoWaitQueueTimeoutError",
  "MongoOperationTimeoutError",
  "MongoStalePrimaryError",
  "MongoNotConnectedError",
  "MongoTopologyClosedError",
  "MongoServerClosedError",
  "MongoClientClosedError",
  // Errors of operations that were under way when their client was closed and replaced.
  "MongoExpiredSessionError",
  "MongoCursorExhaustedError",
  // Written, but not confirmed by a majority, so it may still be rolled back.
  "MongoWriteConcernError",
]);

/** Node's codes for a socket that closed while the driver wrote to it. In that moment the driver throws Node's errors unchanged. */
const socketCodes: ReadonlySet<unknown> = new Set([
  "EPIPE",
  "ECONNRESET",
  "ECONNABORTED",
  "ETIMEDOUT",
  "ERR_STREAM_DESTROYED",
  "ERR_STREAM_WRITE_AFTER_END",
  "ERR_SOCKET_CLOSED",
]);

const awayLabels = ["RetryableWriteError", "RetryableError", "SystemOverloadedError"];

/** The meaning of `error`. Undefined where it is neither the driver's nor a socket's. */
export function mongoFault(error: unknown): MongoFault | undefined {
  const { MongoError, MongoNetworkError, MongoBulkWriteError } = mongodb();
  if (!(error instanceof MongoError)) {
    return socketCodes.has((error as { code?: unknown } | null)?.code) ? "away" : undefined;
  }
  // Some of its subclasses have names of another pattern.
  if (error instanceof MongoNetworkError || awayNames.has(error.name)) return "away";
  if (error instanceof MongoBulkWriteError) return bulkFault(error);
  const code = Number(error.code);
  if (code === duplicateCode) return "duplicate";
  return isAway(code) || awayLabels.some((label) => error.hasErrorLabel(label)) ? "away" : "final";
}

/**
 * Did the server answer that another write was first? Then the server is there. MongoDB itself tries again as long as an operation may
 * take.
 */
export function isConflict(error: unknown): boolean {
  return error instanceof mongodb().MongoServerError && conflicts.has(Number(error.code));
}

/** Did a unique index refuse, and nothing else? */
export function isDuplicate(error: unknown): boolean {
  return mongoFault(error) === "duplicate";
}

/** The refusal of a store that is away. `cause` is for our own log. */
export function awayRefusal(cause: unknown): RefusalError {
  return new RefusalError(ErrorReason.SERVICE_UNAVAILABLE, {
    metadata: { retry_after_ms: `${awayRetryMs}` },
    cause,
  });
}

/** Did this refusal come because the server could not be reached, and not because of constant other writes? */
export function isAwayRefusal(error: unknown): boolean {
  if (!isRefusal(error, ErrorReason.SERVICE_UNAVAILABLE)) return false;
  const { cause } = error as RefusalError;
  return mongoFault(cause) === "away" && !isConflict(cause);
}

/** Of several documents: a duplicate beside a worse error decides nothing. */
function bulkFault(error: MongoBulkWriteError): MongoFault {
  if (error.result.getWriteConcernError()) return "away";
  // The driver presents a broken connection as an answer of the server.
  const inner: unknown = error.errorResponse;
  if (inner instanceof mongodb().MongoError) return mongoFault(inner) ?? "final";
  const codes = [error.writeErrors].flat().map(({ code }) => Number(code));
  if (codes.length === 0) return isAway(Number(error.code)) ? "away" : "final";
  const others = codes.filter((code) => code !== duplicateCode);
  if (others.length === 0) return "duplicate";
  return others.every(isAway) ? "away" : "final";
}

function isAway(code: number): boolean {
  return awayCodes.has(code);
}
