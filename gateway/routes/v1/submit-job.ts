// The operation that submits an image, video or music job. Media checks and accepts it. An image job's caller may wait for the
// images, by `image-answer.ts`.

import type { FastifyInstance } from "fastify";
import { toJobDocument } from "#common/documents/job-document.ts";
import {
  maxImages,
  maxPromptCharacters,
  maxSeed,
  maxWebhookUrlLength,
  metadataLimits,
  musicModes,
  videoSizes,
} from "#common/words/request-bounds.ts";
import { noteOnSpan } from "#kit/telemetry/spans.ts";
import { BodyForm, ImageAnswer } from "#proto/genmesh/media/v1/media_service_pb.ts";
import type { Edge } from "../../context.ts";
import {
  errors,
  imageReasons,
  imageWaitReasons,
  jobReasons,
  videoReasons,
} from "../../error-answers.ts";
import {
  answerWithImages,
  imagesAnswer,
  preferHeaders,
  preferredWaitMs,
} from "../../image-answer.ts";
import { type FamilyName, familyTags, forEachFamily, jobFamilies } from "../../jobs.ts";
import { deadlinesMs, imageWaitMs } from "../../limits.ts";
import { callOptions, notePaid, noteReplayed, submissionOf } from "../../request.ts";
import {
  arrayOf,
  idempotencyHeader,
  integer,
  json,
  object,
  ref,
  type Schema,
  string,
} from "../../schemas.ts";

const prompt = string(`1 to ${maxPromptCharacters.toLocaleString("en")} characters.`, {
  minLength: 1,
  maxLength: maxPromptCharacters,
});

const webhookUrl = string(
  "Told of the job's end, with a signature (Standard Webhooks): an absolute http(s) URL that leads to a public address.",
  { format: "uri", maxLength: maxWebhookUrlLength },
);

const references = arrayOf({ type: "string" }, "Further references: files of the account.");

/** Fields that a job of every kind may have. */
const extras = {
  negativePrompt: string("What is not to be made, where the model takes that.", {
    minLength: 1,
    maxLength: maxPromptCharacters,
  }),
  seed: integer(
    "Where the model takes one: the same request with the same seed may be made again. Kept in the job.",
    { minimum: 0, maximum: maxSeed },
  ),
  metadata: object({}, [], {
    additionalProperties: { type: "string", maxLength: metadataLimits.value },
    maxProperties: metadataLimits.pairs,
    description: `The caller's notes, returned with the job: up to ${metadataLimits.pairs} pairs, names of up to ${metadataLimits.name} characters, ${metadataLimits.jsonBytes} bytes as JSON.`,
  }),
};

const requests: Record<FamilyName, Schema> = {
  image: object(
    {
      model: string("An active image model."),
      prompt,
      n: integer("Number of images.", { minimum: 1, maximum: maxImages, default: 1 }),
      size: string("E.g. `1024x1024`, `1792x1024`, `auto`."),
      quality: string(
        "One of the model's `imageOptions`, or `auto`, which costs what the dearest does.",
      ),
      response_format: string("Wait for the images, and have them so.", {
        enum: ["b64_json", "url"],
      }),
      aspectRatio: string("One of the model's ratios."),
      resolution: string("One of the model's resolutions."),
      input_reference: ref("InputReference"),
      referenceFileIds: references,
      mask: ref("InputReference"),
      webhookUrl,
      ...extras,
    },
    ["model", "prompt"],
    {
      additionalProperties: true,
      example: { model: "image-1", prompt: "A lighthouse at dawn", size: "1024x1024" },
    },
  ),
  video: object(
    {
      model: string("An active video model; `modelId` is also accepted."),
      prompt,
      seconds: integer("A duration of the model; `durationSeconds` is also accepted."),
      size: string("Sets resolution and aspect ratio.", {
        enum: Object.keys(videoSizes),
      }),
      aspectRatio: string("One of the model's ratios."),
      resolution: string("One of the model's resolutions."),
      input_reference: ref("InputReference"),
      referenceFileIds: references,
      webhookUrl,
      ...extras,
    },
    ["model", "prompt"],
    {
      additionalProperties: true,
      example: {
        model: "svc-video-1-5",
        prompt: "Waves roll over a quiet beach",
        seconds: 6,
        resolution: "480p",
        aspectRatio: "16:9",
      },
    },
  ),
  music: object(
    {
      model: string("An active music model."),
      mode: string("What is made.", { enum: musicModes }),
      title: string("The title."),
      description: string("Mood, style, instruments."),
      lyrics: string("Needed in mode `lyrics`, refused in mode `instrumental`."),
      webhookUrl,
      ...extras,
    },
    ["model", "mode", "title"],
    {
      additionalProperties: true,
      example: { model: "music-1", mode: "instrumental", title: "Harbour lights" },
    },
  ),
};

const waiting =
  " With `response_format`, or the header `Prefer: wait`, the answer waits for the job and is OpenAI's: its parameters that no " +
  "model here knows (`quality`, `style`, `background`, …) are then 400 `unsupported_parameter`, a failed job is an error with " +
  "its status, and after 285 seconds the answer is 504 `job_not_finished`; the job goes on.";

const reasonsOf = {
  image: [...jobReasons, ...imageReasons, ...imageWaitReasons],
  video: [...jobReasons, ...videoReasons],
  music: jobReasons,
};

const submitJobSchemas = forEachFamily(({ name }, { title, one }) => ({
  operationId: `submit${title}Job`,
  summary: `Submit ${one} job`,
  description:
    "Validated and its credits reserved when accepted; poll `statusUrl` until terminal." +
    (name === "image" ? waiting : ""),
  tags: familyTags[name],
  headers: name === "image" ? preferHeaders : idempotencyHeader,
  body: requests[name],
  response: {
    ...(name === "image"
      ? {
          200: json("The images, for a caller that waits for them: OpenAI's answer.", imagesAnswer),
        }
      : {}),
    202: json("The job as it stands at this moment.", ref("Job")),
    ...errors(...reasonsOf[name]),
  },
}));

/**
 * `POST /images|videos|music/generations`: 202 with the accepted job in its state at that moment, or the images, where an image job's
 * caller waits for them.
 */
export function submitJob(app: FastifyInstance, edge: Edge): void {
  for (const family of jobFamilies) {
    app.route({
      method: "POST",
      url: `/${family.path}/generations`,
      config: { scope: family.scope, idempotent: true },
      schema: submitJobSchemas[family.name],
      handler: async (request, reply) => {
        const begunAtMs = edge.clock.steady();
        const baseUrl = edge.urls.base(request);
        const waitMs = preferredWaitMs(request.headers.prefer);
        const body = await edge.bodies.json(request, reply, family.bodyLimitBytes);
        const { job, replayed, answer } = await edge.peers.media.submitJob(
          {
            kind: family.kind,
            body,
            // For the URLs in a webhook. Programs with a key read it.
            publicBaseUrl: edge.urls.api(request),
            form: waitMs === undefined ? BodyForm.UNSPECIFIED : BodyForm.OPENAI,
            ...submissionOf(request),
          },
          callOptions(request, reply, deadlinesMs.submit),
        );
        if (!job) throw new Error("media accepted no job");
        notePaid(edge, request);
        noteOnSpan({ "genmesh.job.id": job.jobId });
        noteReplayed(reply, replayed);
        if (answer !== ImageAnswer.UNSPECIFIED) {
          const untilMs = begunAtMs + (waitMs ?? imageWaitMs);
          return answerWithImages(edge, request, reply, { job, answer, untilMs, baseUrl });
        }
        return reply.code(202).send(toJobDocument(job, baseUrl));
      },
    });
  }
}
