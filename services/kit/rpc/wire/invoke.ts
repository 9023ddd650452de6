// Runs a handler of a service behind the server's interceptors, for all transports. The objects that interceptors see are made
// here, because those of the library cost more than the rest of a short call.

import {
  create,
  type DescMessage,
  type DescMethod,
  type Message,
  type MessageInitShape,
} from "@bufbuild/protobuf";
import {
  Code,
  ConnectError,
  type ContextValues,
  createContextValues,
  type HandlerContext,
  type Interceptor,
  type MethodImplSpec,
  type StreamRequest,
  type StreamResponse,
  type UnaryRequest,
  type UnaryResponse,
} from "@connectrpc/connect";
import { staged } from "#kit/stream/stages.ts";
import type { Call } from "./call.ts";

type AnyRequest = UnaryRequest | StreamRequest;
type AnyResponse = UnaryResponse | StreamResponse;
/** A request or answer that an interceptor may have copied: see {@link UnaryCall}. */
export type Copied<T> = Omit<T, "signal" | "header" | "trailer"> &
  Partial<Pick<T, Extract<keyof T, "signal" | "header" | "trailer">>>;
/** The function that interceptors wrap. */
export type AnyFn = (request: AnyRequest) => Promise<AnyResponse>;

/** A handler's side of a call. Its headers are made at the first use. */
export interface ServedContext extends HandlerContext {
  /** The headers that the handler or an interceptor set. Undefined where neither did. */
  readonly setHeader: Headers | undefined;
  readonly setTrailer: Headers | undefined;
}

/** The parts of a context. */
export interface ServedContextInit {
  method: DescMethod;
  protocolName: string;
  url: string;
  call: Call;
  requestHeader: () => Headers;
}

/** A context for one call. */
export function servedContext(init: ServedContextInit): ServedContext {
  return new Context(init);
}

/** A class, because an object with its own getters costs as much as all other work of a short call here. */
class Context implements ServedContext {
  readonly method: DescMethod;
  readonly service: DescMethod["parent"];
  readonly protocolName: string;
  readonly requestMethod = "POST";
  readonly url: string;
  readonly values = createContextValues();
  readonly #call: Call;
  readonly #makeRequestHeader: () => Headers;
  #requestHeader: Headers | undefined;
  #header: Headers | undefined;
  #trailer: Headers | undefined;

  constructor({ method, protocolName, url, call, requestHeader }: ServedContextInit) {
    this.method = method;
    this.service = method.parent;
    this.protocolName = protocolName;
    this.url = url;
    this.#call = call;
    this.#makeRequestHeader = requestHeader;
  }

  timeoutMs(): number | undefined {
    return this.#call.leftMs();
  }

  get signal(): AbortSignal {
    return this.#call.signal;
  }

  get requestHeader(): Headers {
    this.#requestHeader ??= this.#makeRequestHeader();
    return this.#requestHeader;
  }

  get responseHeader(): Headers {
    this.#header ??= new Headers();
    return this.#header;
  }

  get responseTrailer(): Headers {
    this.#trailer ??= new Headers();
    return this.#trailer;
  }

  get setHeader(): Headers | undefined {
    return this.#header;
  }

  get setTrailer(): Headers | undefined {
    return this.#trailer;
  }
}

/** `last`, wrapped by the interceptors, the first outermost. */
export function intercepted(last: AnyFn, interceptors: readonly Interceptor[]): AnyFn {
  let next = last;
  for (let i = interceptors.length - 1; i >= 0; i--) next = (interceptors[i] as Interceptor)(next);
  return next;
}

/**
 * The request of a unary call, as interceptors see it. Its signal is made at the first use, by a getter on the prototype. An object
 * with a getter of its own costs as much as ten without. So a copy that an interceptor makes has no signal, and the call's own is used.
 */
export class UnaryCall implements UnaryRequest {
  readonly stream = false;
  readonly requestMethod = "POST";
  readonly service: UnaryRequest["service"];
  readonly method: UnaryRequest["method"];
  readonly message: Message;
  readonly url: string;
  readonly header: Headers;
  readonly contextValues: ContextValues;
  readonly #bounds: { readonly signal: AbortSignal };

  /** `bounds` holds the signal. */
  constructor(
    method: DescMethod,
    message: Message,
    { url, header, contextValues }: Pick<UnaryRequest, "url" | "header" | "contextValues">,
    bounds: { readonly signal: AbortSignal },
  ) {
    this.service = method.parent;
    this.method = method as UnaryRequest["method"];
    this.message = message;
    this.url = url;
    this.header = header;
    this.contextValues = contextValues;
    this.#bounds = bounds;
  }

  get signal(): AbortSignal {
    return this.#bounds.signal;
  }
}

/** The source of an answer's headers: the handler's context, or the answer over the wire. They are made when they are first read. */
export type AnswerHeaders = Pick<HandlerContext, "responseHeader" | "responseTrailer">;

/** The answer to a unary call, as interceptors see it. As with {@link UnaryCall}, a copy has the headers of the original. */
export class UnaryAnswer implements UnaryResponse {
  readonly stream = false;
  readonly service: UnaryResponse["service"];
  readonly method: UnaryResponse["method"];
  readonly message: Message;
  readonly #headers: AnswerHeaders;

  constructor(method: DescMethod, message: Message, headers: AnswerHeaders) {
    this.service = method.parent;
    this.method = method as UnaryResponse["method"];
    this.message = message;
    this.#headers = headers;
  }

  get header(): Headers {
    return this.#headers.responseHeader;
  }

  get trailer(): Headers {
    return this.#headers.responseTrailer;
  }
}

/** Runs a unary handler behind its interceptors. */
export async function invokeUnary(
  spec: MethodImplSpec,
  context: ServedContext,
  message: Message,
  interceptors: readonly Interceptor[],
): Promise<Message> {
  if (spec.kind !== "unary") throw new ConnectError("not a unary method", Code.Internal);
  const { impl, method } = spec;
  const { url, requestHeader: header, values: contextValues } = context;
  const request = new UnaryCall(method, message, { url, header, contextValues }, context);
  let own: AnyResponse | undefined;
  const handle = async (req: AnyRequest): Promise<AnyResponse> => {
    const output = await impl(req.message as Message, contextOf(req, request, context));
    own = new UnaryAnswer(method, create(method.output, output), context);
    return own;
  };
  const response: Copied<AnyResponse> = await intercepted(handle, interceptors)(request);
  if (response !== own) {
    if (response.header) replace(context.responseHeader, response.header);
    if (response.trailer) replace(context.responseTrailer, response.trailer);
  }
  return response.message as Message;
}

/** Runs a streaming handler of any kind behind its interceptors. Headers may be set until the first message is read. */
export async function invokeStream(
  spec: MethodImplSpec,
  context: ServedContext,
  message: AsyncIterable<Message>,
  interceptors: readonly Interceptor[],
): Promise<AsyncIterable<Message>> {
  if (spec.kind === "unary") throw new ConnectError("not a streaming method", Code.Internal);
  const { method } = spec;
  const request: StreamRequest = {
    stream: true,
    service: method.parent,
    method,
    message,
    requestMethod: context.requestMethod,
    url: context.url,
    contextValues: context.values,
    signal: context.signal,
    header: context.requestHeader,
  };
  const handle = async (req: AnyRequest): Promise<AnyResponse> => ({
    stream: true,
    service: method.parent,
    method,
    message: await outputOf(spec, req as StreamRequest, contextOf(req, request, context)),
    header: context.responseHeader,
    trailer: context.responseTrailer,
  });
  const response = (await intercepted(handle, interceptors)(request)) as StreamResponse;
  replace(context.responseHeader, response.header);
  if (response.trailer === context.responseTrailer) return response.message;
  return followedBy(response.message, () => replace(context.responseTrailer, response.trailer));
}

type StreamSpec = Exclude<MethodImplSpec, { kind: "unary" }>;

async function outputOf(
  spec: StreamSpec,
  req: StreamRequest,
  context: HandlerContext,
): Promise<AsyncIterable<Message>> {
  switch (spec.kind) {
    case "server_streaming":
      return created(spec.method.output, spec.impl(await single(req.message), context));
    case "client_streaming":
      return only(create(spec.method.output, await spec.impl(req.message, context)));
    case "bidi_streaming":
      return created(spec.method.output, spec.impl(req.message, context));
  }
}

/** `source`, with its messages made complete. */
export function created(
  desc: DescMessage,
  source: AsyncIterable<MessageInitShape<DescMessage>>,
): AsyncIterable<Message> {
  return staged<MessageInitShape<DescMessage>, Message>(source, {
    pass: (message) => create(desc, message),
  });
}

async function* only<T>(value: T): AsyncIterable<T> {
  yield value;
}

async function* followedBy<T>(source: AsyncIterable<T>, last: () => void): AsyncIterable<T> {
  yield* source;
  last();
}

async function single<T>(source: AsyncIterable<T>): Promise<T> {
  const it = source[Symbol.asyncIterator]();
  const first = await it.next();
  if (first.done) throw new ConnectError("protocol error: no message", Code.Unimplemented);
  const second = await it.next();
  if (!second.done) {
    void it.return?.();
    throw new ConnectError("protocol error: more than one message", Code.Unimplemented);
  }
  return first.value;
}

/** The handler's context, with the parts that an interceptor replaced. */
function contextOf(req: AnyRequest, own: AnyRequest, context: ServedContext): HandlerContext {
  if (req === own) return context;
  return {
    method: context.method,
    service: req.service,
    protocolName: context.protocolName,
    requestMethod: context.requestMethod,
    url: context.url,
    requestHeader: req.header,
    signal: (req as Copied<AnyRequest>).signal ?? context.signal,
    values: req.contextValues,
    timeoutMs: () => context.timeoutMs(),
    get responseHeader() {
      return context.responseHeader;
    },
    get responseTrailer() {
      return context.responseTrailer;
    },
  };
}

function replace(into: Headers, from: Headers): void {
  if (from === into) return;
  for (const name of [...into.keys()]) into.delete(name);
  for (const [name, value] of from) into.append(name, value);
}
