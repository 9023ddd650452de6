// Sends the answers of the text service to callers, as events or JSON. All operations of text over HTTP end here.
// `websocket/create.ts` does it on a socket.

import { Readable } from "node:stream";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { TextAnswer, TextRequest, WholeText } from "#common/agreements/text-port.ts";
import type { Awaitable } from "#kit/base/awaitable.ts";
import type { StopSignal } from "#kit/base/stop.ts";
import { consume } from "#kit/stream/push-stream.ts";
import { Operation } from "#proto/genmesh/text/v1/text_service_pb.ts";
import { failureEvents } from "./broken-stream.ts";
import type { Edge } from "./context.ts";
import { conversationReasons, errors, paidTextReasons } from "./error-answers.ts";
import { costHeader } from "./errors.ts";
import { bodyLimitsBytes, deadlinesMs } from "./limits.ts";
import {
  betasOf,
  callerOf,
  conversationOf,
  ignoredParametersHeader,
  noteBroken,
  noteCost,
  noteIgnored,
  notePaid,
  noteReplayed,
  peerCall,
  submissionOf,
} from "./request.ts";
import { ref, type Schema } from "./schemas.ts";
import { type EventStream, type LifeSign, openEventStream } from "./sse.ts";

/** The error answers of embeddings and transcriptions. */
export const textErrors = errors(...paidTextReasons);
/** The error answers of a conversation. */
export const conversationErrors = errors(...paidTextReasons, ...conversationReasons);

/** Header with the bound of the output, where it fell to what money pays for. */
export const fallenBoundHeader = "x-genmesh-max-tokens";

/** Headers of an answer beside its body. */
export const ignoredHeader: Schema = {
  [fallenBoundHeader]: {
    description:
      "The bound of the output in tokens, where it fell to what the balance and the key's limit pay for. Absent: it did not.",
    type: "integer",
  },
  [ignoredParametersHeader]: {
    description:
      "Properties of the request that were accepted and had no effect, separated by commas. Absent: none. Not told again " +
      "where an answer is repeated for an idempotency key.",
    type: "string",
  },
  [costHeader]: {
    description: "What a JSON answer was charged, in USD micros: as its `usage.costUsdMicros`.",
    type: "integer",
  },
};

/** The answer of a text operation, as JSON or as events, by the names of their components. */
export const textAnswerSchema = (description: string, whole: string, event: string): Schema => ({
  description,
  headers: ignoredHeader,
  content: {
    "application/json": { schema: ref(whole) },
    "text/event-stream": { schema: ref(event) },
  },
});

/** Answers a text operation, as JSON or as events, as its body asks. */
export function answerText(
  edge: Edge,
  request: FastifyRequest,
  reply: FastifyReply,
  operation: Operation,
): Promise<unknown> {
  const body = edge.bodies.json(request, reply, bodyLimitsBytes.text);
  return answerAsItComes(edge, request, reply, operation, body);
}

/** Operations that have events. Others have none, even where their body asks for them. */
const streamed: ReadonlySet<Operation> = new Set([
  Operation.RESPONSES,
  Operation.CHAT_COMPLETIONS,
  Operation.MESSAGES,
]);

/** Should the answer come as events? Reads the body, only for the rare request that was silent for 15 s. */
async function mayStream(
  edge: Edge,
  request: FastifyRequest,
  { operation, body }: TextRequest,
  signal: StopSignal,
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

/** Answers as the text service does: events as they come, or JSON. A large JSON is sent piece by piece, as its caller takes it. */
export async function answerAsItComes(
  edge: Edge,
  request: FastifyRequest,
  reply: FastifyReply,
  operation: Operation,
  coming: Awaitable<Uint8Array>,
): Promise<unknown> {
  const asked: TextRequest = { operation, body: await coming, ...submissionOf(request) };
  const call = peerCall(request, reply, deadlinesMs.text, edge.cutOff);
  // Clients of Messages give a stream up in which no event comes for minutes.
  const isMessage = operation === Operation.MESSAGES;
  const lifeSign: LifeSign = isMessage ? "ping" : "comment";
  let events: EventStream | undefined;
  let first: Uint8Array | undefined;
  let last: Uint8Array | undefined;
  // Headers are sent with the first event, so that a failure before has its own status, or after 15 s.
  let isOver = false;
  const speak = async () => {
    const isStream = !isOver && (events || (await mayStream(edge, request, asked, call.signal)));
    // Meanwhile the answer may have come, or the caller have left.
    if (isOver || !isStream || reply.raw.destroyed) return;
    events ??= openEventStream(reply, lifeSign);
    events.alive();
  };
  using silence = edge.silences.watch(() => void speak());
  try {
    asked.conversation = conversationOf(request.headers);
    asked.takesPieces = true;
    if (isMessage) asked.betas = betasOf(request.headers);
    const answer = await edge.text.answer(asked, call);
    if (answer.kind !== "events") {
      isOver = true;
      if (events) throw unexpected(answer);
      const sending = sendWhole(edge, request, reply, answer);
      if (sending) await sending;
      return reply;
    }
    await consume(answer.events, (bytes) => {
      silence.broken();
      if (!first) notePaid(edge, request);
      if (!events) {
        tell(reply, answer);
        events = openEventStream(reply, lifeSign);
      }
      first ??= bytes;
      last = bytes;
      return events.write(bytes) ?? true;
    });
    isOver = true;
    if (!events) throw new Error("the text service sent no answer");
  } catch (error) {
    isOver = true;
    if (!events) throw call.signal.aborted ? call.signal.reason : error;
    const refusal = noteBroken(edge, error, reply);
    const told = { ...asked, first, last, newId: () => edge.ids.make("resp"), id: request.id };
    await events.write(failureEvents(told, refusal, edge.clock.now()));
  }
  events?.end();
  return reply;
}

/** An answer without events. */
type WholeAnswer = Exclude<TextAnswer, { kind: "events" }>;

/** The error of such an answer behind a comment that has begun a stream. Its pieces are not read. */
function unexpected(answer: WholeAnswer): Error {
  if (answer.kind === "pieces") void answer.pieces[Symbol.asyncIterator]().return?.();
  return new Error("the text service sent no events");
}

/** Sends a JSON, in one piece or in several. A promise where the answer is not sent at once. */
function sendWhole(
  edge: Edge,
  request: FastifyRequest,
  reply: FastifyReply,
  answer: WholeAnswer,
): Promise<unknown> | undefined {
  notePaid(edge, request);
  if (answer.kind !== "json") return sendPieces(edge, request, reply, answer);
  const told = tellOfWhole(edge, request, reply, answer);
  if (told) return told.then(() => sendJson(reply, answer));
  sendJson(reply, answer);
  return undefined;
}

/**
 * Sets the headers of a complete answer, which is to be sent then. A repeated answer costs nothing, however often. So it waits until
 * its account may have that many bytes under way, which are in memory until its caller has read them.
 */
export function tellOfWhole(
  edge: Edge,
  request: FastifyRequest,
  reply: FastifyReply,
  answer: WholeText,
): Promise<void> | undefined {
  if (answer.replayed) {
    const taking = edge.repeated.take(request, reply, answer.body.length);
    return taking.then(() => tell(reply, answer));
  }
  tell(reply, answer);
  return undefined;
}

/** A large answer. It is sent piece by piece, as its caller takes it. */
type PiecedText = TextAnswer & { kind: "pieces" };

async function sendPieces(
  edge: Edge,
  request: FastifyRequest,
  reply: FastifyReply,
  answer: PiecedText,
): Promise<FastifyReply> {
  let sent: Pieces | undefined;
  const begin = (piece: Uint8Array) => {
    sent = openPieces(reply, answer);
    return sent.write(piece);
  };
  try {
    await consume(answer.pieces, (piece) => {
      if (sent) return sent.write(piece) ?? true;
      if (!answer.replayed) return begin(piece) ?? true;
      return edge.repeated.take(request, reply, answer.bytes).then(() => begin(piece));
    });
  } catch (error) {
    if (!sent) throw error;
    noteBroken(edge, error, reply);
    sent.fail();
    return reply;
  }
  sent?.end();
  return reply;
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
function openPieces(reply: FastifyReply, answer: PiecedText): Pieces {
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
  reply.header("content-type", jsonType).header("content-length", String(answer.bytes)).send(body);
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

function tell(reply: FastifyReply, answer: TextAnswer): void {
  if (answer.replayed) noteReplayed(reply, true);
  if (answer.ignored.length > 0) noteIgnored(reply, answer.ignored);
  if (answer.maxOutputTokens !== undefined) {
    reply.header(fallenBoundHeader, String(answer.maxOutputTokens));
  }
  if (answer.kind !== "events" && answer.cost !== undefined) noteCost(reply, answer.cost);
}

/** The answer's bytes as they came. */
function sendJson(reply: FastifyReply, { body }: WholeText): void {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  reply.header("content-type", jsonType).send(bytes);
}
