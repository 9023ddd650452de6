// Asks a text service in another process, in the form of `text-port.ts`. It chooses between a call with one answer and a stream.

import { wireOptions } from "#kit/rpc/peer-call.ts";
import { begun } from "#kit/stream/begun.ts";
import { consume } from "#kit/stream/push-stream.ts";
import { staged } from "#kit/stream/stages.ts";
import { Operation, type StreamGenerateResponse } from "#proto/genmesh/text/v1/text_service_pb.ts";
import type { Peers } from "./peers.ts";
import type { TextAnswer, TextNotes, TextPort, TextRequest } from "./text-port.ts";

/** The text service behind a wire. Equal requests of an idempotency key are sent to one replica, where they join. */
export function createWireText(
  client: Pick<Peers["text"], "generate" | "streamGenerate">,
): TextPort {
  const json: TextPort["json"] = async (request, call) => {
    const answer = await client.generate(
      messageOf(request),
      wireOptions(call, request.idempotencyKey),
    );
    return { kind: "json", body: answer.body, ...notesOf(answer) };
  };
  return {
    json,
    answer(request, call) {
      if (!mayBeLong(request)) return json(request, call);
      const message = { ...messageOf(request), takesPieces: request.takesPieces ?? false };
      return answerOf(client.streamGenerate(message, wireOptions(call, request.idempotencyKey)));
    },
  };
}

/** The answer in the messages of a call. */
async function answerOf(messages: AsyncIterable<StreamGenerateResponse>): Promise<TextAnswer> {
  let head: (TextNotes & { form: string | undefined; bytes: bigint | undefined }) | undefined;
  const bytes = staged(messages, {
    pass(message: StreamGenerateResponse): Uint8Array {
      const { part, wholeBytes } = message;
      head ??= { form: part.case, bytes: wholeBytes, ...notesOf(message) };
      if (!part.case || part.case !== head.form) throw noAnswer();
      return part.value;
    },
  });
  const stream = await begun(bytes);
  if (!stream || !head) throw noAnswer();
  const { form, bytes: length, ...notes } = head;
  if (form === "events") return { kind: "events", events: stream, ...notes };
  if (length !== undefined) {
    return { kind: "pieces", bytes: Number(length), pieces: stream, ...notes };
  }
  // The call ends by itself, so that its connection serves the next one.
  return new Promise((resolve, reject) => {
    const take = (body: Uint8Array) => {
      resolve({ kind: "json", body, ...notes });
      return true;
    };
    consume(stream, take).catch(reject);
  });
}

function noAnswer(): Error {
  return new Error("the text service sent no answer");
}

interface MessageNotes {
  replayed: boolean;
  /** Empty from a text service of an older release. */
  ignoredParameters: string[];
  /** Absent from an older text service, and from streams. */
  costUsdMicros?: bigint | undefined;
  /** Absent from an older text service. */
  maxOutputTokens?: bigint | undefined;
}

function notesOf(message: MessageNotes): TextNotes & { cost: bigint | undefined } {
  const { replayed, ignoredParameters: ignored, costUsdMicros: cost, maxOutputTokens } = message;
  const fallen = maxOutputTokens === undefined ? {} : { maxOutputTokens: Number(maxOutputTokens) };
  return { replayed, ignored, cost, ...fallen };
}

function messageOf(request: TextRequest) {
  const { operation, body, idempotencyKey, admission, conversation, betas } = request;
  return {
    ...{ operation, body, conversation: conversation ?? "" },
    ...(betas === undefined ? {} : { betas: [...betas] }),
    ...(admission === undefined ? {} : { admission }),
    ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
  };
}

/**
 * Can the answer be a stream, or a JSON that is far longer than the text of its tokens? Only the service parses a body. This look at
 * its bytes saves most requests the more expensive streaming call. A JSON object has the name `stream` only where those letters are in
 * quotes, or where a letter is escaped. A letter's only escape is `\u`. Without log probabilities, tools and the fields of `include`,
 * an answer is text, which is paid for by its length. Or it repeats its body, whose room in memory is held until the answer.
 */
function mayBeLong({ operation, body }: TextRequest): boolean {
  if (operation === Operation.EMBEDDINGS || operation === Operation.TRANSCRIPTIONS) return true;
  // In a large one the look would cost more than the call.
  if (body.length > lookedAtBytes) return true;
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  return longNames.some((name) => bytes.includes(name));
}

/** `logprobs` and `top_logprobs` ask for log probabilities. */
const longNames = ['"stream"', "\\u", 'logprobs"', '"include"', '"tools"'];

/** The bytes of a body are searched up to this size, which takes some tenths of a millisecond. */
const lookedAtBytes = 256 * 1024;
