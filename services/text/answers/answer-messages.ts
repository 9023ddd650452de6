import { single } from "#kit/stream/push-stream.ts";
import { staged } from "#kit/stream/stages.ts";
import {
  type StreamGenerateResponse,
  StreamGenerateResponseSchema,
} from "#proto/genmesh/text/v1/text_service_pb.ts";
import { answerPieceBytes } from "../base/limits.ts";
import type { Answer } from "./joins.ts";

/**
 * An answer as the messages of its call. The first message has the facts about it. `takesPieces`: a large whole answer is sent in
 * pieces, at the pace of its caller. `over`: its caller is served, or gone. It may be called twice.
 */
export function messagesOf(
  answer: Answer,
  { takesPieces }: { takesPieces: boolean },
  over: () => void,
): AsyncIterable<StreamGenerateResponse> {
  const { replayed, ignored } = answer;
  const cost = answer.kind === "json" ? answer.cost : undefined;
  const costs = cost === undefined ? {} : { costUsdMicros: cost };
  let notes: Notes = { replayed, ignoredParameters: [...ignored], ...costs };
  const message = (part: StreamGenerateResponse["part"]): StreamGenerateResponse => {
    // A complete message, so that no later code has to build one.
    const whole = { $typeName: StreamGenerateResponseSchema.typeName, part, ...notes };
    notes = noNotes;
    return whole;
  };
  const fail = (error: unknown) => {
    over();
    return error;
  };
  if (answer.kind === "json") {
    const { body, room } = answer;
    if (takesPieces && body.length > answerPieceBytes) {
      notes = { ...notes, wholeBytes: BigInt(body.length) };
      const until = (stop: (reason: unknown) => void) =>
        room?.goes((reason) => {
          stop(reason);
          over();
        });
      const pass = (value: Uint8Array) => {
        room?.moved();
        return message({ case: "complete", value });
      };
      return staged(inPieces(body), { until, pass, end: over, fail, leave: over });
    }
    over();
    return single(message({ case: "complete", value: body }));
  }
  const pass = (value: Uint8Array) => message({ case: "events", value });
  return staged(answer.events, { pass, end: over, fail, leave: over });
}

type Notes = Pick<
  StreamGenerateResponse,
  "replayed" | "ignoredParameters" | "costUsdMicros" | "wholeBytes"
>;

/** The notes of every message except the first. */
const noNotes: Notes = { replayed: false, ignoredParameters: [] };

/** The pieces of a body. Each is given when the one before it was taken. */
async function* inPieces(body: Uint8Array): AsyncIterable<Uint8Array> {
  for (let at = 0; at < body.length; at += answerPieceBytes) {
    yield body.subarray(at, at + answerPieceBytes);
  }
}
