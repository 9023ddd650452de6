import type { DescMethod } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel as Idempotency } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import { ErrorReason, isRefusal, RefusalError } from "#kit/base/errors.ts";
import { fromConnectError } from "#kit/rpc/error-wire.ts";
import { mapErrors } from "#kit/rpc/interceptors.ts";
import { again, againForMs } from "./again.ts";

/** A service as its operator knows it. */
export interface Named {
  /** "auth" */
  service: string;
  /** Where it is looked for. */
  address: string;
  /** What its operator should look at where it does not answer. */
  hint: string;
  /** Told before a call is made again. */
  onRepeat(): void;
}

/**
 * A transport that makes a call again, with the same content, where it failed on its way and a repeat does no harm: where it
 * was not sent, where its method is idempotent, and where it brings an operation id. What fails for good names the service.
 */
export function patientTransport(inner: Transport, named: Named): Transport {
  const patient = <T>(isRepeatable: boolean, call: () => Promise<T>): Promise<T> => {
    const isSafe = (error: unknown) => isRepeatable || isUnsent(error);
    const helps = (error: unknown) => isPassing(failureOf(error)) && isSafe(error);
    return again(call, { helps, onRepeat: named.onRepeat }).catch((error: unknown) => {
      throw namedRefusal(error, named, isSafe(error));
    });
  };
  return {
    unary: (method, signal, timeoutMs, header, input, contextValues) =>
      patient(isIdempotent(method) || hasOperationId(input), () =>
        inner.unary(method, signal, timeoutMs, header, input, contextValues),
      ),
    async stream(method, signal, timeoutMs, header, input, contextValues) {
      // Calls that answer with a stream send one message.
      const messages: (typeof input extends AsyncIterable<infer M> ? M : never)[] = [];
      for await (const message of input) messages.push(message);
      const response = await patient(isIdempotent(method), () =>
        inner.stream(method, signal, timeoutMs, header, each(messages), contextValues),
      );
      const message = mapErrors(response.message, (error) => namedRefusal(error, named, false));
      return { ...response, message };
    },
  };
}

async function* each<T>(messages: readonly T[]): AsyncIterable<T> {
  yield* messages;
}

function isIdempotent({ idempotency }: DescMethod): boolean {
  return idempotency === Idempotency.IDEMPOTENT || idempotency === Idempotency.NO_SIDE_EFFECTS;
}

function hasOperationId(input: object): boolean {
  return "operationId" in input && Boolean(input.operationId);
}

/** The service is away, it is up and lacks what it needs, or it did not answer in all of a call's time. */
type Failure = "away" | "lacking" | "slow";

function failureOf(error: unknown): Failure | undefined {
  const refusal = fromConnectError(error);
  const isOwnWords = isRefusal(refusal) && refusal.cause !== error;
  if (isOwnWords)
    return isRefusal(refusal, ErrorReason.SERVICE_UNAVAILABLE) ? "lacking" : undefined;
  if (!(error instanceof ConnectError)) return undefined;
  if (error.code === Code.DeadlineExceeded) return "slow";
  return awayCodes.has(error.code) || isReset(error) ? "away" : undefined;
}

function isPassing(failure: Failure | undefined): boolean {
  return failure === "away" || failure === "lacking";
}

/** A connection that breaks looks like a call that was left, which the command never does. */
const awayCodes = new Set([Code.Unavailable, Code.Aborted, Code.Canceled]);

/** A stream or a connection of HTTP/2 was reset. */
function isReset({ cause }: ConnectError): boolean {
  const { code } = (cause ?? {}) as NodeJS.ErrnoException;
  return code === "ERR_HTTP2_STREAM_ERROR" || code === "ERR_HTTP2_SESSION_ERROR";
}

const unsentCodes = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN"]);

/** No connection came about. */
function isUnsent(error: unknown): boolean {
  for (let at = error; at instanceof Error; at = at.cause) {
    if (unsentCodes.has((at as NodeJS.ErrnoException).code ?? "")) return true;
  }
  return false;
}

function namedRefusal(error: unknown, named: Named, isSafe: boolean): unknown {
  const failure = failureOf(error);
  if (failure === undefined) return error;
  const message = wordsOf(failure, named, isSafe ? "" : unknownOutcome);
  const cause = error instanceof ConnectError && failure !== "lacking" ? error.rawMessage : "";
  return new RefusalError(ErrorReason.SERVICE_UNAVAILABLE, {
    message: cause ? `${message} (${cause})` : message,
    cause: error,
  });
}

const unknownOutcome = "; it may have done what was asked, so look before you repeat it";

function wordsOf(failure: Failure, { service, address, hint }: Named, outcome: string): string {
  const name = `the service ${service} at ${address}`;
  switch (failure) {
    case "away":
      if (outcome) return `${name} broke off${outcome}`;
      return `${name} is away: it did not answer within ${againForMs / 1_000} s; ${hint}`;
    case "slow":
      return `${name} took too long to answer${outcome}`;
    case "lacking":
      return `${name} is up, but its database or a service that it calls is away; its log says which`;
  }
}
