import {
  arrayOf,
  boolean,
  dateTime,
  errorFields,
  integer,
  number,
  object,
  ref,
  type Schema,
  string,
} from "./schemas.ts";

/** A file that a job made. */
export const outputSchema: Schema = {
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

/** A job. */
export const jobSchema: Schema = {
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
          "that has few may stand before older ones. Absent beyond 1,000, in the first second or so, and while its upstream " +
          "takes no jobs.",
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
