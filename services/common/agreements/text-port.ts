// The agreement between the edge and the text service: the request that one hands over, and the forms of answer that it gets. The
// text service implements `TextPort` itself. `text-wire.ts` implements it where the service is in another process.

import type { MessageInitShape } from "@bufbuild/protobuf";
import type { PeerCall } from "#kit/rpc/peer-call.ts";
import type { AdmissionSchema } from "#proto/genmesh/common/v1/access_pb.ts";
import type { Operation } from "#proto/genmesh/text/v1/text_service_pb.ts";

/** A request of the public API for a text. */
export interface TextRequest {
  operation: Operation;
  /** The JSON body. */
  body: Uint8Array;
  /** The caller's Idempotency-Key. Undefined: none. An empty one is refused. */
  idempotencyKey?: string | undefined;
  /** The edge's knowledge of the key. */
  admission?: MessageInitShape<typeof AdmissionSchema> | undefined;
  /** The edge's name for the conversation of the request, among those of its account. Absent: its body alone names it. */
  conversation?: string | undefined;
  /** Beta features that a client of Anthropic's asks for. Absent: none. */
  betas?: readonly string[] | undefined;
  /** A large JSON may come in pieces. Absent: it comes as one. */
  takesPieces?: boolean;
}

/** Facts about an answer that its caller gets with it. */
export interface TextNotes {
  /** True where the answer was kept from an earlier request with the same idempotency key. */
  replayed: boolean;
  /** Properties of the request that were accepted and not sent to the upstream. */
  ignored: readonly string[];
  /** Tokens: the bound of the output, where it fell to what money pays for. Absent: it did not. */
  maxOutputTokens?: number | undefined;
}

/** An answer in one piece. `cost`: USD micros that were charged. Undefined where the charge is unknown. */
export interface WholeText extends TextNotes {
  kind: "json";
  body: Uint8Array;
  cost?: bigint | undefined;
}

/** A large answer in pieces of `bytes` together. Each piece is made when its reader has taken the one before. */
interface PiecedText extends TextNotes {
  kind: "pieces";
  bytes: number;
  pieces: AsyncIterable<Uint8Array>;
  cost?: bigint | undefined;
}

/** Bytes of whole events, ready to be written, for one reader. */
interface StreamedText extends TextNotes {
  kind: "events";
  events: AsyncIterable<Uint8Array>;
}

/** An answer that has begun. A stream must be read to its end, or left. */
export type TextAnswer = WholeText | PiecedText | StreamedText;

/**
 * The text service, as the edge asks it. In one process it is the service itself, without a message. Both reject with the refusal of the
 * request. When the deadline passes or the caller stops, the upstream's answer is stopped, and the part that was generated is charged.
 */
export interface TextPort {
  /** Answers in one piece. Refuses a body that asks for events, with INVALID_VALUE at `stream`. */
  json(request: TextRequest, call: PeerCall): Promise<WholeText>;
  /** Answers as the body asks. A refusal before the first event rejects. A later one is an event. */
  answer(request: TextRequest, call: PeerCall): Promise<TextAnswer>;
}
