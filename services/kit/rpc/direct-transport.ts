// Calls the services of this process, in place of `wire-transport.ts`. So a service is called in the same way wherever it runs.

import { create, type DescMethod } from "@bufbuild/protobuf";
import {
  Code,
  ConnectError,
  createServiceImplSpec,
  type Interceptor,
  type MethodImplSpec,
  type Transport,
} from "@connectrpc/connect";
import { staged } from "#kit/stream/stages.ts";
import { refusingTransport } from "./refusing-transport.ts";
import type { RpcService } from "./service.ts";
import { Call } from "./wire/call.ts";
import { created, invokeStream, invokeUnary, servedContext, UnaryAnswer } from "./wire/invoke.ts";
import { type CallRequest, runStream, runUnary } from "./wire/run-call.ts";

/** Options of a direct transport. */
export interface DirectTransportOptions {
  /** The services of this process. Read at each call, so peers may be wired in any order. */
  services: () => Iterable<RpcService>;
  /** The interceptors that a client over the wire would have. */
  clientInterceptors: Interceptor[];
  /** The interceptors that a server over the wire would have. */
  serverInterceptors: Interceptor[];
}

/**
 * A connect-es transport that calls handlers of this process without serialising. Messages are handed over unchanged, so neither side
 * may change one that it gave away. Interceptors, deadlines, cancellation and errors are those of the wire. Calls reject with
 * RefusalError.
 */
export function createDirectTransport(options: DirectTransportOptions): Transport {
  const { clientInterceptors, serverInterceptors } = options;
  const specOf = specLookUp(options.services);
  return refusingTransport({
    async unary(method, signal, timeoutMs, header, input, contextValues) {
      const call = new Call({ signal, timeoutMs });
      const common = requestOf(method, header, contextValues, call);
      const message = create(method.input, input);
      return runUnary(common, message, clientInterceptors, async (req) => {
        const context = contextOf(method, call, req);
        // A caller that gives up gets its answer at once, though the handler may still be finishing.
        const answer = await call.race(
          invokeUnary(specOf(method), context, req.message, serverInterceptors),
        );
        return new UnaryAnswer(method, answer, context);
      }) as never;
    },
    async stream(method, signal, timeoutMs, header, input, contextValues) {
      const call = new Call({ signal, timeoutMs });
      const common = requestOf(method, header, contextValues, call);
      const messages = created(method.input, input as AsyncIterable<never>);
      return runStream(common, messages, clientInterceptors, async (req) => {
        const context = contextOf(method, call, req);
        const answers = await call.race(
          invokeStream(specOf(method), context, req.message, serverInterceptors),
        );
        return {
          stream: true,
          service: method.parent,
          method,
          // A reader that gives up gets its answer at once, though the handler may ignore its signal.
          message: staged(answers, { until: (stop) => call.onAbort(stop) }),
          header: context.responseHeader,
          trailer: context.responseTrailer,
        };
      }) as never;
    },
  });
}

function specLookUp(services: () => Iterable<RpcService>): (method: DescMethod) => MethodImplSpec {
  const specs = new Map<DescMethod, MethodImplSpec>();
  return (method) => {
    const known = specs.get(method);
    if (known) return known;
    for (const service of services()) {
      const spec = createServiceImplSpec(service.desc, service.impl);
      for (const one of Object.values(spec.methods)) specs.set(one.method, one);
    }
    const found = specs.get(method);
    if (found) return found;
    throw new ConnectError(`${method.parent.typeName} is not served here`, Code.Unimplemented);
  };
}

function requestOf(
  method: DescMethod,
  header: HeadersInit | undefined,
  contextValues: CallRequest["contextValues"],
  call: Call,
): CallRequest {
  const url = `direct:/${method.parent.typeName}/${method.name}`;
  return { method, url, header: new Headers(header), contextValues, call };
}

/** The handler's context. Its values are its own, as they would be over the wire. Its deadline and its signal are the call's. */
function contextOf(method: DescMethod, call: Call, req: { url: string; header: Headers }) {
  return servedContext({
    method,
    protocolName: "direct",
    url: req.url,
    call,
    requestHeader: () => req.header,
  });
}
