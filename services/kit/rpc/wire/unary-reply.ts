import type { Message } from "@bufbuild/protobuf";
import { Code, ConnectError, type UnaryRequest, type UnaryResponse } from "@connectrpc/connect";
import { errorFromJsonBytes, validateResponse } from "@connectrpc/connect/protocol-connect";
import type { Codec } from "./codec.ts";
import type { UnaryReply } from "./exchange-unary.ts";
import { headersOf, leadingOf, oneOf, trailingOf } from "./headers.ts";

/** Content type of a unary request and its answer. */
export const unaryType = "application/proto";

/** What an answer is to the caller. Throws the ConnectError that came instead of a message. */
export function unaryResponse(req: UnaryRequest, reply: UnaryReply, codec: Codec) {
  const { headers, status, body } = reply;
  const type = oneOf(headers, "content-type");
  if (status !== 200 || type !== unaryType || headers["content-encoding"] !== undefined) {
    refuseUnary(reply);
  }
  return new Answer(req, codec.read(body), headers);
}

/** Its headers are made when somebody asks for them; what that means for copies says `UnaryCall`. */
class Answer implements UnaryResponse {
  readonly stream = false;
  readonly service: UnaryResponse["service"];
  readonly method: UnaryResponse["method"];
  readonly message: Message;
  readonly #received: UnaryReply["headers"];
  #header: Headers | undefined;
  #trailer: Headers | undefined;

  constructor(
    { service, method }: UnaryRequest,
    message: Message,
    received: UnaryReply["headers"],
  ) {
    this.service = service;
    this.method = method;
    this.message = message;
    this.#received = received;
  }

  get header(): Headers {
    this.#header ??= leadingOf(this.#received);
    return this.#header;
  }

  get trailer(): Headers {
    this.#trailer ??= trailingOf(this.#received);
    return this.#trailer;
  }
}

/** Throws what an answer that is no message means, if it means anything. */
function refuseUnary({ status, headers, body }: UnaryReply): void {
  const encoding = oneOf(headers, "content-encoding")?.toLowerCase() ?? "identity";
  if (encoding !== "identity") {
    throw new ConnectError(`unsupported response encoding "${encoding}"`, Code.Internal);
  }
  const { isUnaryError, unaryError } = validateResponse("unary", true, status, headersOf(headers));
  if (!isUnaryError) return;
  const metadata = leadingOf(headers);
  for (const [name, value] of trailingOf(headers)) metadata.append(name, value);
  throw errorFromJsonBytes(body, metadata, unaryError);
}
