import { arrayOf, boolean, integer, number, object, ref, type Schema, string } from "./common.ts";

const nullable = (schema: Schema): Schema => ({ ...schema, type: [schema.type, "null"] });

const errorFields = {
  message: string("For people."),
  type: string("The family of the error.", {
    enum: [
      "invalid_request_error",
      "authentication_error",
      "insufficient_quota",
      "permission_error",
      "not_found_error",
      "idempotency_error",
      "rate_limit_error",
      "server_error",
    ],
  }),
  param: nullable(string("Path of the offending field, e.g. `input[0].content[1].image_url`.")),
  code: nullable(string("Machine code: see the table in the introduction.")),
};

const videoOption = object(
  {
    durationSeconds: integer("Seconds."),
    resolution: string("E.g. `720p`."),
    modes: arrayOf({ type: "string", enum: ["t2v", "i2v"] }, "Modes at this price."),
    credits: integer("Fixed price of a job."),
  },
  ["durationSeconds", "resolution", "modes", "credits"],
);

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

const dateTime = (description: string) => nullable(string(description, { format: "date-time" }));

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
      creditsReserved: integer("Held when the job was accepted."),
      creditsCharged: integer("When terminal: the held price, or 0 where it failed."),
      createdAt: string("When it was accepted.", { format: "date-time" }),
      startedAt: dateTime("When work on it began."),
      completedAt: dateTime("When it became terminal."),
      expiresAt: string("When it and its outputs go.", { format: "date-time" }),
      retryOf: string("The failed job that this one repeats."),
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

const model: Schema = {
  $id: "Model",
  ...object(
    {
      id: string("Model id."),
      object: string("", { enum: ["model"] }),
      created: integer("Unix seconds."),
      owned_by: string("Owner."),
      kind: string("What it makes.", { enum: ["chat", "image", "video", "speech", "music"] }),
      name: string("For people."),
      default: boolean("The default of its kind; published, never assumed."),
      maxInputTokens: integer("Chat."),
      maxOutputTokens: integer("Chat."),
      safetyMarginTokens: integer("Chat."),
      reasoningEfforts: arrayOf({ type: "string" }, "Chat: accepted efforts."),
      t2vEnabled: boolean("Video: text-to-video."),
      i2vEnabled: boolean("Video: image-to-video."),
      videoOptions: arrayOf(videoOption, "Video: durations, resolutions, modes and prices."),
      availableOptions: arrayOf(videoOption, "Video: the same rows."),
      availableAspectRatios: arrayOf({ type: "string" }, "Image and video."),
      creditPrice: integer("Image and music: credits each."),
    },
    ["id", "object", "created", "owned_by", "kind", "name"],
    { description: "A model, and what a form for it needs.", additionalProperties: true },
  ),
};

/** Every shared component. */
export const components: readonly Schema[] = [
  errorSchema,
  output,
  job,
  file,
  inputReference,
  model,
];
