// Collects the schemas that operations share in the OpenAPI document.

import { chatComponents } from "./chat-schemas.ts";
import { chargedFields, messagesError, moneyFields } from "./error-answers.ts";
import { managedKeySchema } from "./keys.ts";
import { messageComponents } from "./message-schemas.ts";
import { modelComponents, videoOption } from "./model-schemas.ts";
import { responseRequestComponents } from "./response-request-schemas.ts";
import { responseComponents } from "./response-schemas.ts";
import {
  arrayOf,
  boolean,
  dateTime,
  errorFields,
  integer,
  nullable,
  number,
  object,
  ref,
  type Schema,
  string,
} from "./schemas.ts";
import { requestRecordSchema } from "./usage-query.ts";

const creditFields = {
  requiredCredits: integer("With `insufficient_credits`: the price of the job."),
  spendableCredits: integer("With `insufficient_credits`: what the account has."),
};

const refusedOption: Schema = {
  anyOf: [
    videoOption,
    object({ resolution: string("Of an image model.") }, ["resolution"]),
    object({ maxReferences: integer("References that an image model takes.") }, ["maxReferences"]),
  ],
};

const errorSchema: Schema = {
  $id: "Error",
  ...object(
    {
      error: object(
        {
          ...errorFields,
          availableOptions: arrayOf(
            refusedOption,
            "With a refused resolution, duration, mode or number of references: what is on offer. For a video the rows of " +
              "the mode; for an image its resolutions, or the number of references.",
          ),
          availableAspectRatios: arrayOf({ type: "string" }, "With a refused aspect ratio."),
          ...moneyFields,
          ...creditFields,
          jobId: string("With an error of a call that waits for its images: their job."),
          statusUrl: string("With it: where to poll that job.", { format: "uri" }),
          ...chargedFields,
        },
        ["message", "type", "param", "code"],
      ),
    },
    ["error"],
    { description: "Every error, whatever its status." },
  ),
};

const output: Schema = {
  $id: "OutputFile",
  ...object(
    {
      id: string("The file."),
      url: string("Fetched with the key that made the job; `?download=1` gives attachment.", {
        format: "uri",
      }),
      mimeType: string("Verified media type."),
      sizeBytes: integer("Bytes."),
      sha256: string("Lower-case hexadecimal; also the ETag."),
      width: integer("Pixels, of images and videos."),
      height: integer("Pixels, of images and videos."),
      durationSeconds: number("Seconds, of videos and music."),
      expiresAt: string("When it goes; absent: it is kept.", { format: "date-time" }),
    },
    ["id", "url", "mimeType", "sizeBytes", "sha256"],
    { description: "A private file." },
  ),
};

const job: Schema = {
  $id: "Job",
  ...object(
    {
      id: string("The job."),
      jobId: string("The same as `id`."),
      object: string("Kind of job.", { enum: ["image.job", "video.job", "music.job"] }),
      status: string("Never goes backwards.", {
        enum: ["queued", "running", "completed", "failed"],
      }),
      statusUrl: string("Where to poll, every 3 to 5 seconds.", { format: "uri" }),
      terminal: boolean("True exactly for `completed` and `failed`."),
      model: string("Model id."),
      modelId: string("The same as `model`."),
      modelName: string("For people."),
      mode: string("`t2v` or `i2v`; `instrumental` or `lyrics`."),
      progress: integer("0 to 100.", { minimum: 0, maximum: 100 }),
      n: integer("Images asked for."),
      size: string("Of an image, where one was sent."),
      durationSeconds: integer("Of a video."),
      resolution: string("Of a video or image."),
      aspectRatio: string("Of a video or image."),
      seed: integer("The seed that was sent, with which it may be made again."),
      metadata: object({}, [], {
        additionalProperties: { type: "string" },
        description: "What was sent as such.",
      }),
      creditsReserved: integer("Held when the job was accepted."),
      creditsCharged: integer(
        "When terminal: the held price, or 0 where it failed; the price of a cancelled job whose upstream charges for it.",
      ),
      createdAt: string("When it was accepted.", { format: "date-time" }),
      startedAt: dateTime("When work on it began."),
      queuePosition: integer(
        "While it is queued: jobs of its kind that wait for the same places and would be served before it, plus one. These are jobs " +
          "of its upstream, or of its model where no place of the model is free. Accounts take turns, so a job of an account " +
          "that has few may stand before older ones. Absent beyond 1,000, in its first second (some seconds where thousands wait), " +
          "and while its upstream takes no jobs.",
        { minimum: 1, maximum: 1_000 },
      ),
      estimatedStartAt: string(
        "With it: when work on it may begin, by how long the newest completed jobs took at these places; absent while there is none.",
        { format: "date-time" },
      ),
      completedAt: dateTime("When it became terminal."),
      expiresAt: string("When it and its outputs go.", { format: "date-time" }),
      retryOf: string("The failed job that this one repeats."),
      keyId: string("For a key with `jobs:read-all`: the key that made it."),
      images: arrayOf(ref("OutputFile"), "Outputs of an image job."),
      videos: arrayOf(ref("OutputFile"), "Outputs of a video job."),
      clips: arrayOf(ref("OutputFile"), "Outputs of a music job."),
      error: {
        anyOf: [object(errorFields, ["message", "type"]), { type: "null" }],
        description: "Of a failed job.",
      },
    },
    ["id", "object", "status", "statusUrl", "terminal", "creditsReserved", "createdAt"],
    { description: "An image, video or music job." },
  ),
};

const webhook: Schema = {
  $id: "Webhook",
  ...object(
    {
      id: string("The webhook; `webhook-id` of each attempt."),
      object: string("", { enum: ["webhook"] }),
      keyId: nullable(
        string(
          "For a key with `webhooks` or `jobs:read-all`: the key that made the job, or whose alert it is; null: the account's alert, " +
            "or it is not known.",
        ),
      ),
      type: string("What it tells.", {
        enum: ["job.completed", "job.failed", "job.cancelled", "balance.low", "key.limit_reached"],
      }),
      jobId: nullable(string("The job; null: it tells of an account or a key.")),
      url: string("Where it is sent.", { format: "uri" }),
      status: string(
        "`failed`: no attempt of 24 hours was answered with 2xx; `stopped`: one was answered with 410.",
        { enum: ["pending", "delivered", "failed", "stopped"] },
      ),
      attempts: integer("Attempts begun."),
      lastStatus: nullable(integer("HTTP status of the last attempt's answer.")),
      lastError: nullable(
        string(
          "Why the last attempt failed. `unsafe`: the URL leads to an address that is not public; `unreachable`, `timeout`: there " +
            "was no answer; `status`, `redirect`: there was one that was no 2xx.",
        ),
      ),
      createdAt: string("When it became known.", { format: "date-time" }),
      lastAttemptAt: dateTime("When the last attempt began."),
      nextAttemptAt: dateTime("When the next attempt is due, or this one counts as lost."),
    },
    ["id", "object", "type", "jobId", "url", "status", "attempts", "createdAt"],
    { description: "An event and its way to its receiver." },
  ),
};

const webhookSecret: Schema = {
  $id: "WebhookSecret",
  ...object(
    {
      object: string("", { enum: ["webhook.secret"] }),
      secret: string("`whsec_` and the base64 of 32 bytes."),
      createdAt: string("When it was made.", { format: "date-time" }),
      previousSecret: nullable(string("The one before, while webhooks are signed with it too.")),
      previousExpiresAt: dateTime("Until when."),
    },
    ["object", "secret", "createdAt", "previousSecret", "previousExpiresAt"],
    { description: "What the account's webhooks are signed with." },
  ),
};

const file: Schema = {
  $id: "File",
  ...object(
    {
      id: string("The file; taken as `file_id` by references."),
      object: string("", { enum: ["file"] }),
      bytes: integer("Bytes."),
      created_at: integer("Unix seconds."),
      filename: string("The caller's name of it."),
      purpose: string("The caller's purpose."),
      status: string("Files are verified before they are answered.", { enum: ["processed"] }),
      expires_at: { type: "null", description: "Uploads stay until they are deleted." },
      mimeType: string("Verified media type."),
      sha256: string("Lower-case hexadecimal."),
      width: integer("Pixels."),
      height: integer("Pixels."),
    },
    ["id", "object", "bytes", "created_at", "filename", "purpose"],
    { description: "An image in the account's file storage." },
  ),
};

const inputReference: Schema = {
  $id: "InputReference",
  description: "Exactly one of the two. JPEG, PNG or WebP of up to 20 MiB and 50 megapixels.",
  oneOf: [
    object(
      { file_id: string("A file of the account, or an output of the API key.") },
      ["file_id"],
      {
        additionalProperties: false,
      },
    ),
    object(
      { image_url: string("A public http(s) URL, or a base64 image data URI.") },
      ["image_url"],
      { additionalProperties: false },
    ),
  ],
};

/** Every shared component. */
export const components: readonly Schema[] = [
  errorSchema,
  messagesError,
  output,
  job,
  webhook,
  webhookSecret,
  file,
  inputReference,
  ...modelComponents,
  ...responseRequestComponents,
  ...responseComponents,
  ...chatComponents,
  ...messageComponents,
  managedKeySchema,
  requestRecordSchema,
];
