import { Readable } from "node:stream";
import type { FastifyReply, FastifyRequest } from "fastify";
import { consume } from "#kit/stream/push-stream.ts";
import { Operation } from "#proto/genmesh/text/v1/text_service_pb.ts";
import { failureEvents } from "./broken-stream.ts";
import type { Edge } from "./context.ts";
import { costHeader } from "./errors.ts";
import { bodyLimitsBytes, deadlinesMs } from "./limits.ts";
import {
  callerOf,
  callOptions,
  ignoredParametersHeader,
  noteBroken,
  noteCost,
  noteIgnored,
  notePaid,
  noteReplayed,
  type Submission,
  sendStream,
  submissionOf,
} from "./request.ts";
import { errors, integer, number, object, type Schema, string } from "./schemas.ts";
import { type EventStream, openEventStream } from "./sse.ts";

/** The error answers of a text operation. */
export const textErrors = errors(400, 402, 413, 415, 422, 502, 504);

/** Fields of an answer's `usage` with its charge. */
export const costFields: Record<string, Schema> = {
  cost: number("What was charged, in US dollars."),
  costUsdMicros: integer("The same in USD micros, exactly."),
};

/** Headers of an answer beside its body. */
export const ignoredHeader: Schema = {
  [ignoredParametersHeader]: {
    description:
      "Properties of the request that were accepted and had no effect, separated by commas. Absent: none. Not told again " +
      "where an answer is repeated for an idempotency key.",
    schema: { type: "string" },
  },
  [costHeader]: {
    description: "What a JSON answer was charged, in USD micros: as its `usage.costUsdMicros`.",
    schema: { type: "integer" },
  },
};

/** The answer of a text operation, as JSON or as events. */
export const textAnswerSchema = (description: string, name: string): Schema => ({
  description,
  headers: ignoredHeader,
  content: {
    "application/json": { schema: object({ object: string("", { enum: [name] }) }) },
    "text/event-stream": { schema: string("Events, ended by `data: [DONE]`.") },
  },
});

/** Answers a text operation, as JSON or as events, as its body asks. */
export async function answerText(
  edge: Edge,
  request: FastifyRequest,
  reply: FastifyReply,
  operation: Operation,
): Promise<unknown> {
  const body = await edge.bodies.json(request, reply, bodyLimitsBytes.text);
  const message = { operation, body, ...submissionOf(request) };
  const options = callOptions(request, reply, deadlinesMs.text, edge.cutOff);
  if (mayBeLong(operation, body)) return answerAsItComes(edge, request, reply, message, options);
  const answer = await edge.peers.text.generate(message, options);
  notePaid(edge, request);
  return sendJson(edge, request, reply, answer);
}

/**
 * Can the answer be a stream, or a JSON that is far longer than the text of its tokens? Only the service parses a body. This look at
 * its bytes saves most requests the more expensive streaming call. A JSON object has the name `stream` only where those letters are in
 * quotes, or where a letter is escaped. A letter's only escape is `\u`. Without log probabilities, tools and the fields of `include`,
 * an answer is text, which is paid for by its length. Or it repeats its body, whose room in memory is held until the answer.
 */
function mayBeLong(operation: Operation, body: Buffer): boolean {
  if (operation === Operation.EMBEDDINGS) return true;
  // In a large one the look would cost more than the call.
  if (body.length > lookedAtBytes) return true;
  return longNames.some((name) => body.includes(name));
}

/** `logprobs` and `top_logprobs` ask for log probabilities. */
const longNames = ['"stream"', "\\u", 'logprobs"', '"include"', '"tools"'];

/** The bytes of a body are searched up to this size, which takes some tenths of a millisecond. */
const lookedAtBytes = 256 * 1024;

/** Operations that have events. Others have none, even where their body asks for them. */
const streamed: ReadonlySet<Operation> = new Set([Operation.RESPONSES, Operation.CHAT_COMPLETIONS]);

/** Should the answer come as events? Reads the body, only for the rare request that was silent for 15 s. */
async function mayStream(
  edge: Edge,
  request: FastifyRequest,
  { operation, body }: TextMessage,
  signal: AbortSignal,
): Promise<boolean> {
  if (!streamed.has(operation)) return false;
  const { accountId } = callerOf(request).principal;
  try {
    const { value } = await edge.reader.read(body, { only: ["stream"] }, { accountId, signal });
    return value.stream === true;
  } catch {
    // The service reports the body's fault.
    return false;
  }
}

interface TextMessage extends Submission {
  operation: Operation;
  body: Buffer;
}

/** Answers as the text service does: events as they come, or JSON. A large JSON is sent piece by piece, as its caller takes it. */
export async function answerAsItComes(
  edge: Edge,
  request: FastifyRequest,
  reply: FastifyReply,
  asked: TextMessage,
  options: ReturnType<typeof callOptions>,
): Promise<unknown> {
  let events: EventStream | undefined;
  let first: Uint8Array | undefined;
  let last: Uint8Array | undefined;
  let whole: WholeAnswer | undefined;
  let pieces: Pieces | undefined;
  // Headers are sent with the first event, so that a failure before has its own status, or after 15 s.
  let isOver = false;
  const speak = async () => {
    const isStream = events || (!pieces && (await mayStream(edge, request, asked, options.signal)));
    // Meanwhile the answer may have come, or the caller have left.
    if (isOver || whole || pieces || !isStream || reply.raw.destroyed) return;
    events ??= openEventStream(reply);
    events.comment();
  };
  using silence = edge.silences.watch(() => void speak());
  try {
    const message = { ...asked, takesPieces: true };
    await consume(edge.peers.text.streamGenerate(message, options), (message) => {
      const { part } = message;
      silence.broken();
      if (!first && !whole && !pieces) notePaid(edge, request);
      if (part.case === "complete" && !events) {
        if (pieces) return pieces.write(part.value) ?? true;
        if (message.wholeBytes === undefined) {
          whole = { ...message, body: part.value };
          return true;
        }
        const begin = () => {
          pieces = openPieces(edge, reply, message);
          return pieces.write(part.value);
        };
        if (!message.replayed) return begin() ?? true;
        return edge.repeated.take(request, reply, Number(message.wholeBytes)).then(begin);
      }
      if (part.case !== "events") throw new Error("the text service sent no events");
      if (!events) {
        tell(reply, message);
        events = openEventStream(reply);
      }
      first ??= part.value;
      last = part.value;
      return events.write(part.value) ?? true;
    });
    if (!events && !whole && !pieces) throw new Error("the text service sent no answer");
  } catch (error) {
    isOver = true;
    if (pieces) {
      noteBroken(edge, error, reply);
      pieces.fail();
      return reply;
    }
    if (events) {
      const refusal = noteBroken(edge, error, reply);
      await events.write(
        failureEvents(
          { ...asked, first, last, newId: () => edge.ids.make("resp") },
          refusal,
          edge.clock.now(),
        ),
      );
    } else if (!whole) {
      throw options.signal.aborted ? options.signal.reason : error;
    }
  }
  isOver = true;
  if (whole) return sendJson(edge, request, reply, whole);
  pieces?.end();
  events?.end();
  return reply;
}

/** The facts about an answer in its headers. */
interface AnswerNotes {
  replayed: boolean;
  /** Empty from a text service of an older release. */
  ignoredParameters: readonly string[];
  /** Absent from an older text service, and from streams. */
  costUsdMicros?: bigint | undefined;
}

/** An answer in one piece. */
interface WholeAnswer extends AnswerNotes {
  body: Uint8Array;
}

/**
 * Sets the headers of a complete answer, which is to be sent then. A repeated answer costs nothing, however often. So it waits until
 * its account may have that many bytes under way, which are in memory until its caller has read them.
 */
export async function tellOfWhole(
  edge: Edge,
  request: FastifyRequest,
  reply: FastifyReply,
  answer: WholeAnswer,
): Promise<void> {
  if (answer.replayed) await edge.repeated.take(request, reply, answer.body.length);
  tell(reply, answer);
}

/** A large answer that is being sent to its caller. */
interface Pieces {
  /** Await the result where the connection is full at present. */
  write(piece: Uint8Array): Promise<void> | undefined;
  end(): void;
  /** The rest will not come. The connection closes, and the stated length shows that the answer is not complete. */
  fail(): void;
}

/** Sets the headers of an answer that comes in pieces, and takes it over. */
function openPieces(
  edge: Edge,
  reply: FastifyReply,
  answer: AnswerNotes & { wholeBytes?: bigint | undefined },
): Pieces {
  tell(reply, answer);
  let taken: (() => void) | undefined;
  const wake = () => {
    taken?.();
    taken = undefined;
  };
  const body = new Readable({
    read: wake,
    destroy(error, done) {
      wake();
      done(error);
    },
  });
  const length = String(answer.wholeBytes ?? 0n);
  reply.header("content-type", jsonType).header("content-length", length);
  sendStream(edge, reply, body);
  return {
    write(piece) {
      if (body.destroyed || body.push(piece)) return undefined;
      return new Promise((resolve) => {
        taken = resolve;
      });
    },
    end: () => void body.push(null),
    fail: () => void reply.raw.destroy(),
  };
}

const jsonType = "application/json; charset=utf-8";

function tell(reply: FastifyReply, answer: AnswerNotes): void {
  noteReplayed(reply, answer.replayed);
  noteIgnored(reply, answer.ignoredParameters);
  if (answer.costUsdMicros !== undefined) noteCost(reply, answer.costUsdMicros);
}

/** The answer's bytes as they came. */
async function sendJson(
  edge: Edge,
  request: FastifyRequest,
  reply: FastifyReply,
  answer: WholeAnswer,
): Promise<FastifyReply> {
  await tellOfWhole(edge, request, reply, answer);
  const { body } = answer;
  return reply
    .header("content-type", jsonType)
    .send(Buffer.from(body.buffer, body.byteOffset, body.byteLength));
}
