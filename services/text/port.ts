// The text service for callers in its own process, and for its methods in `routes.ts`. It ends a request when its caller leaves
// or its deadline passes.

import { create } from "@bufbuild/protobuf";
import type { TextAnswer, TextPort, TextRequest } from "#common/agreements/text-port.ts";
import { type Awaitable, after } from "#kit/base/awaitable.ts";
import { ErrorReason, refuse, unavailable } from "#kit/base/errors.ts";
import type { JsonReader } from "#kit/json-reader/index.ts";
import type { PeerCall } from "#kit/rpc/peer-call.ts";
import { Call as Life } from "#kit/rpc/wire/call.ts";
import { staged } from "#kit/stream/stages.ts";
import { AdmissionSchema } from "#proto/genmesh/common/v1/access_pb.ts";
import { Operation } from "#proto/genmesh/text/v1/text_service_pb.ts";
import type { TextOperation } from "../upstreams/text/port.ts";
import type { Answering, Call } from "./answers/answering.ts";
import type { Answer, Seat } from "./answers/joins.ts";
import { answerPieceBytes } from "./base/limits.ts";
import { parseRequest } from "./request/parse.ts";

/** The parts that the port needs. */
interface TextPortContext {
  answering: Pick<Answering, "ask">;
  /** Reads request bodies. */
  reader: JsonReader;
}

/** An answer of one caller. */
interface Asked {
  answer: Answer;
  life: Life;
  /** The caller is served, or gone. May be called twice. */
  over: () => void;
}

/** The text service for its callers. A caller that leaves, or whose deadline passes, leaves its seat. */
export function createTextPort(context: TextPortContext): TextPort {
  return {
    async json(request, peer) {
      const { answer, over } = await ask(request, peer, context, true, (asked) => asked);
      over();
      if (answer.kind !== "json") throw new TypeError("a stream for a caller who asked for none");
      return answer;
    },
    answer: (request, peer) =>
      ask(request, peer, context, false, (asked): TextAnswer => {
        const { answer, life, over } = asked;
        if (answer.kind === "json") return jsonOf(answer, asked, request.takesPieces === true);
        const until = (stop: (reason: unknown) => void) => life.onAbort(stop);
        return { ...answer, events: staged(answer.events, { until, ...endingWith(over) }) };
      }),
  };
}

/** The result of `answered` for the answer. Rejects at once where the caller leaves or the deadline passes. */
function ask<T>(
  request: TextRequest,
  peer: PeerCall,
  { answering, reader }: TextPortContext,
  isJson: boolean,
  answered: (asked: Asked) => T,
): Promise<T> {
  const life = new Life({ signal: peer.signal, timeoutMs: peer.timeoutMs, late: unavailable });
  let seat: Seat | undefined;
  const over = () => {
    life.end();
    seat?.leave();
  };
  return new Promise((resolve, reject) => {
    const fail = (error: unknown) => {
      over();
      reject(error);
    };
    const begin = (call: Call) => {
      if (isJson && call.parsed.form !== "json") refuseStream();
      seat = answering.ask(call);
      seat.answer.then((answer) => resolve(answered({ answer, life, over })), fail);
      life.onAbort(fail);
    };
    try {
      const called = callOf(request, peer, reader);
      if (called instanceof Promise) called.then(begin).catch(fail);
      else begin(called);
    } catch (error) {
      fail(error);
    }
  });
}

/** The request of a call, its body parsed. */
export function callOf(
  { operation, body, admission, idempotencyKey, conversation, betas }: TextRequest,
  { principal, requestId, signal }: PeerCall,
  reader: JsonReader,
): Awaitable<Call> {
  const asked =
    operations[operation] ??
    refuse(ErrorReason.INVALID_ARGUMENT, { metadata: { field: "operation" } });
  const isKeyed = idempotencyKey !== undefined;
  const { accountId } = principal;
  const known = admission && { ...noAdmission, ...admission };
  const parsing = parseRequest(asked, body, { reader, accountId, isKeyed, signal });
  return after(parsing, (parsed) => {
    return { parsed, principal, admission: known, idempotencyKey, conversation, betas, requestId };
  });
}

/** The fields that an admission may leave out. */
const noAdmission = create(AdmissionSchema);

const operations: Readonly<Record<Operation, TextOperation | undefined>> = {
  [Operation.UNSPECIFIED]: undefined,
  [Operation.RESPONSES]: "responses",
  [Operation.COMPACT]: "compact",
  [Operation.CHAT_COMPLETIONS]: "chat",
  [Operation.MESSAGES]: "messages",
  [Operation.EMBEDDINGS]: "embeddings",
  [Operation.TRANSCRIPTIONS]: "transcriptions",
};

function refuseStream(): never {
  refuse(ErrorReason.INVALID_VALUE, { param: "stream", message: "This call gives no stream." });
}

/** A large answer goes in pieces, at the pace of its caller. */
function jsonOf(
  answer: Answer & { kind: "json" },
  { life, over }: Asked,
  takesPieces: boolean,
): TextAnswer {
  const { body, room } = answer;
  if (!takesPieces || body.length <= answerPieceBytes) {
    over();
    return answer;
  }
  const pieces = staged(inPieces(body), {
    until(stop) {
      life.onAbort(stop);
      room?.goes((reason) => {
        stop(reason);
        over();
      });
    },
    pass(piece: Uint8Array) {
      room?.moved();
      return piece;
    },
    ...endingWith(over),
  });
  const { replayed, ignored, cost, maxOutputTokens } = answer;
  const notes = { replayed, ignored, cost, maxOutputTokens };
  return { kind: "pieces", bytes: body.length, pieces, ...notes };
}

/** Calls `over` at each end of a stream. */
function endingWith(over: () => void) {
  return {
    end: over,
    leave: over,
    fail(error: unknown) {
      over();
      return error;
    },
  };
}

/** The pieces of a body. Each is given when the one before it was taken. */
async function* inPieces(body: Uint8Array): AsyncIterable<Uint8Array> {
  for (let at = 0; at < body.length; at += answerPieceBytes) {
    yield body.subarray(at, at + answerPieceBytes);
  }
}
