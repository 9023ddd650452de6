import type { FastifyReply, FastifyRequest } from "fastify";
import { ErrorReason, isRefusal, RefusalError } from "#kit/errors.ts";
import { Operation } from "#proto/genmesh/text/v1/text_service_pb.ts";
import type { Edge } from "./context.ts";
import { bodyLimitsBytes, deadlinesMs } from "./limits.ts";
import { callerOf, callOptions, idempotencyKeyOf, notePaid, stopping } from "./request.ts";
import { type EventStream, openEventStream, watchSilence } from "./sse.ts";
import { failureEvents } from "./text-failure.ts";

/** Answers a text operation, as JSON or as events, whichever its body asks for. */
export async function answerText(
  edge: Edge,
  request: FastifyRequest,
  reply: FastifyReply,
  operation: Operation,
): Promise<unknown> {
  const body = await edge.bodies.json(request, reply, bodyLimitsBytes.text);
  const idempotencyKey = idempotencyKeyOf(request);
  const message = {
    operation,
    body,
    admission: callerOf(request).admission,
    ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
  };
  const options = callOptions(request, reply, deadlinesMs.text, edge.cutOff);
  if (mayAskForStream(body)) return stream(edge, request, reply, message, options);
  const answer = await edge.peers.text.generate(message, options);
  notePaid(edge, request);
  return sendJson(reply, answer.body, answer.replayed);
}

/**
 * A body is parsed once, by the service. This look at its bytes saves most requests the dearer streaming call: a
 * JSON object can only have the name `stream` where those letters stand in quotes, or where a letter is escaped, and
 * a letter's only escape is `\u`.
 */
export function mayAskForStream(body: Buffer): boolean {
  // In a large one the look would cost more than the call.
  if (body.length > lookedAtBytes) return true;
  return body.includes('"stream"') || body.includes("\\u");
}

/** A body's letters are looked through up to this size: some tenths of a millisecond. */
const lookedAtBytes = 256 * 1024;

/**
 * Is the answer to come as events? Reads the body: only for the rare request that was silent for 15 s. A compaction never
 * does, whatever its body says.
 */
async function mayStream(
  edge: Edge,
  request: FastifyRequest,
  { operation, body }: TextMessage,
  signal: AbortSignal,
): Promise<boolean> {
  if (operation === Operation.COMPACT) return false;
  const { accountId } = callerOf(request).principal;
  try {
    const { value } = await edge.reader.read(body, { only: ["stream"] }, { accountId, signal });
    return value.stream === true;
  } catch {
    // What is wrong with it, the service says.
    return false;
  }
}

interface TextMessage {
  operation: Operation;
  body: Buffer;
}

async function stream(
  edge: Edge,
  request: FastifyRequest,
  reply: FastifyReply,
  message: TextMessage,
  options: ReturnType<typeof callOptions>,
): Promise<unknown> {
  let events: EventStream | undefined;
  let first: Uint8Array | undefined;
  let last: Uint8Array | undefined;
  let whole: { body: Uint8Array; replayed: boolean } | undefined;
  // Headers go out with the first event, so that a failure until then has its own status; or after 15 s.
  let isOver = false;
  const speak = async () => {
    const isStream = events || (await mayStream(edge, request, message, options.signal));
    // Meanwhile the answer may have come, or the caller have left.
    if (isOver || whole || !isStream || reply.raw.destroyed) return;
    events ??= openEventStream(reply);
    events.comment();
  };
  using silence = watchSilence(edge.clock, () => void speak());
  try {
    for await (const { part, replayed } of edge.peers.text.streamGenerate(message, options)) {
      silence.broken();
      if (!first && !whole) notePaid(edge, request);
      if (part.case === "complete" && !events) {
        // Read on to the end: leaving the loop would leave the call open, and its deadline with it.
        whole = { body: part.value, replayed };
        continue;
      }
      if (part.case !== "events") throw new Error("the text service sent no events");
      if (!events) {
        if (replayed) reply.header("idempotency-replayed", "true");
        events = openEventStream(reply);
      }
      first ??= part.value;
      last = part.value;
      const room = events.write(part.value);
      if (room) await room;
    }
    if (!events && !whole) throw new Error("the text service sent no answer");
  } catch (error) {
    isOver = true;
    if (events) {
      const refusal = asRefusal(edge, error, reply);
      await events.write(
        failureEvents(
          { ...message, first, last, newId: () => edge.ids.make("resp") },
          refusal,
          edge.clock.now(),
        ),
      );
    } else if (!whole) {
      throw options.signal.aborted ? options.signal.reason : error;
    }
  }
  isOver = true;
  if (whole) return sendJson(reply, whole.body, whole.replayed);
  events?.end();
  return reply;
}

function asRefusal(edge: Edge, error: unknown, reply: FastifyReply): RefusalError {
  if (edge.cutOff?.aborted) return stopping();
  if (isRefusal(error)) return error;
  if (!reply.raw.destroyed) {
    edge.events.faulted(error, reply.request.id, reply.request.routeOptions.url ?? "");
  }
  return new RefusalError(ErrorReason.INTERNAL_ERROR);
}

/** The answer's bytes as they came. */
function sendJson(reply: FastifyReply, body: Uint8Array, replayed: boolean): FastifyReply {
  if (replayed) reply.header("idempotency-replayed", "true");
  return reply
    .header("content-type", "application/json; charset=utf-8")
    .send(Buffer.from(body.buffer, body.byteOffset, body.byteLength));
}
