import type { FastifyReply, FastifyRequest } from "fastify";
import { ErrorReason, isRefusal, RefusalError } from "#kit/errors.ts";
import { isJsonObject } from "#kit/json.ts";
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
  return body.includes('"stream"') || body.includes("\\u");
}

/** Does the body ask for a stream? Parses it: only for the rare request that was silent for 15 s. */
export function asksForStream(body: Buffer): boolean {
  try {
    const value: unknown = JSON.parse(body.toString("utf8"));
    return isJsonObject(value) && value.stream === true;
  } catch {
    return false;
  }
}

/** Is the answer to come as events? A compaction never does, whatever its body says. */
function mayStream({ operation, body }: TextMessage): boolean {
  return operation !== Operation.COMPACT && asksForStream(body);
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
  using silence = watchSilence(edge.clock, () => {
    if (!events && mayStream(message)) events = openEventStream(reply);
    events?.comment();
  });
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
