import { createHash, randomBytes } from "node:crypto";
import type { Behaviour } from "../scripted-behaviours.ts";
import { formOf, type MediaOutputs } from "../scripted-media-upstream.ts";
import type { SeenRequest } from "../scripted-upstream.ts";
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
  replyText,
  sampleOutputs,
  startDouble,
  startFiles,
  typeOfBytes,
} from "./double.ts";
import { schemaRoutes } from "./replicate-schemas.ts";

/**
 * Replicate's API (api.replicate.com/v1) and its files (replicate.delivery).
 *
 * From replicate/replicate-javascript: paths and bodies of predictions (lib/predictions.js), `Prefer: wait` (there and index.js). Multipart
 * `content` and `metadata` of files, 204 of a deletion (lib/files.js). The prediction's and the file's fields (index.d.ts). Only 429 is
 * tried again on POST (index.js). `aborted`: replicate-python, replicate/prediction.py.
 * From Replicate's documentation: `Cancel-After` and its ends, canceled is charged and aborted is not (changelog of 2025-10-16). Data are
 * removed after an hour (topics/predictions/data-retention). Wordings of 401 and 422: replicate-python issue 47. Of 429: reports of users.
 * States, `output`, `logs`, `error` and `metrics.predict_time` are those of coglet 0.23.1, which runs the models there, for a toy
 * predictor.
 * Inferred without a source: the wording of 404. A cancel of an ended prediction answers with it unchanged. A missing file makes the
 * prediction fail.
 */
export interface ReplicateDouble extends Double<ReplicateRoute> {
  /** Ends in /v1. */
  baseUrl: string;
  /** The outputs. They need no key and get none. */
  files: Files;
  key: string;
  outputs: MediaOutputs;
  /** In the order of arrival, including those whose answer was lost. */
  predictions: Prediction[];
  /** The treatment of predictions for which {@link plan} has no entry. A test may change it at any time. */
  usual: ReplicatePlan;
  /** The treatments of the next predictions, one each. Later ones get the usual one. */
  plan(...plans: Partial<ReplicatePlan>[]): void;
  /** One step for one prediction, or for all. */
  advance(id?: string): void;
  /** All steps for one prediction, or for all. */
  finish(id?: string): void;
  /** The deadline of `Cancel-After` passes. The prediction is aborted before its start, canceled after it. */
  passDeadline(id: string): void;
  /** Like an hour after the end: input, output and files are gone. */
  removeData(id: string): void;
  /** The ids of charged predictions: all accepted ones, except for aborted ones. */
  paid(): string[];
}

export type ReplicateRoute =
  | "submit"
  | "get"
  | "cancel"
  | "list"
  | "upload"
  | "fileObject"
  | "fileList"
  | "fileDelete"
  | "model"
  | "version";

/** The treatment of a prediction. */
export interface ReplicatePlan {
  /** Looks in each state, not counting the answer to its submission, which is the first. Default one each. */
  starting: number;
  processing: number;
  /** Does each look take it a step further, or only {@link ReplicateDouble.advance}? */
  pace: "looks" | "advance";
  /** The effect of a cancel. */
  cancel: "obeyed" | "ignored";
  end: "succeeded" | "failed" | "canceled" | "aborted";
  /** The text of a failure. */
  error: string;
  /** Lines of `logs`, one a step. */
  logs: string[];
  /** Default: the output that the model's name suggests. */
  makes: Makes | undefined;
  /** Output in place of the usual. The function gets the URLs of the usual output, and the prediction. */
  output: ((urls: string[], prediction: Prediction) => unknown) | undefined;
}

export interface Prediction {
  id: string;
  model: string;
  version: string;
  // biome-ignore lint/suspicious/noExplicitAny: inputs of many shapes.
  input: any;
  references: Reference[];
  plan: ReplicatePlan;
  /** Steps taken. */
  step: number;
  status: "starting" | "processing" | ReplicatePlan["end"];
  error: string | null;
  output: unknown;
  urls: string[];
  isDataRemoved: boolean;
  cancelAfter: string | undefined;
  /** Resolves at the end. */
  ended: Promise<void>;
  markEnded: () => void;
}

/** Answers without any work, for {@link Double.next}. */
export const replicateAnswers = {
  insufficientCredit: problem(402, "Insufficient credit", {
    detail:
      "You have insufficient credit to run this model. Go to your billing page to add credit.",
  }),
  invalidInput: problem(422, "Input validation failed", {
    detail: "- input.num_outputs: Must be less than or equal to 4\n",
    invalid_fields: [{ type: "number_lte", field: "input.num_outputs" }],
  }),
  throttled: reply(
    429,
    {
      detail: "Request was throttled. Your rate limit resets in ~1s.",
      status: 429,
      retry_after: 1,
    },
    { "retry-after": "1" },
  ),
  unknown: problem(404, "Not found", { detail: "The requested resource could not be found." }),
  down: reply(500, { detail: "Internal server error" }),
} satisfies Record<string, Behaviour>;

/** Errors of failed predictions, in the words of models. */
export const replicateErrors = {
  refused:
    "The input or output was flagged as sensitive. Please try again with different inputs. (E005)",
  broken: "CUDA out of memory",
  noFile: "Failed to download file (E6716)",
} as const;

const usualPlan: ReplicatePlan = {
  ...{ starting: 1, processing: 1, pace: "looks", cancel: "obeyed", end: "succeeded" },
  ...{
    error: replicateErrors.broken,
    logs: ["  0%|", " 50%|█████     | 5/10", "100%|██████████| 10/10"],
  },
  ...{ makes: undefined, output: undefined },
};

interface FileObject {
  bytes: Uint8Array;
  document: { id: string; urls: { get: string } };
}

/** Starts a server on a free loopback port (or on `port`). */
export async function startReplicate({ port = 0, key = "r8_test" } = {}): Promise<ReplicateDouble> {
  const files = await startFiles();
  const outputs = await sampleOutputs();
  const predictions: Prediction[] = [];
  const usual = { ...usualPlan };
  const plans: Partial<ReplicatePlan>[] = [];
  const uploads = new Map<string, FileObject>();

  const hasEnded = ({ status }: Prediction) => status !== "starting" && status !== "processing";
  const end = (prediction: Prediction, status: ReplicatePlan["end"]) => {
    prediction.status = status;
    if (status === "failed") prediction.error ??= prediction.plan.error;
    if (status === "succeeded") {
      const { model, input, plan } = prediction;
      const makes = plan.makes ?? makesByName(model);
      const made = bytesMade(makes, input.num_outputs ?? 1, outputs).map((bytes) =>
        files.add({ bytes, type: typeOfBytes(bytes) }),
      );
      prediction.urls = made;
      const usually = makes === "image" ? made : made[0];
      prediction.output = plan.output ? plan.output(made, prediction) : usually;
    }
    prediction.markEnded();
  };
  const advance = (prediction: Prediction) => {
    if (hasEnded(prediction)) return;
    const { starting, processing, end: last } = prediction.plan;
    prediction.step++;
    if (prediction.step >= starting) prediction.status = "processing";
    // An aborted prediction never starts.
    const whole = last === "aborted" ? starting : starting + processing;
    if (prediction.step >= whole) end(prediction, prediction.error === null ? last : "failed");
  };
  const finish = (prediction: Prediction) => {
    while (!hasEnded(prediction)) advance(prediction);
  };
  const chosen = (id?: string) => predictions.filter((one) => id === undefined || one.id === id);
  const find = (id: string | undefined) => predictions.find((one) => one.id === id);
  const own = (url: string) => {
    if (url.startsWith(files.origin)) return files.read(url)?.bytes ?? null;
    if (!url.startsWith(`${double.origin}/v1/files/`)) return undefined;
    return uploads.get(url.split("/").at(-1) ?? "")?.bytes ?? null;
  };

  const submit = async (model: string, seen: SeenRequest): Promise<Answer> => {
    const { body, headers } = seen;
    const invalid = invalidSubmission(model, seen);
    if (invalid) return invalid;
    const { found, missing } = referencesIn(body.input, own);
    const { promise: ended, resolve: markEnded } = Promise.withResolvers<void>();
    const plan = { ...usual, ...plans.shift() };
    const prediction: Prediction = {
      ...{ id: randomBytes(13).toString("hex"), model, version: body.version ?? "hidden" },
      ...{ input: body.input, references: found, plan, step: 0 },
      ...{ status: plan.starting > 0 ? "starting" : "processing", output: null, urls: [] },
      ...{ error: missing.length > 0 ? replicateErrors.noFile : null, isDataRemoved: false },
      ...{ cancelAfter: textOf(headers["cancel-after"]), ended, markEnded },
    };
    predictions.push(prediction);
    if (plan.starting + plan.processing === 0) end(prediction, plan.end);
    const waits = /^wait\b/.test(textOf(headers.prefer) ?? "");
    if (waits && plan.pace === "looks") finish(prediction);
    if (waits) await ended;
    return reply(201, documentOf(prediction));
  };
  const documentOf = (prediction: Prediction) => {
    const { id, model, version, status, plan, step, isDataRemoved, cancelAfter } = prediction;
    const at = `${double.origin}/v1/predictions/${id}`;
    const isOver = hasEnded(prediction);
    return {
      ...{ id, model, version, status, source: "api", created_at: time(0) },
      input: isDataRemoved ? {} : prediction.input,
      output: isDataRemoved ? null : prediction.output,
      logs: isDataRemoved ? "" : plan.logs.slice(0, step).join("\n"),
      ...{ error: prediction.error, data_removed: isDataRemoved },
      ...(cancelAfter && { deadline: time(60) }),
      ...(status !== "starting" && status !== "aborted" && { started_at: time(1) }),
      ...(isOver && { completed_at: time(2), metrics: { predict_time: 1, total_time: 2 } }),
      urls: { get: at, cancel: `${at}/cancel`, web: `https://replicate.com/p/${id}` },
    };
  };

  const routes: Route<ReplicateRoute>[] = [
    {
      ...{ name: "submit", method: "POST", path: /^\/v1\/models\/([^/]+)\/([^/]+)\/predictions$/ },
      answer: (seen, [owner, name]) => submit(`${owner}/${name}`, seen),
    },
    ...schemaRoutes(replicateAnswers.unknown),
    {
      ...{ name: "submit", method: "POST", path: /^\/v1\/predictions$/ },
      answer: (seen) => submit(modelOfVersion(seen.body?.version), seen),
    },
    {
      ...{ name: "list", method: "GET", path: /^\/v1\/predictions$/ },
      answer: () => page(predictions.toReversed().map(documentOf)),
    },
    {
      ...{ name: "get", method: "GET", path: /^\/v1\/predictions\/([^/]+)$/ },
      answer: (_seen, [id]) => {
        const prediction = find(id);
        if (!prediction) return replicateAnswers.unknown;
        if (prediction.plan.pace === "looks") advance(prediction);
        return reply(200, documentOf(prediction));
      },
    },
    {
      ...{ name: "cancel", method: "POST", path: /^\/v1\/predictions\/([^/]+)\/cancel$/ },
      answer: (_seen, [id]) => {
        const prediction = find(id);
        if (!prediction) return replicateAnswers.unknown;
        if (!hasEnded(prediction) && prediction.plan.cancel === "obeyed")
          end(prediction, "canceled");
        return reply(200, documentOf(prediction));
      },
    },
    {
      ...{ name: "upload", method: "POST", path: /^\/v1\/files$/ },
      answer: async (seen) => {
        const content = (await formOf(seen).catch(() => undefined))?.get("content");
        if (!(content instanceof File))
          return problem(400, "Bad Request", { detail: "Missing content" });
        const file = fileObject(
          new Uint8Array(await content.arrayBuffer()),
          content,
          double.origin,
        );
        uploads.set(file.document.id, file);
        return reply(201, file.document);
      },
    },
    {
      ...{ name: "fileList", method: "GET", path: /^\/v1\/files$/ },
      answer: () => page([...uploads.values()].map(({ document }) => document)),
    },
    {
      ...{ name: "fileObject", method: "GET", path: /^\/v1\/files\/([^/]+)$/ },
      answer: (_seen, [id = ""]) => {
        const file = uploads.get(id);
        return file ? reply(200, file.document) : replicateAnswers.unknown;
      },
    },
    {
      ...{ name: "fileDelete", method: "DELETE", path: /^\/v1\/files\/([^/]+)$/ },
      answer: (_seen, [id = ""]) =>
        uploads.delete(id) ? replyText(204) : replicateAnswers.unknown,
    },
  ];
  const double = await startDouble(routes, {
    port,
    unknown: replicateAnswers.unknown,
    guard: ({ headers: { authorization } }) =>
      authorization === `Bearer ${key}`
        ? undefined
        : problem(401, "Unauthenticated", {
            detail: `You did not pass ${authorization ? "a valid" : "an"} authentication token`,
          }),
  });
  return {
    ...double,
    ...{ baseUrl: `${double.origin}/v1`, files, key, outputs, predictions, usual },
    plan: (...more) => void plans.push(...more),
    advance: (id) => chosen(id).forEach(advance),
    finish: (id) => chosen(id).forEach(finish),
    passDeadline: (id) => {
      for (const one of chosen(id))
        if (!hasEnded(one) && one.cancelAfter)
          end(one, one.status === "starting" ? "aborted" : "canceled");
    },
    removeData: (id) => {
      for (const one of chosen(id)) {
        one.isDataRemoved = true;
        for (const url of one.urls) files.remove(url);
      }
    },
    paid: () =>
      predictions
        .filter((one) => one.status !== "aborted" && (hasEnded(one) || one.plan.end !== "aborted"))
        .map(({ id }) => id),
    [Symbol.asyncDispose]: async () => {
      await double[Symbol.asyncDispose]();
      await files[Symbol.asyncDispose]();
    },
  };
}

/** RFC 7807, in Replicate's words. */
function problem(status: number, title: string, rest: object): Behaviour {
  return reply(status, { title, status, ...rest });
}

function invalidSubmission(model: string, { body, headers }: SeenRequest): Answer | undefined {
  if (model === "")
    return problem(422, "Invalid version or not permitted", {
      detail:
        "The specified version does not exist (or perhaps you don't have permission to use it?)",
    });
  const field = typeof body?.input === "object" && body.input ? undefined : "input";
  const deadline = textOf(headers["cancel-after"]);
  const isDeadline = deadline === undefined || /^(\d+h)?(\d+m)?(\d+s?)?$/.test(deadline);
  if (!field && isDeadline) return undefined;
  return problem(422, "Input validation failed", {
    detail: field ? "- input is required\n" : "- Cancel-After: invalid duration\n",
    invalid_fields: [{ type: "required", field: field ?? "Cancel-After" }],
  });
}

/** Versions are `owner/name:hash`, `owner/name` or a hash alone. A caller does not know the model of a hash. */
function modelOfVersion(version: unknown): string {
  if (typeof version !== "string") return "";
  if (/^[0-9a-f]{64}$/.test(version)) return "of-a-version/model";
  return /^([\w.-]+\/[\w.-]+)(:[0-9a-f]{64})?$/.exec(version)?.[1] ?? "";
}

function fileObject(bytes: Uint8Array, content: File, origin: string): FileObject {
  const id = randomBytes(24).toString("base64url");
  const document = {
    ...{ id, name: content.name, content_type: content.type, size: bytes.length, etag: id },
    ...{
      checksums: { sha256: createHash("sha256").update(bytes).digest("hex") },
      metadata: {},
      created_at: time(0),
      expires_at: time(86_400),
    },
    urls: { get: `${origin}/v1/files/${id}` },
  };
  return { bytes, document };
}

function page(results: object[]): Answer {
  return reply(200, { previous: null, next: null, results });
}

/** The value of a header that comes once. */
function textOf(header: string | string[] | undefined): string | undefined {
  return typeof header === "string" ? header : undefined;
}

function time(seconds: number): string {
  return new Date(1_700_000_000_000 + seconds * 1_000).toISOString();
}
