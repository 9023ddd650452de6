// Runs a call through the client's interceptors, for all transports. `invoke.ts` does it on the server's side.

import type { DescMethod, Message } from "@bufbuild/protobuf";
import {
  Code,
  ConnectError,
  type ContextValues,
  createContextValues,
  type Interceptor,
  type StreamRequest,
  type StreamResponse,
  type UnaryRequest,
  type UnaryResponse,
} from "@connectrpc/connect";
import { staged } from "#kit/stream/stages.ts";
import type { Call } from "./call.ts";
import { type Copied, intercepted, UnaryCall } from "./invoke.ts";

/** A client's side of a call, as its interceptors see it. */
export interface CallRequest {
  method: DescMethod;
  url: string;
  header: Headers;
  contextValues: ContextValues | undefined;
  call: Call;
}

/**
 * Runs a unary call through the client's interceptors, then `send`. Rejects with a ConnectError, or with the reason of the abort where
 * the call was aborted. Ends the call.
 */
export async function runUnary(
  common: CallRequest,
  message: Message,
  interceptors: readonly Interceptor[],
  send: (request: UnaryRequest) => Promise<UnaryResponse>,
): Promise<UnaryResponse> {
  const { call, url, header, contextValues = createContextValues() } = common;
  const request = new UnaryCall(common.method, message, { url, header, contextValues }, call);
  try {
    return (await intercepted(lastOf(call, request, send), interceptors)(request)) as UnaryResponse;
  } catch (error) {
    throw call.errorOf(error);
  } finally {
    call.end();
  }
}

/** The same as {@link runUnary} for streams. The call ends with the last message, or when the reader leaves. */
export async function runStream(
  common: CallRequest,
  message: AsyncIterable<Message>,
  interceptors: readonly Interceptor[],
  send: (request: StreamRequest) => Promise<StreamResponse>,
): Promise<StreamResponse> {
  const { call, method } = common;
  const request: StreamRequest = {
    stream: true,
    service: method.parent,
    method: method as StreamRequest["method"],
    message,
    requestMethod: "POST",
    url: common.url,
    header: common.header,
    contextValues: common.contextValues ?? createContextValues(),
    signal: call.signal,
  };
  const over = () => {
    call.end();
    leave(message);
  };
  try {
    const response = (await intercepted(
      lastOf(call, request, send),
      interceptors,
    )(request)) as StreamResponse;
    return { ...response, message: reading(response.message, call, over) };
  } catch (error) {
    const meant = call.errorOf(error);
    over();
    throw meant;
  }
}

/**
 * The innermost function, behind the interceptors. A request that an interceptor put in place of the original brings a signal of its
 * own.
 */
function lastOf<Req extends UnaryRequest | StreamRequest, Res>(
  call: Call,
  request: Req,
  send: (request: Req) => Promise<Res>,
) {
  return async (req: UnaryRequest | StreamRequest): Promise<Res> => {
    if (req !== request) followCopy(call, req);
    call.throwIfAborted();
    return send(req as Req);
  };
}

function followCopy(call: Call, { signal }: Copied<UnaryRequest | StreamRequest>): void {
  if (signal) call.follow(signal);
}

/** `source`, whose end, error or early return ends the call. */
function reading<T>(source: AsyncIterable<T>, call: Call, over: () => void): AsyncIterable<T> {
  return staged(source, {
    end: over,
    fail(error) {
      const meant = call.errorOf(error);
      over();
      return meant;
    },
    leave() {
      // The other end learns of it at once, even where the source does not stop.
      call.abort(leftError());
      over();
    },
  });
}

/** Informs the sender of a stream's requests that the handler takes no further ones. An error that it throws then is ignored. */
function leave(source: AsyncIterable<unknown>): void {
  source[Symbol.asyncIterator]()
    .return?.()
    .catch(() => {});
}

function leftError(): ConnectError {
  return new ConnectError("the reader has left", Code.Canceled);
}
