// Turns an answer into the messages of TextService's stream, for callers in another process. `port.ts` serves callers of its own
// process.

import type { TextAnswer } from "#common/agreements/text-port.ts";
import { single } from "#kit/stream/push-stream.ts";
import { staged } from "#kit/stream/stages.ts";
import {
  type StreamGenerateResponse,
  StreamGenerateResponseSchema,
} from "#proto/genmesh/text/v1/text_service_pb.ts";

/** An answer as the messages of its call. The first message has the facts about it. */
export function messagesOf(answer: TextAnswer): AsyncIterable<StreamGenerateResponse> {
  const { replayed, ignored, maxOutputTokens } = answer;
  const cost = answer.kind === "events" ? undefined : answer.cost;
  let notes: Notes = {
    replayed,
    ignoredParameters: [...ignored],
    ...(cost === undefined ? {} : { costUsdMicros: cost }),
    ...(maxOutputTokens === undefined ? {} : { maxOutputTokens: BigInt(maxOutputTokens) }),
    ...(answer.kind === "pieces" ? { wholeBytes: BigInt(answer.bytes) } : {}),
  };
  const message = (part: StreamGenerateResponse["part"]): StreamGenerateResponse => {
    // A complete message, so that no later code has to build one.
    const whole = { $typeName: StreamGenerateResponseSchema.typeName, part, ...notes };
    notes = noNotes;
    return whole;
  };
  const complete = (value: Uint8Array) => message({ case: "complete", value });
  switch (answer.kind) {
    case "json":
      return single(complete(answer.body));
    case "pieces":
      return staged(answer.pieces, { pass: complete });
    case "events":
      return staged(answer.events, { pass: (value) => message({ case: "events", value }) });
  }
}

type Notes = Pick<
  StreamGenerateResponse,
  "replayed" | "ignoredParameters" | "costUsdMicros" | "maxOutputTokens" | "wholeBytes"
>;

/** The notes of every message except the first. */
const noNotes: Notes = { replayed: false, ignoredParameters: [] };
