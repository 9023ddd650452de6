// The operation that speaks a text and answers with JSON once it is stored. Media does it. `create-audio-speech.ts` answers with
// the bytes.

import type { FastifyInstance } from "fastify";
import { unixSeconds } from "#common/documents/answer-values.ts";
import { maxSpeechCharacters, speechSpeed } from "#common/words/request-bounds.ts";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import type { GenerateSpeechResponse } from "#proto/genmesh/media/v1/media_service_pb.ts";
import type { Edge } from "../../context.ts";
import { errors, speechReasons } from "../../error-answers.ts";
import { bodyLimitsBytes, deadlinesMs } from "../../limits.ts";
import { callOptions, noteCost, notePaid, noteReplayed, submissionOf } from "../../request.ts";
import {
  idempotencyHeader,
  integer,
  json,
  number,
  object,
  type RouteSchema,
  string,
} from "../../schemas.ts";

const createSpeechSchema: RouteSchema = {
  operationId: "createSpeech",
  summary: "Generate speech",
  description: "Synchronous: the MP3 is stored when this is answered.",
  tags: ["Speech"],
  headers: idempotencyHeader,
  body: object(
    {
      model: string("An active speech model."),
      input: string("What is spoken.", { minLength: 1, maxLength: maxSpeechCharacters }),
      voice: string("One of the model's voices."),
      language: string("One of the model's languages."),
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
    200: json(
      "Where the speech is.",
      object(
        {
          id: string("The speech."),
          object: string("", { enum: ["speech"] }),
          created_at: integer("Unix seconds."),
          model: string("Model id."),
          audio: object(
            {
              id: string("The file."),
              url: string("Fetched with the same key.", { format: "uri" }),
              mimeType: string("", { enum: ["audio/mpeg"] }),
              sizeBytes: integer("Bytes."),
              durationSeconds: number("Seconds."),
            },
            ["url"],
          ),
          usage: object({
            characters: integer("Characters of the input."),
            costUsdMicros: integer("What was charged."),
          }),
        },
        ["id", "object", "audio"],
      ),
    ),
    ...errors(...speechReasons),
  },
};

/** `POST /speech/generations`: speech from a text, stored when answered. */
export function createSpeech(app: FastifyInstance, edge: Edge): void {
  app.route({
    method: "POST",
    url: "/speech/generations",
    config: { scope: Scope.SPEECH, idempotent: true },
    schema: createSpeechSchema,
    handler: async (request, reply) => {
      const baseUrl = edge.urls.base(request);
      const body = await edge.bodies.json(request, reply, bodyLimitsBytes.other);
      const speech = await edge.peers.media.generateSpeech(
        { body, ...submissionOf(request) },
        callOptions(request, reply, deadlinesMs.speech),
      );
      notePaid(edge, request);
      noteReplayed(reply, speech.replayed);
      noteCost(reply, speech.costUsdMicros);
      return reply.send(toSpeechDocument(speech, baseUrl));
    },
  });
}

/** The public document of speech. `baseUrl` ends in `/v1`. */
function toSpeechDocument(speech: GenerateSpeechResponse, baseUrl: string) {
  const { audio } = speech;
  if (!audio) throw new Error("speech without audio");
  return {
    id: speech.speechId,
    object: "speech",
    created_at: unixSeconds(speech.createTime),
    model: speech.model,
    audio: {
      id: audio.fileId,
      url: `${baseUrl}/speech/generations/${speech.speechId}/files/${audio.fileId}`,
      mimeType: audio.mimeType,
      sizeBytes: Number(audio.sizeBytes),
      durationSeconds: audio.durationSeconds,
    },
    usage: {
      characters: Number(speech.characters),
      costUsdMicros: Number(speech.costUsdMicros),
    },
  };
}
