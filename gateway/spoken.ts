// Sends a speech to its caller while it is spoken, as bytes or events, and the rest from the store. Media speaks.

import { Readable } from "node:stream";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type CallOptions, Code, ConnectError } from "@connectrpc/connect";
import type { FastifyReply, FastifyRequest } from "fastify";
import { isRefusal } from "#kit/base/errors.ts";
import {
  type BegunSpeech,
  BegunSpeechSchema,
  BodyForm,
  FileArea,
  type GenerateSpeechRequestSchema,
  type GenerateSpeechResponse,
  type StreamSpeechResponse,
} from "#proto/genmesh/media/v1/media_service_pb.ts";
import type { Edge } from "./context.ts";
import { toErrorBody } from "./errors.ts";
import { openBlob } from "./files.ts";
import { deadlinesMs } from "./limits.ts";
import {
  callOptions,
  idempotencyKeyOf,
  noteBroken,
  noteCost,
  notePaid,
  noteReplayed,
  sendStream,
  submissionOf,
} from "./request.ts";
import { dataText, openEventStream } from "./sse.ts";

type Part = StreamSpeechResponse["part"];
/** A speech whose first audio is there, or that is stored. */
interface Spoken {
  begun: BegunSpeech;
  /** All bytes. Undefined: the speech is still being spoken. */
  sizeBytes: number | undefined;
  /** The audio from its first byte on, at its reader's pace. */
  sound: AsyncIterable<Uint8Array>;
  /** The stored speech. Undefined before the end of the audio. */
  stored(): GenerateSpeechResponse | undefined;
}

/** Answers with the audio of a speech while it is spoken, as bytes or as events. A failure before the first audio has its own status. */
export async function sendSpoken(
  edge: Edge,
  request: FastifyRequest,
  reply: FastifyReply,
  body: Uint8Array,
): Promise<FastifyReply> {
  const spoken = await openSpoken(edge, request, reply, body);
  const { begun, sizeBytes, sound } = spoken;
  notePaid(edge, request);
  noteReplayed(reply, begun.replayed);
  noteCost(reply, begun.costUsdMicros);
  if (begun.asEvents) return sendEvents(edge, reply, spoken);
  reply.headers({
    "content-type": begun.mimeType,
    "cache-control": "private, no-cache",
    "x-content-type-options": "nosniff",
    ...(sizeBytes === undefined ? {} : { "content-length": sizeBytes }),
  });
  return sendStream(edge, reply, Readable.from(sound, { objectMode: false }));
}

/** OpenAI's events of a speech. An answer that breaks off ends with an error, and without `speech.audio.done`. */
async function sendEvents(edge: Edge, reply: FastifyReply, spoken: Spoken): Promise<FastifyReply> {
  const events = openEventStream(reply);
  using silence = edge.silences.watch(() => events.alive());
  try {
    for await (const bytes of spoken.sound) {
      silence.broken();
      const audio = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("base64");
      await events.write(dataText({ type: "speech.audio.delta", audio }));
    }
    await events.write(dataText({ type: "speech.audio.done", usage: usageOf(spoken.stored()) }));
  } catch (error) {
    const refusal = noteBroken(edge, error, reply);
    await events.write(dataText({ error: toErrorBody(refusal) }));
  }
  events.end();
  return reply;
}

/** Speech is paid for by its characters. Clients of OpenAI expect numbers of tokens, and there are none. */
function usageOf(speech: GenerateSpeechResponse | undefined) {
  return {
    ...{ input_tokens: 0, output_tokens: 0, total_tokens: 0 },
    characters: Number(speech?.characters ?? 0),
    costUsdMicros: Number(speech?.costUsdMicros ?? 0),
  };
}

/** Asks for a speech, and waits for its first audio. */
async function openSpoken(
  edge: Edge,
  request: FastifyRequest,
  reply: FastifyReply,
  body: Uint8Array,
): Promise<Spoken> {
  const options = callOptions(request, reply, deadlinesMs.speech, edge.cutOff);
  const parts = partsOf(edge, { body, form: BodyForm.OPENAI, ...submissionOf(request) }, options);
  const next = async () => (await parts.next()).value;
  let speech: GenerateSpeechResponse | undefined;
  const restOf = async (stored: GenerateSpeechResponse, from: number) => {
    speech = stored;
    return openRest(edge, request, reply, stored, from);
  };
  async function* live(first: Part) {
    let sent = 0;
    for (let part: Part | undefined = first; part; part = await next()) {
      if (part.case === "sound") {
        sent += part.value.length;
        yield part.value;
      }
      if (part.case === "stored") yield* await restOf(part.value, sent);
    }
    if (!speech) throw new Error("a speech without its end");
  }
  try {
    const [begun, first] = [await next(), await next()];
    if (begun?.case !== "begun" || !first) throw new Error("a speech without its beginning");
    const facts = { begun: begun.value, stored: () => speech };
    if (first.case !== "stored") return { ...facts, sizeBytes: undefined, sound: live(first) };
    // It is paid for. If it is not read now, a client may repeat only a request with a key by itself.
    if (idempotencyKeyOf(request) === undefined) reply.header("x-should-retry", "false");
    const sound = await restOf(first.value, 0);
    reply.removeHeader("x-should-retry");
    return { ...facts, sizeBytes: Number(first.value.audio?.sizeBytes), sound };
  } catch (error) {
    throw options.signal.aborted ? options.signal.reason : error;
  }
}

/** The bytes of a stored speech from a place on. There are none where its reader has had them all while it was spoken. */
async function openRest(
  edge: Edge,
  request: FastifyRequest,
  reply: FastifyReply,
  { speechId, audio }: GenerateSpeechResponse,
  from: number,
): Promise<AsyncIterable<Uint8Array>> {
  if (!audio) throw new Error("speech without audio");
  const sizeBytes = Number(audio.sizeBytes);
  if (from === sizeBytes) return Readable.from([]);
  const name = { area: FileArea.SPEECH, parentId: speechId, fileId: audio.fileId };
  const quick = callOptions(request, reply, deadlinesMs.quick);
  const { blobKey } = await edge.peers.media.locateFile(name, quick);
  await edge.downloads.take(request, reply);
  return await openBlob(
    edge,
    blobKey,
    from === 0 ? undefined : { start: from, end: sizeBytes - 1 },
  );
}

type Asked = MessageInitShape<typeof GenerateSpeechRequestSchema>;

/** The parts of a speech. A media service of an earlier release has no stream, and answers once the speech is stored. */
async function* partsOf(
  { peers: { media } }: Edge,
  speech: Asked,
  options: CallOptions,
): AsyncGenerator<Part, undefined> {
  try {
    for await (const { part } of media.streamSpeech({ speech }, options)) yield part;
  } catch (error) {
    const cause = isRefusal(error) ? error.cause : undefined;
    if (!(cause instanceof ConnectError) || cause.code !== Code.Unimplemented) throw error;
    const value = await media.generateSpeech(speech, options);
    const { costUsdMicros, replayed, audio } = value;
    const mimeType = audio?.mimeType ?? "";
    const begun = create(BegunSpeechSchema, { mimeType, costUsdMicros, replayed });
    yield { case: "begun", value: begun };
    yield { case: "stored", value };
  }
}
