import {
  downloadAnswers,
  downloadHeaders,
  downloadQuery,
  errors,
  idempotencyHeader,
  integer,
  json,
  number,
  object,
  type RouteSchema,
  string,
} from "./common.ts";

export const createSpeechSchema: RouteSchema = {
  operationId: "createSpeech",
  summary: "Generate speech",
  description: "Synchronous: the MP3 is stored when this is answered.",
  tags: ["Speech"],
  headers: idempotencyHeader,
  body: object(
    {
      model: string("An active speech model."),
      input: string("What is spoken.", { minLength: 1, maxLength: 4096 }),
      voice: string("One of the model's voices."),
      language: string("One of the model's languages."),
      speed: number("Pace.", { minimum: 0.25, maximum: 4, default: 1 }),
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
    ...errors(400, 402, 413, 415, 422, 502, 504),
  },
};

export const downloadSpeechSchema: RouteSchema = {
  operationId: "downloadSpeech",
  summary: "Download speech",
  description: "Needs the key that made it.",
  tags: ["Speech"],
  params: object({ speechId: string("The speech."), fileId: string("The file.") }, [
    "speechId",
    "fileId",
  ]),
  querystring: downloadQuery,
  headers: downloadHeaders,
  response: downloadAnswers("audio/mpeg"),
};
