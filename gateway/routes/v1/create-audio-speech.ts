// The operation that speaks a text and answers with its bytes, in OpenAI's form. `spoken.ts` sends them. `create-speech.ts`
// answers with JSON.

import type { FastifyInstance } from "fastify";
import { maxSpeechCharacters, speechSpeed } from "#common/words/request-bounds.ts";
import { soundFormats, soundTypes } from "#kit/sound/formats.ts";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import type { Edge } from "../../context.ts";
import { errors, speechReasons } from "../../error-answers.ts";
import { bodyLimitsBytes } from "../../limits.ts";
import {
  contentOf,
  idempotencyHeader,
  number,
  object,
  type RouteSchema,
  string,
} from "../../schemas.ts";
import { sendSpoken } from "../../spoken.ts";

const createAudioSpeechSchema: RouteSchema = {
  operationId: "createAudioSpeech",
  summary: "Generate speech, as bytes",
  description:
    "OpenAI's call: what `/speech/generations` does, at the same price, answered with the sound while it is spoken. The answer ends " +
    "once the sound is stored and charged; one that breaks off before costs nothing, unless it came out longer than is kept. " +
    "`x-genmesh-cost-usd-micros` is the price. A speech goes on without its caller once it has begun, is charged, and there for a " +
    "repeat of its `Idempotency-Key`.",
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
      stream_format: string(
        "`sse`: events `speech.audio.delta`, whose `audio` is the next sound in base64, then `speech.audio.done`.",
        { enum: ["audio", "sse"], default: "audio" },
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
      content: {
        ...contentOf(Object.values(soundTypes)),
        "text/event-stream": { schema: string("Events.") },
      },
    },
    ...errors(...speechReasons),
  },
};

/** `POST /audio/speech`: speech from a text. The answer is its bytes, while it is spoken. */
export function createAudioSpeech(app: FastifyInstance, edge: Edge): void {
  app.route({
    method: "POST",
    url: "/audio/speech",
    config: { scope: Scope.SPEECH, idempotent: true },
    schema: createAudioSpeechSchema,
    handler: async (request, reply) => {
      const body = await edge.bodies.json(request, reply, bodyLimitsBytes.other);
      return sendSpoken(edge, request, reply, body);
    },
  });
}
