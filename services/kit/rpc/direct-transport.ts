import type { DescMethod } from "@bufbuild/protobuf";
import {
  Code,
  ConnectError,
  createContextValues,
  createServiceImplSpec,
  type HandlerContext,
  type Interceptor,
  type MethodImplSpec,
  type StreamRequest,
  type Transport,
  type UnaryRequest,
} from "@connectrpc/connect";
import {
  invokeUnaryImplementation,
  runStreamingCall,
  runUnaryCall,
  transformInvokeImplementation,
} from "@connectrpc/connect/protocol";
import { refusingTransport } from "./refusing-transport.ts";
import type { RpcService } from "./service.ts";

/** What a direct transport is made of. */
export interface DirectTransportOptions {
  /** The services of this process; read at each call, so peers may be wired in any order. */
  services: () => Iterable<RpcService>;
  /** As a client over the wire would have. */
  clientInterceptors: Interceptor[];
  /** As a server over the wire would have. */
  serverInterceptors: Interceptor[];
}

/**
 * A connect-es transport that calls handlers of this process without serialising: messages are handed over as they
 * are, so neither side may change one that it gave away. Interceptors, deadlines, cancellation and errors are those
 * of the wire; calls reject with RefusalError.
 */
export function createDirectTransport(options: DirectTransportOptions): Transport {
  const specs = new Map<DescMethod, MethodImplSpec>();
  const specOf = (method: DescMethod): MethodImplSpec => {
    const known = specs.get(method);
    if (known) return known;
    for (const service of options.services()) {
      const spec = createServiceImplSpec(service.desc, service.impl);
      for (const one of Object.values(spec.methods)) specs.set(one.method, one);
    }
    const found = specs.get(method);
    if (found) return found;
    throw new ConnectError(`${method.parent.typeName} is not served here`, Code.Unimplemented);
  };
  return refusingTransport({
    async unary(method, signal, timeoutMs, header, input, contextValues) {
      return runUnaryCall({
        req: {
          ...requestCommon(method, header),
          stream: false,
          method,
          message: input,
          contextValues: contextValues ?? createContextValues(),
        },
        interceptors: options.clientInterceptors,
        ...bounds(signal, timeoutMs),
        next: async (req) => {
          const spec = specOf(method);
          if (spec.kind !== "unary") throw new ConnectError("not a unary method", Code.Internal);
          const context = serverContext(req, timeoutMs);
          const message = await untilAborted(
            invokeUnaryImplementation(spec, context, req.message, options.serverInterceptors),
            req.signal,
          );
          return {
            stream: false,
            service: method.parent,
            method,
            message: message as never,
            header: context.responseHeader,
            trailer: context.responseTrailer,
          };
        },
      });
    },
    async stream(method, signal, timeoutMs, header, input, contextValues) {
      const call = boundedCall(signal, timeoutMs);
      const response = await runStreamingCall({
        req: {
          ...requestCommon(method, header),
          stream: true,
          method,
          message: input,
          contextValues: contextValues ?? createContextValues(),
        },
        interceptors: options.clientInterceptors,
        signal: call.signal,
        next: async (req) => {
          const context = serverContext(req, timeoutMs);
          const invoke = transformInvokeImplementation(
            specOf(method),
            context,
            options.serverInterceptors,
          );
          return {
            stream: true,
            service: method.parent,
            method,
            message: abortable(invoke(req.message) as AsyncIterable<never>, req.signal),
            header: context.responseHeader,
            trailer: context.responseTrailer,
          };
        },
      });
      return { ...response, message: call.endingWith(response.message) };
    },
  });
}

function requestCommon(method: DescMethod, header: ConstructorParameters<typeof Headers>[0]) {
  return {
    service: method.parent,
    requestMethod: "POST",
    url: `direct:/${method.parent.typeName}/${method.name}`,
    header: new Headers(header),
  };
}

function bounds(signal: AbortSignal | undefined, timeoutMs: number | undefined) {
  return { ...(signal ? { signal } : {}), ...(timeoutMs === undefined ? {} : { timeoutMs }) };
}

/**
 * The handler's side of a call. Its values are its own, as they would be over the wire; its signal is the call's, which
 * aborts at the deadline and when the call is over, so that no second timer is needed.
 */
function serverContext(
  req: UnaryRequest | StreamRequest,
  timeoutMs: number | undefined,
): HandlerContext {
  const endsAt = timeoutMs === undefined ? undefined : performance.now() + timeoutMs;
  return {
    service: req.service,
    method: req.method,
    protocolName: "direct",
    requestMethod: "POST",
    url: req.url,
    requestHeader: req.header,
    responseHeader: new Headers(),
    responseTrailer: new Headers(),
    signal: req.signal,
    timeoutMs: () => (endsAt === undefined ? undefined : endsAt - performance.now()),
    values: createContextValues(),
  };
}

/** A caller that gives up is answered at once, though the handler may still be winding down. */
function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener("abort", abort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}

/** A reader that gives up is answered at once, though the handler may ignore its signal. */
function abortable<T>(source: AsyncIterable<T>, signal: AbortSignal): AsyncIterable<T> {
  return {
    [Symbol.asyncIterator]() {
      const inner = source[Symbol.asyncIterator]();
      return {
        next: () => untilAborted(inner.next(), signal),
        return: async (value) => (await inner.return?.(value)) ?? { done: true, value },
      };
    },
  };
}

interface BoundedCall {
  signal: AbortSignal;
  /** The same messages; the timer goes with the last. */
  endingWith<T>(source: AsyncIterable<T>): AsyncIterable<T>;
}

/**
 * A stream's deadline. Connect's own timer would outlive a call that its caller cancels, an hour for a long answer: this
 * one ends with the call's signal too.
 */
function boundedCall(signal: AbortSignal | undefined, timeoutMs: number | undefined): BoundedCall {
  const call = new AbortController();
  const end = () => clearTimeout(timer);
  const timer =
    timeoutMs === undefined || timeoutMs <= 0
      ? undefined
      : setTimeout(
          () => call.abort(new ConnectError("the operation timed out", Code.DeadlineExceeded)),
          timeoutMs,
        );
  const cancel = () => {
    end();
    call.abort(signal?.reason);
  };
  if (signal?.aborted) cancel();
  signal?.addEventListener("abort", cancel, { once: true });
  return {
    signal: call.signal,
    async *endingWith(source) {
      try {
        yield* source;
      } finally {
        end();
        signal?.removeEventListener("abort", cancel);
      }
    },
  };
}
