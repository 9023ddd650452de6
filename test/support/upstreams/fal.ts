import { randomUUID } from "node:crypto";
import type { Behaviour } from "../scripted-behaviours.ts";
import type { MediaOutputs } from "../scripted-media-upstream.ts";
import {
  type Answer,
  bytesMade,
  type Double,
  type Files,
  type Makes,
  makesByName,
  type Reference,
  type Route,
  referencesIn,
  reply,
  sampleOutputs,
  startDouble,
  startFiles,
  typeOfBytes,
} from "./double.ts";
import { falOpenApi } from "./fal-openapi.ts";

/**
 * fal's queue (queue.fal.run), its storage (rest.fal.ai) and its files (fal.media). The first two have one origin.
 *
 * From fal-ai/fal-js, libs/client/src:
 * * queue.ts, utils.ts `parseEndpointId`: paths of submit, status, result and cancel. The sub-path is left out, `workflows/` and `comfy/`
 * are kept.
 * * request.ts: `Authorization: Key`. types/common.ts: the content of a status.
 * * response.ts: `x-fal-request-id`, and a JSON body of every failure. storage.ts: upload initiate and PUT.
 *
 * From fal-ai/fal, projects/fal_client/src/fal_client/client.py: a failure is COMPLETED with `error` and `error_type`, positions count from
 * 0, `logs` is in every status that is not IN_QUEUE, `x-fal-error-type`.
 *
 * From fal's documentation: kinds of failures and their statuses (model-apis/request-errors, model-apis/errors). Cancel is 202, 400 or 404
 * with a status (model-apis/inference/queue). 5xx is not charged (model-apis/pricing).
 *
 * Inferred without a source: the wording of 401. A URL with the sub-path, or of another app, is 404. A job that was canceled in the queue
 * is COMPLETED with client_cancelled afterwards (`cancelledInQueue` makes it 404 instead).
 */
export interface FalDouble extends Double<FalRoute> {
  /** The files. They need no key and get none. */
  files: Files;
  key: string;
  outputs: MediaOutputs;
  /** In the order of arrival, including those whose answer was lost. */
  generations: FalGeneration[];
  /** The treatment of submissions for which {@link plan} has no entry. A test may change it at any time. */
  usual: FalPlan;
  /** The treatments of the next submissions, one each. Later ones get the usual one. */
  plan(...plans: Partial<FalPlan>[]): void;
  /** One step for one generation, or for all. */
  advance(id?: string): void;
  /** All steps for one generation, or for all. */
  finish(id?: string): void;
  /** The account has no balance left. Submissions get 403 until it is unlocked. Looks still work. */
  lock(isLocked?: boolean): void;
  /**
   * The ids that fal charges for: all accepted ones, except for those that a cancel took out of the queue and those that end in 499 or 5xx.
   */
  paid(): string[];
}

export type FalRoute = "submit" | "status" | "result" | "cancel" | "initiate" | "openapi";

/** The treatment of a submission. */
export interface FalPlan {
  /** `queue_position` of each look while it waits. Default 1, 0. */
  positions: number[];
  /** Looks that find it IN_PROGRESS. Default 1. */
  running: number;
  /** Does each look take it a step further, or only {@link FalDouble.advance}? */
  pace: "looks" | "advance";
  /** The effect of a cancel on a running generation. Apps may ignore it. Default obeyed. */
  cancel: "obeyed" | "ignored";
  /** Its state after a cancel in the queue. */
  cancelledInQueue: "completed" | "unknown";
  /** Default: the output that the model's name suggests. */
  makes: Makes | undefined;
  /** Output in place of the usual. The function gets the generation with its input. */
  output: ((generation: FalGeneration) => object) | undefined;
  failure: FalFailure | undefined;
}

/** The failure of a generation: the answer to the request for its result. */
export interface FalFailure {
  status: number;
  detail: string | object[];
  /** Failures of the platform have one. Those of models do not. */
  errorType?: string;
  isRetryable?: boolean;
}

export interface FalGeneration {
  id: string;
  /** The whole id, including its sub-path. */
  model: string;
  // biome-ignore lint/suspicious/noExplicitAny: inputs of many shapes.
  input: any;
  /** Bytes that the input referred to. */
  references: Reference[];
  plan: FalPlan;
  /** Steps taken. */
  step: number;
  /** Did a cancel take it out of the queue? */
  isRemoved: boolean;
  failure: FalFailure | undefined;
  /** Set once it has succeeded. */
  output: object | undefined;
}

/** Failures in fal's words. */
export const falFailures = {
  refused: modelFailure(
    "content_policy_violation",
    "The content could not be processed.",
    "prompt",
  ),
  noFile: (key: string) => modelFailure("file_download_error", "Failed to download the file.", key),
  invalid: modelFailure("value_error", "Input should be less than or equal to 4", "num_images"),
  timedOut: platformFailure(504, "request_timeout", "Request timed out"),
  neverStarted: platformFailure(504, "startup_timeout", "Runner did not start in time"),
  runnerGone: platformFailure(503, "runner_disconnected", "Runner disconnected"),
  runnerFailed: platformFailure(500, "runner_server_error", "Internal Server Error"),
  cancelled: platformFailure(499, "client_cancelled", "Request was cancelled by the client"),
} as const;

/** Answers without any work, for {@link Double.next}. */
export const falAnswers = {
  locked: reply(403, {
    detail:
      "User is locked. Reason: Exhausted balance. Top up your balance at fal.ai/dashboard/billing.",
  }),
  unauthenticated: reply(401, { detail: "Authentication is required to access this application." }),
  tooEarly: reply(400, { detail: "Request is still in progress" }),
  unknown: reply(404, { detail: "Not Found" }),
  tooMany: reply(
    429,
    {
      detail: [
        { loc: ["body"], msg: "Too many requests at once", type: "concurrent_requests_limit" },
      ],
    },
    { "x-fal-needs-retry": "1" },
  ),
  down: reply(503, { detail: "Service Unavailable" }),
} satisfies Record<string, Behaviour>;

const usualPlan: FalPlan = {
  positions: [1, 0],
  running: 1,
  pace: "looks",
  cancel: "obeyed",
  cancelledInQueue: "completed",
  makes: undefined,
  output: undefined,
  failure: undefined,
};

/**
 * Starts a server on a free loopback port (or on `port`). `responsePath` is the end of `response_url` after the id. In fal's documentation
 * that is "/response", in its client nothing. Both are answered.
 */
export async function startFal({
  port = 0,
  key = "fal-id:fal-secret",
  responsePath = "",
} = {}): Promise<FalDouble> {
  const files = await startFiles();
  const outputs = await sampleOutputs();
  const generations: FalGeneration[] = [];
  const plans: Partial<FalPlan>[] = [];
  const usual = { ...usualPlan };
  let isLocked = false;

  const stepsOf = ({ plan }: FalGeneration) => plan.positions.length + plan.running;
  const hasEnded = (generation: FalGeneration) => generation.step >= stepsOf(generation);
  const isQueued = ({ step, plan }: FalGeneration) => step < plan.positions.length;
  const advance = (generation: FalGeneration) => {
    if (hasEnded(generation)) return;
    generation.step++;
    if (hasEnded(generation)) end(generation);
  };
  const end = (generation: FalGeneration) => {
    generation.step = stepsOf(generation);
    if (!generation.failure) generation.output ??= makeOutput(generation, outputs, files);
  };
  const chosen = (id?: string) => generations.filter((one) => id === undefined || one.id === id);
  const find = ([namespace, owner, app, id]: string[]) => {
    const root = `${namespace ?? ""}${owner}/${app}`;
    const isOfApp = ({ model }: FalGeneration) => model === root || model.startsWith(`${root}/`);
    const found = generations.find((one) => one.id === id && isOfApp(one));
    return found?.isRemoved && found.plan.cancelledInQueue === "unknown" ? undefined : found;
  };
  const withId = (id: string) => ({ "x-fal-request-id": id });

  const submit = (model: string, body: unknown): Answer => {
    if (isLocked) return falAnswers.locked;
    if (typeof body !== "object" || body === null)
      return failed(randomUUID(), modelFailure("missing", "Field required", "body"));
    const id = randomUUID();
    const own = (url: string) =>
      url.startsWith(files.origin) ? (files.read(url)?.bytes ?? null) : undefined;
    const { found, missing } = referencesIn(body, own);
    const plan = { ...usual, ...plans.shift() };
    const lacking = missing[0] === undefined ? undefined : falFailures.noFile(missing[0]);
    const generation: FalGeneration = {
      ...{ id, model, input: body, references: found, plan, step: 0 },
      ...{ isRemoved: false, failure: lacking ?? plan.failure, output: undefined },
    };
    generations.push(generation);
    if (hasEnded(generation)) end(generation);
    return reply(200, statusOf(generation, false), withId(id));
  };
  const statusOf = (generation: FalGeneration, withLogs: boolean) => {
    const { id, model, step, plan, failure } = generation;
    const at = `${double.origin}/${rootOf(model)}/requests/${id}`;
    const urls = {
      response_url: `${at}${responsePath}`,
      status_url: `${at}/status`,
      cancel_url: `${at}/cancel`,
    };
    const common = { request_id: id, ...urls };
    if (isQueued(generation))
      return { status: "IN_QUEUE", queue_position: plan.positions[step], ...common };
    const logs = withLogs ? [{ message: "step", level: "INFO", source: "USER" }] : null;
    if (!hasEnded(generation)) return { status: "IN_PROGRESS", logs, ...common };
    const { errorType, detail = "" } = failure ?? {};
    const error = failure && {
      error: typeof detail === "string" ? detail : "Unprocessable Entity",
      ...(errorType && { error_type: errorType }),
    };
    return { status: "COMPLETED", logs, metrics: { inference_time: 0.5 }, ...error, ...common };
  };

  const routes: Route<FalRoute>[] = [
    {
      ...{ name: "openapi", method: "GET", path: openApiPath },
      answer: ({ query }) => {
        const document = falOpenApi(query.get("endpoint_id") ?? "");
        return document ? reply(200, document) : reply(404, { detail: "App not found" });
      },
    },
    {
      ...{ name: "initiate", method: "POST", path: /^\/storage\/upload\/initiate$/ },
      answer: ({ body }) => {
        if (typeof body?.content_type !== "string" || typeof body.file_name !== "string")
          return failed(randomUUID(), modelFailure("missing", "Field required", "file_name"));
        const { uploadUrl, fileUrl } = files.expect(body.content_type);
        return reply(200, { upload_url: uploadUrl, file_url: fileUrl });
      },
    },
    {
      ...{ name: "status", method: "GET", path: onRequest("/status") },
      answer: ({ query }, parts) => {
        const generation = find(parts);
        if (!generation) return falAnswers.unknown;
        const status = statusOf(generation, query.get("logs") === "1");
        const code = hasEnded(generation) ? 200 : 202;
        if (generation.plan.pace === "looks") advance(generation);
        return reply(code, status, withId(generation.id));
      },
    },
    {
      ...{ name: "result", method: "GET", path: onRequest("(?:/response)?") },
      answer: (_seen, parts) => {
        const generation = find(parts);
        if (!generation) return falAnswers.unknown;
        if (!hasEnded(generation)) return falAnswers.tooEarly;
        const { id, failure, output } = generation;
        return failure ? failed(id, failure) : reply(200, output, withId(id));
      },
    },
    {
      ...{ name: "cancel", method: "PUT", path: onRequest("/cancel") },
      answer: (_seen, parts) => {
        const generation = find(parts);
        if (!generation) return reply(404, { status: "NOT_FOUND" });
        if (hasEnded(generation)) return reply(400, { status: "ALREADY_COMPLETED" });
        generation.isRemoved = isQueued(generation);
        if (generation.isRemoved || generation.plan.cancel === "obeyed") {
          generation.failure = falFailures.cancelled;
          end(generation);
        }
        return reply(202, { status: "CANCELLATION_REQUESTED" });
      },
    },
    {
      ...{ name: "submit", method: "POST", path: /^\/((?:workflows|comfy)\/)?([^/]+\/[^/]+.*)$/ },
      answer: ({ body }, [namespace, rest]) => submit(`${namespace}${rest}`, body),
    },
  ];
  const double = await startDouble(routes, {
    port,
    guard: ({ headers, path }) =>
      openApiPath.test(path) || headers.authorization === `Key ${key}`
        ? undefined
        : falAnswers.unauthenticated,
  });
  return {
    ...double,
    ...{ files, key, outputs, generations, usual },
    plan: (...more) => void plans.push(...more),
    advance: (id) => chosen(id).forEach(advance),
    finish: (id) => {
      for (const one of chosen(id)) while (!hasEnded(one)) advance(one);
    },
    lock: (locked = true) => {
      isLocked = locked;
    },
    paid: () =>
      generations
        .filter(({ isRemoved, failure }) => !isRemoved && (failure?.status ?? 200) < 499)
        .map(({ id }) => id),
    [Symbol.asyncDispose]: async () => {
      await double[Symbol.asyncDispose]();
      await files[Symbol.asyncDispose]();
    },
  };
}

/** The descriptions of models need no key. */
const openApiPath = /^\/api\/openapi\/queue\/openapi\.json$/;

/** Owner and app, with a namespace before them and without the sub-path. */
function rootOf(model: string): string {
  const parts = model.split("/");
  return parts.slice(0, /^(workflows|comfy)$/.test(parts[0] ?? "") ? 3 : 2).join("/");
}

function onRequest(rest: string): RegExp {
  return new RegExp(`^/((?:workflows|comfy)/)?([^/]+)/([^/]+)/requests/([^/]+)${rest}$`);
}

/** The output in the form of real models. */
function makeOutput(generation: FalGeneration, outputs: MediaOutputs, files: Files): object {
  const { model, input, plan } = generation;
  if (plan.output) return plan.output(generation);
  const makes = plan.makes ?? makesByName(model);
  const made = bytesMade(makes, input.num_images ?? 1, outputs).map((bytes) => {
    const type = typeOfBytes(bytes);
    const url = files.add({ bytes, type });
    return { url, content_type: type, file_name: url.split("/").at(-1), file_size: bytes.length };
  });
  const seed = input.seed ?? 1;
  if (makes !== "image") return { [makes === "video" ? "video" : "audio"]: made[0], seed };
  const marks = made.map(() => false);
  return { images: made, seed, has_nsfw_concepts: marks, prompt: input.prompt };
}

function failed(
  id: string,
  { status, detail, errorType, isRetryable = false }: FalFailure,
): Answer {
  const body = errorType ? { detail, error_type: errorType } : { detail };
  return reply(status, body, {
    "x-fal-request-id": id,
    ...(errorType ? { "x-fal-error-type": errorType } : { "x-fal-retryable": `${isRetryable}` }),
  });
}

function modelFailure(type: string, msg: string, key: string): FalFailure {
  const url = `https://docs.fal.ai/errors#${type}`;
  return { status: 422, detail: [{ loc: ["body", ...key.split(".")], msg, type, url }] };
}

function platformFailure(status: number, errorType: string, detail: string): FalFailure {
  return { status, errorType, detail };
}
