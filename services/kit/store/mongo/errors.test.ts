import {
  MongoBulkWriteError,
  MongoCursorExhaustedError,
  MongoExpiredSessionError,
  MongoInvalidArgumentError,
  MongoNetworkError,
  MongoServerError,
  MongoWriteConcernError,
} from "mongodb";
import { describe, expect, test } from "vitest";
import { ErrorReason } from "#kit/base/errors.ts";
import { awayRefusal, isDuplicate, mongoFault } from "./errors.ts";

const server = (code: number, errorLabels: string[] = []) =>
  new MongoServerError({ message: "m", code, errorLabels });

/** The driver's error for all operations under way when its monitor gets no answer. The class is not exported. */
class InterruptedError extends MongoNetworkError {
  override get name() {
    return "PoolClearedOnNetworkError";
  }
}

/** A write of several documents, some of which were refused. `unconfirmed`: the others lack a majority. */
function bulk(codes: number[], unconfirmed = false): MongoBulkWriteError {
  const writeErrors = codes.map((code) => ({ code }));
  const result = { getWriteConcernError: () => (unconfirmed ? { code: 64 } : undefined) };
  return new MongoBulkWriteError(
    { message: "m", code: codes[0] ?? 0, writeErrors } as never,
    result as never,
  );
}

describe("a fault", () => {
  test.each([
    ["a broken connection", new MongoNetworkError("reset")],
    ["a connection that the monitor gave up", new InterruptedError("interrupted")],
    ["a socket that closed under a write", Object.assign(new Error("ended"), { code: "EPIPE" })],
    ["a session that ended with its client", new MongoExpiredSessionError()],
    ["a cursor that ended with its client", new MongoCursorExhaustedError()],
    ["no primary any more", server(10_107)],
    ["a primary that is shutting down", server(91)],
    ["a server that has failed", server(1)],
    ["a deadlock that a server over PostgreSQL passes on", server(16_908_292)],
    ["a server that says so itself", server(99_999, ["RetryableWriteError"])],
    [
      "a majority that did not confirm",
      new MongoWriteConcernError({ writeConcernError: { code: 64, errmsg: "m" }, ok: 1 } as never),
    ],
    ["a bulk without a majority, duplicates or not", bulk([11_000], true)],
    [
      "a bulk whose connection broke",
      new MongoBulkWriteError(new MongoNetworkError("reset"), bulk([]).result),
    ],
    ["a bulk that met a stepdown beside a duplicate", bulk([11_000, 189])],
  ])("%s: away", (_, error) => {
    expect(mongoFault(error)).toBe("away");
    expect(isDuplicate(error)).toBe(false);
  });

  test.each([
    ["one document", server(11_000)],
    ["several documents", bulk([11_000, 11_000])],
  ])("a value that a unique index has, %s: duplicate", (_, error) => {
    expect(mongoFault(error)).toBe("duplicate");
    expect(isDuplicate(error)).toBe(true);
  });

  test.each([
    ["a command that is wrong", server(9)],
    ["missing rights", server(13)],
    ["a document that is too large", server(10_334)],
    ["something wrong beside a duplicate", bulk([11_000, 9])],
    ["a mistake of ours", new MongoInvalidArgumentError("m")],
  ])("%s: final", (_, error) => {
    expect(mongoFault(error)).toBe("final");
  });

  test("what is not the driver's is none of its faults", () => {
    expect(mongoFault(new Error("MongoNetworkError"))).toBeUndefined();
    expect(mongoFault(awayRefusal(server(1)))).toBeUndefined();
  });
});

test("a store that is away is refused with a hint, and its cause for the log alone", () => {
  const cause = server(91);
  expect(awayRefusal(cause)).toMatchObject({
    reason: ErrorReason.SERVICE_UNAVAILABLE,
    metadata: { retry_after_ms: "1000" },
    cause,
  });
  expect(awayRefusal(cause).message).not.toContain("91");
});
