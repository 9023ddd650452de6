import type { FastifyInstance } from "fastify";
import { maxSpeechCharacters, speechSpeed } from "#common/words/request-bounds.ts";
import { soundFormats, soundTypes } from "#kit/sound/formats.ts";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import { BodyForm, FileArea } from "#proto/genmesh/media/v1/media_service_pb.ts";
import type { Edge } from "../../context.ts";
import { costHeader } from "../../errors.ts";
import { openBlob } from "../../files.ts";
import { bodyLimitsBytes, deadlinesMs } from "../../limits.ts";
import {
  callOptions,
  idempotencyKeyOf,
  notePaid,
  noteReplayed,
  submissionOf,
} from "../../request.ts";
import {
  contentOf,
  errors,
  idempotencyHeader,
  number,
  object,
  type RouteSchema,
  string,
} from "../../schemas.ts";

const createAudioSpeechSchema: RouteSchema = {
  operationId: "createAudioSpeech",
  summary: "Generate speech, as bytes",
  description:
    "OpenAI's call: what `/speech/generations` does, at the same price, answered with the sound. It is stored and charged when its " +
    "first byte comes; `x-genmesh-cost-usd-micros` says what it cost.",
  tags: ["Speech"],
  headers: idempotencyHeader,
  body: object(
    {
      model: string("An active speech model."),
      input: string("What is spoken.", { minLength: 1, maxLength: maxSpeechCharacters }),
      voice: string("One of the model's voices."),
      response_format: string(
        "One of the model's formats; `pcm` is 24 kHz, 16 bits, one channel.",
        {
          enum: soundFormats,
          default: "mp3",
        },
      ),
      speed: number("Pace.", {
        minimum: speechSpeed.min,
        maximum: speechSpeed.max,
        default: speechSpeed.default,
      }),
    },
    ["model", "input", "voice"],
    {
      additionalProperties: true,
      example: { model: "speech-1", input: "Hello there.", voice: "alloy" },
    },
  ),
  response: {
    200: {
      description: "The sound.",
      content: contentOf(Object.values(soundTypes)),
    },
    ...errors(400, 402, 413, 415, 422, 502, 504),
  },
};

/** `POST /audio/speech`: speech from a text. The answer is its bytes. */
export function createAudioSpeech(app: FastifyInstance, edge: Edge): void {
  app.route({
    method: "POST",
    url: "/audio/speech",
    config: { scope: Scope.SPEECH, idempotent: true },
    schema: createAudioSpeechSchema,
    handler: async (request, reply) => {
      const body = await edge.bodies.json(request, reply, bodyLimitsBytes.other);
      const { media } = edge.peers;
      const speech = await media.generateSpeech(
        { body, form: BodyForm.OPENAI, ...submissionOf(request) },
        callOptions(request, reply, deadlinesMs.speech),
      );
      if (!speech.audio) throw new Error("speech without audio");
      notePaid(edge, request);
      noteReplayed(reply, speech.replayed);
      // It is paid for. If it is not read now, a client may repeat only a request with a key by itself.
      if (idempotencyKeyOf(request) === undefined) reply.header("x-should-retry", "false");
      const { fileId, mimeType } = speech.audio;
      const file = await media.locateFile(
        { area: FileArea.SPEECH, parentId: speech.speechId, fileId },
        callOptions(request, reply, deadlinesMs.quick),
      );
      await edge.downloads.take(request, reply);
      const bytes = await openBlob(edge, file.blobKey, undefined);
      return reply
        .removeHeader("x-should-retry")
        .headers({
          // By the answer of the service that spoke. An older media service that is asked for the file's place calls every format MP3.
          "content-type": mimeType,
          "content-length": Number(file.sizeBytes),
          "cache-control": "private, no-cache",
          "x-content-type-options": "nosniff",
          [costHeader]: speech.costUsdMicros.toString(),
        })
        .send(bytes);
    },
  });
}
