import { type JobFamily, jobFamilies } from "../job-kinds.ts";
import { pageLimits } from "../limits.ts";
import {
  arrayOf,
  boolean,
  downloadAnswers,
  downloadHeaders,
  downloadQuery,
  errors,
  idempotencyHeader,
  integer,
  json,
  object,
  type RouteSchema,
  ref,
  type Schema,
  string,
} from "./common.ts";

type Name = JobFamily["name"];

const prompt = string("1 to 32,000 characters.", { minLength: 1, maxLength: 32_000 });
const references = arrayOf({ type: "string" }, "Further references: files of the account.");

const requests: Record<Name, Schema> = {
  image: object(
    {
      model: string("An active image model."),
      prompt,
      n: integer("Number of images.", { minimum: 1, maximum: 10, default: 1 }),
      size: string("E.g. `1024x1024`, `1792x1024`, `auto`."),
      aspectRatio: string("One of the model's ratios."),
      resolution: string("One of the model's resolutions."),
      input_reference: ref("InputReference"),
      referenceFileIds: references,
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
        enum: ["854x480", "480x854", "480x480", "1280x720", "720x1280", "720x720"],
      }),
      aspectRatio: string("One of the model's ratios."),
      resolution: string("One of the model's resolutions."),
      input_reference: ref("InputReference"),
      referenceFileIds: references,
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
      mode: string("What is made.", { enum: ["instrumental", "lyrics"] }),
      title: string("The title."),
      description: string("Mood, style, instruments."),
      lyrics: string("Needed in mode `lyrics`, refused in mode `instrumental`."),
    },
    ["model", "mode", "title"],
    {
      additionalProperties: true,
      example: { model: "music-1", mode: "instrumental", title: "Harbour lights" },
    },
  ),
};

const tags: Record<Name, string[]> = { image: ["Images"], video: ["Videos"], music: ["Music"] };
const mediaTypes: Record<Name, string> = {
  image: "image/*",
  video: "video/mp4",
  music: "audio/mpeg",
};
const jobId = { jobId: string("The job.") };

/** One schema for each family. */
function forEach(schema: (family: JobFamily, title: string) => RouteSchema) {
  const titled = (name: string) => `${name[0]?.toUpperCase()}${name.slice(1)}`;
  const entries = jobFamilies.map((one) => [one.name, schema(one, titled(one.name))]);
  return Object.fromEntries(entries) as Record<Name, RouteSchema>;
}

export const submitJobSchemas = forEach(({ name }, title) => ({
  operationId: `submit${title}Job`,
  summary: `Submit ${name === "music" ? "a" : name === "image" ? "an" : "a"} ${name} job`,
  description: "Validated and its credits reserved when accepted; poll `statusUrl` until terminal.",
  tags: tags[name],
  headers: idempotencyHeader,
  body: requests[name],
  response: {
    202: json("The job as it stands at this moment.", ref("Job")),
    ...errors(400, 402, 413, 415, 422),
  },
}));

export const getJobSchemas = forEach(({ name }, title) => ({
  operationId: `get${title}Job`,
  summary: `Get ${name === "image" ? "an" : "a"} ${name} job`,
  description: "A job of the key. Another kind's or another key's job is 404.",
  tags: tags[name],
  params: object(jobId, ["jobId"]),
  response: { 200: json("The job.", ref("Job")), ...errors(404) },
}));

export const downloadOutputSchemas = forEach(({ name }, title) => ({
  operationId: `download${title}`,
  summary: `Download ${name === "image" ? "an" : "a"} ${name} file`,
  description: "Needs the key that made the job.",
  tags: tags[name],
  params: object({ ...jobId, fileId: string("The file.") }, ["jobId", "fileId"]),
  querystring: downloadQuery,
  headers: downloadHeaders,
  response: downloadAnswers(mediaTypes[name]),
}));

export const listJobsSchema: RouteSchema = {
  operationId: "listJobs",
  summary: "List jobs",
  description: "The key's jobs of all kinds, newest first.",
  tags: ["Jobs"],
  querystring: object({
    limit: integer("Jobs a page.", {
      minimum: 1,
      maximum: pageLimits.jobs.most,
      default: pageLimits.jobs.default,
    }),
    cursor: string("`nextCursor` of the page before."),
    status: string("Only these.", { enum: ["queued", "running", "completed", "failed"] }),
    kind: string("Only these.", { enum: ["image", "video", "music"] }),
  }),
  response: {
    200: json(
      "A page.",
      object(
        {
          object: string("", { enum: ["list"] }),
          data: arrayOf(ref("Job"), "Jobs."),
          hasMore: boolean("True where more follow."),
          nextCursor: { type: ["string", "null"], description: "For the next page." },
        },
        ["object", "data", "hasMore", "nextCursor"],
      ),
    ),
    ...errors(400),
  },
};

export const watchJobSchema: RouteSchema = {
  operationId: "watchJob",
  summary: "Watch a job",
  description:
    "The job now and at each change, as an event `job.queued`, `job.running`, `job.completed` or `job.failed` whose " +
    "data is the job. A job that no upstream would take yet is `job.queued` again. The stream ends when the job is " +
    "terminal.",
  tags: ["Jobs"],
  params: object(jobId, ["jobId"]),
  response: {
    200: {
      description: "Events.",
      content: { "text/event-stream": { schema: { type: "string" } } },
    },
    ...errors(404),
  },
};
