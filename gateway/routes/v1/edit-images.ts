// The operation of OpenAI's image edits: makes an image job of a form, and waits for its images. `submit-job.ts` takes the same
// job as JSON.

import type { FastifyInstance } from "fastify";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import { joinInTurns } from "#kit/base/in-turns.ts";
import { imageMimeTypes, sniffFormat } from "#kit/images/sniff.ts";
import { noteOnSpan } from "#kit/telemetry/spans.ts";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import { BodyForm, ImageAnswer, JobKind } from "#proto/genmesh/media/v1/media_service_pb.ts";
import type { Edge } from "../../context.ts";
import { errors, imageReasons, imageWaitReasons, jobReasons } from "../../error-answers.ts";
import { type Form, inBase64, readForm } from "../../form.ts";
import {
  answerWithImages,
  imagesAnswer,
  preferHeaders,
  preferredWaitMs,
} from "../../image-answer.ts";
import { bodyLimitsBytes, deadlinesMs, imageWaitMs } from "../../limits.ts";
import { callOptions, notePaid, noteReplayed, submissionOf } from "../../request.ts";
import { integer, json, object, type RouteSchema, string } from "../../schemas.ts";

const editImagesSchema: RouteSchema = {
  operationId: "editImages",
  summary: "Edit images",
  description:
    "OpenAI's call: an image job whose references are the form's images, and whose answer waits for it, as that of " +
    "`/images/generations` does with `response_format`. Its images count toward the account's upload quota.",
  tags: ["Images"],
  headers: preferHeaders,
  consumes: ["multipart/form-data"],
  body: object(
    {
      image: string("A JPEG, PNG or WebP; several as `image[]`.", { format: "binary" }),
      mask: string(
        "A PNG of the first image's size: what is transparent in it may change. For models with `masks`.",
        { format: "binary" },
      ),
      model: string("An active image model that takes references."),
      prompt: string("What is made of them."),
      n: integer("Number of images.", { minimum: 1, default: 1 }),
      size: string("One of the model's sizes, or `auto`."),
      seed: integer("Where the model takes one."),
      response_format: string("Default `b64_json`.", { enum: ["b64_json", "url"] }),
    },
    ["image", "model", "prompt"],
  ),
  response: {
    200: json("The images.", imagesAnswer),
    ...errors(...jobReasons, ...imageReasons, ...imageWaitReasons),
  },
};

/** `POST /images/edits`: an image job from the images of a form, whose caller waits for it. */
export function editImages(app: FastifyInstance, edge: Edge): void {
  app.route({
    method: "POST",
    url: "/images/edits",
    config: { scope: Scope.IMAGES, idempotent: true },
    schema: editImagesSchema,
    handler: async (request, reply) => {
      const begunAtMs = edge.clock.steady();
      const baseUrl = edge.urls.base(request);
      const form = await readForm(edge.bodies, request, reply, bodyLimitsBytes.imageForm);
      const body = await bodyOf(form);
      const { job, replayed, answer } = await edge.peers.media.submitJob(
        {
          kind: JobKind.IMAGE,
          body,
          publicBaseUrl: baseUrl,
          form: BodyForm.OPENAI_EDIT,
          ...submissionOf(request),
        },
        callOptions(request, reply, deadlinesMs.submit),
      );
      if (!job) throw new Error("media accepted no job");
      notePaid(edge, request);
      noteOnSpan({ "genmesh.job.id": job.jobId });
      noteReplayed(reply, replayed);
      const untilMs = begunAtMs + (preferredWaitMs(request.headers.prefer) ?? imageWaitMs);
      const wanted = answer || ImageAnswer.B64_JSON;
      return answerWithImages(edge, request, reply, { job, answer: wanted, untilMs, baseUrl });
    },
  });
}

/** Fields that are numbers in a JSON body. */
const numbers: ReadonlySet<string> = new Set(["n", "seed", "partial_images", "output_compression"]);

/**
 * The form as the JSON body that media takes, its images as data URIs. So an edit is the same job, with the same checks, as one that
 * was sent with references. It is written in several turns of the event loop.
 */
async function bodyOf({ fields, files }: Form): Promise<Uint8Array> {
  // A field may have any name, and media checks each.
  const body = new Map<string, unknown>();
  for (const [name, value] of fields) {
    if (name === "input_reference" || name === "referenceFileIds" || body.has(name)) {
      refuse(ErrorReason.INVALID_VALUE, { param: name });
    }
    body.set(name, fieldValue(name, value));
  }
  const images: Uint8Array[] = [];
  const mask: Uint8Array[] = [];
  for (const { name, bytes } of files) {
    if (name === "mask") {
      if (mask.length > 0 || body.has(name)) refuse(ErrorReason.INVALID_VALUE, { param: name });
      mask.push(Buffer.from(',"mask":'), ...(await imageUrl(name, bytes)));
      continue;
    }
    if (!/^image(?:\[\d{0,3}\])?$/.test(name)) refuse(ErrorReason.INVALID_VALUE, { param: name });
    if (images.length > 0) images.push(Buffer.from(","));
    images.push(...(await imageUrl("image", bytes)));
  }
  const head = `${JSON.stringify({ ...Object.fromEntries(body), input_reference: [] }).slice(0, -2)}`;
  const parts = [Buffer.from(head), ...images, Buffer.from("]"), ...mask, Buffer.from("}")];
  return joinInTurns(parts);
}

/** An image of the form, as a reference with a data URI. */
async function imageUrl(param: string, bytes: Buffer): Promise<Uint8Array[]> {
  const format = sniffFormat(bytes);
  if (!format) refuse(ErrorReason.INVALID_REFERENCE_IMAGE, { param });
  const before = `{"image_url":"data:${imageMimeTypes[format]};base64,`;
  return [Buffer.from(before), ...(await inBase64(bytes)), Buffer.from('"}')];
}

function fieldValue(name: string, value: string): string | number | boolean {
  if (numbers.has(name) && /^\d{1,10}$/.test(value)) return Number(value);
  if (name === "stream" && (value === "true" || value === "false")) return value === "true";
  return value;
}
