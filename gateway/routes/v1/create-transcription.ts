// The operation that transcribes audio. The form becomes the JSON that the text service takes.

import type { FastifyInstance } from "fastify";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import { joinInTurns } from "#kit/base/in-turns.ts";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import { Operation } from "#proto/genmesh/text/v1/text_service_pb.ts";
import type { Edge } from "../../context.ts";
import { type Form, inBase64, readForm } from "../../form.ts";
import { bodyLimitsBytes, deadlinesMs } from "../../limits.ts";
import { notePaid, peerCall, submissionOf } from "../../request.ts";
import {
  arrayOf,
  boolean,
  costFields,
  idempotencyHeader,
  number,
  object,
  type RouteSchema,
  string,
} from "../../schemas.ts";
import { answerAsItComes, ignoredHeader, tellOfWhole, textErrors } from "../../text-answer.ts";

const createTranscriptionSchema: RouteSchema = {
  operationId: "createTranscription",
  summary: "Transcribe sound",
  description:
    "OpenAI's call, passed to an upstream and charged by the length of the sound. Anything else than a sound of a known format " +
    "(MP3, WAV, FLAC, M4A and MP4 with AAC, OGG with Opus or Vorbis, WebM with Opus) is 400 at `file`.",
  tags: ["Speech"],
  headers: idempotencyHeader,
  consumes: ["multipart/form-data"],
  body: object(
    {
      file: string("The sound, up to 25 MiB.", { format: "binary" }),
      model: string("An active transcription model."),
      language: string("What is spoken."),
      prompt: string("Words that may help."),
      response_format: string("", { enum: ["json", "text", "verbose_json"], default: "json" }),
      temperature: number("0 to 1.", { minimum: 0, maximum: 1 }),
      include: arrayOf({ type: "string" }, "Passed on."),
      timestamp_granularities: arrayOf({ type: "string" }, "With `verbose_json`."),
    },
    ["file", "model"],
  ),
  response: {
    200: {
      description: "What was said.",
      headers: ignoredHeader,
      content: {
        "application/json": {
          schema: object(
            {
              text: string("What was said."),
              usage: object({
                type: string("", { enum: ["duration"] }),
                seconds: number("Seconds, rounded; what is charged is exact to 60 ms."),
                estimated: boolean("True: measured by us."),
                ...costFields,
              }),
            },
            ["text"],
            { additionalProperties: true },
          ),
        },
        "text/plain": { schema: string("With `response_format: text`.") },
      },
    },
    ...textErrors,
  },
};

/** `POST /audio/transcriptions`: the text of recorded speech, by an upstream. */
export function createTranscription(app: FastifyInstance, edge: Edge): void {
  app.route({
    method: "POST",
    url: "/audio/transcriptions",
    config: { scope: Scope.TEXT, idempotent: true, takesForm: true },
    schema: createTranscriptionSchema,
    handler: async (request, reply) => {
      const form = await readForm(edge.bodies, request, reply, bodyLimitsBytes.soundForm);
      const { fields, isText } = fieldsOf(form);
      const body = await bodyOf(fields, form);
      const operation = Operation.TRANSCRIPTIONS;
      if (!isText) return answerAsItComes(edge, request, reply, operation, body);
      const asked = { operation, body, ...submissionOf(request) };
      // Without the times of words it has some thousandths of the audio's bytes.
      const call = peerCall(request, reply, deadlinesMs.text, edge.cutOff);
      const answer = await edge.text.json(asked, call);
      notePaid(edge, request);
      await tellOfWhole(edge, request, reply, answer);
      const { text } = JSON.parse(Buffer.from(answer.body).toString()) as { text: string };
      return reply.type("text/plain; charset=utf-8").send(`${text}\n`);
    },
  });
}

/** The form's fields as properties of JSON. Plain text is taken from the JSON that the upstream is asked for. */
function fieldsOf({ fields }: Form): { fields: Record<string, unknown>; isText: boolean } {
  // A field may have any name, even that of an object's own function.
  const found = new Map<string, string | number | boolean | string[]>();
  for (const [sent, value] of fields) {
    const isList = sent.endsWith("[]");
    const name = isList ? sent.slice(0, -2) : sent;
    const known = found.get(name);
    if (isList && Array.isArray(known)) known.push(value);
    else if (name === "file" || known !== undefined) {
      refuse(ErrorReason.INVALID_VALUE, { param: name });
    } else found.set(name, isList ? [value] : valueOfField(name, value));
  }
  const isText = found.get("response_format") === "text";
  if (isText) found.set("response_format", "json");
  return { fields: Object.fromEntries(found), isText };
}

function valueOfField(name: string, value: string): string | number | boolean {
  if (name === "temperature" && /^\d{1,3}(\.\d{1,17})?$/.test(value)) return Number(value);
  if (name === "stream" && (value === "true" || value === "false")) return value === "true";
  return value;
}

/** The JSON that the text service takes. */
async function bodyOf(fields: Record<string, unknown>, { files }: Form): Promise<Buffer> {
  const [file, ...others] = files;
  if (!file) return refuse(ErrorReason.MISSING_REQUIRED_PARAMETER, { param: "file" });
  const strange = [file, ...others].find(({ name }, index) => name !== "file" || index > 0);
  if (strange) refuse(ErrorReason.INVALID_VALUE, { param: strange.name });
  const url = "data:application/octet-stream;base64,";
  const whole = JSON.stringify({ ...fields, file: { name: file.fileName, url } });
  return joinInTurns([
    Buffer.from(whole.slice(0, -3)),
    ...(await inBase64(file.bytes)),
    Buffer.from('"}}'),
  ]);
}
