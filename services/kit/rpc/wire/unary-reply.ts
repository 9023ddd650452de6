// Reads the answer to a call with one message: the message, or the error that came in its place.

import { Code, ConnectError, type UnaryRequest } from "@connectrpc/connect";
import { errorFromJsonBytes, validateResponse } from "@connectrpc/connect/protocol-connect";
import type { Codec } from "./codec.ts";
import type { UnaryReply } from "./exchange-unary.ts";
import { headersOf, leadingOf, oneOf, trailingOf } from "./headers.ts";
import { type AnswerHeaders, UnaryAnswer } from "./invoke.ts";

/** Content type of a unary request and its answer. */
export const unaryType = "application/proto";

/** The answer for the caller. Throws the ConnectError that came instead of a message. */
export function unaryResponse(req: UnaryRequest, reply: UnaryReply, codec: Codec) {
  const { headers, status, body } = reply;
  const type = oneOf(headers, "content-type");
  if (status !== 200 || type !== unaryType || headers["content-encoding"] !== undefined) {
    refuseUnary(reply);
  }
  return new UnaryAnswer(req.method, codec.read(body), new ReceivedHeaders(headers));
}

class ReceivedHeaders implements AnswerHeaders {
  readonly #received: UnaryReply["headers"];
  #header: Headers | undefined;
  #trailer: Headers | undefined;

  constructor(received: UnaryReply["headers"]) {
    this.#received = received;
  }

  get responseHeader(): Headers {
    this.#header ??= leadingOf(this.#received);
    return this.#header;
  }

  get responseTrailer(): Headers {
    this.#trailer ??= trailingOf(this.#received);
    return this.#trailer;
  }
}

/** Throws the error in an answer that is no message, if it holds one. */
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
