// Makes the command's calls wait for a server that is away, where a repeat is safe, and words the error for its operator.
// `client.ts` wraps each service's transport in it.

import type { DescMethod } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel as Idempotency } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import { ErrorReason, isRefusal, RefusalError } from "#kit/base/errors.ts";
import { fromConnectError } from "#kit/rpc/error-wire.ts";
import { mapErrors } from "#kit/rpc/interceptors.ts";
import { again, againForMs } from "./again.ts";

/** A service and the words by which an operator knows it. */
export interface Named {
  /** For example "auth". */
  service: string;
  /** The address at which it is called. */
  address: string;
  /** Advice for the operator where the service does not answer. */
  hint: string;
  /** Called before the first repeat of a call. */
  onRepeat(): void;
}

/**
 * A transport that repeats a failed call with the same content where that does no harm. A repeat is safe where the call was not sent, where
 * its method is idempotent, and where it brings an operation id. A final error names the service.
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
      // Calls with a stream as their answer send one message.
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

/** The service is away, or it is up and lacks something, or it did not answer within the call's time. */
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

/** A broken connection looks like a call that its caller left. The command never leaves a call. */
const awayCodes = new Set([Code.Unavailable, Code.Aborted, Code.Canceled]);

/** Was a stream or a connection of HTTP/2 reset? */
function isReset({ cause }: ConnectError): boolean {
  const { code } = (cause ?? {}) as NodeJS.ErrnoException;
  return code === "ERR_HTTP2_STREAM_ERROR" || code === "ERR_HTTP2_SESSION_ERROR";
}

const unsentCodes = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN"]);

/** Was there no connection at all? */
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
