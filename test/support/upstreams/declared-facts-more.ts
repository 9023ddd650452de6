import type { JsonObject, JsonValue } from "#kit/base/json.ts";
import type { Facts, Task } from "./declared.ts";
import { bearer, code, dayMs, down, unauthorized, type Words } from "./declared-common.ts";
import { reply, replyText } from "./double.ts";

const omniWords: Words = {
  ...{ waiting: "queued", running: "in_progress", done: "completed" },
  ...{ refused: "completed", failed: "failed", cancelled: "cancelled" },
};
/** vercel/ai names the key in the query of a file. */
const googleKey = {
  ...{ header: "x-goog-api-key", query: "key" },
  denied: reply(400, [code("API_KEY_INVALID")]),
};

/** Answers that bike4mind's program recorded in autumn 2026. */
const google: Facts = {
  ...{ makes: "video", base: "/v1beta", key: googleKey },
  create: /^\/v1beta\/interactions$/,
  faultOf: ({ background, input }) =>
    background === true && JSON.stringify(input).includes('"text"') ? undefined : "input",
  // Errors may come in a list.
  invalid: (message) => reply(400, [{ error: { code: 400, status: "INVALID_ARGUMENT", message } }]),
  created: ({ id }) => ({ id, status: "queued" }),
  look: /^\/v1beta\/interactions\/([\w-]+)$/,
  told: ({ id, state, url }) => {
    const isMade = state === "done";
    const content = isMade ? [{ type: "video", uri: url }] : [];
    // A refused video is completed, without a video.
    const steps = [{ type: "user_input" }, { type: "model_output", content }];
    return reply(200, { id, status: omniWords[state], steps });
  },
  // An unknown id is 400.
  missing: reply(400, [{ error: { code: 400, status: "INVALID_ARGUMENT" } }]),
  cancel: {
    ...{ method: "POST", path: /^\/v1beta\/interactions\/([\w-]+)\/cancel$/ },
    ...{ in: ["waiting", "running"], answer: ({ id }) => reply(200, { id, status: "cancelled" }) },
  },
  free: { "/v1beta/models": reply(200, { models: [{ name: "models/gemini-omni-1.1-flash" }] }) },
  ...{ wantsKeyForFiles: true, linkMs: 2 * dayMs },
  answers: { busy: reply(429, [{ error: { status: "RESOURCE_EXHAUSTED" } }]), down },
};

/** vercel/ai: a long-running operation. `done` is absent until it has ended. */
const veo: Facts = {
  ...google,
  create: /^\/v1beta\/models\/([\w.-]+):predictLongRunning$/,
  faultOf: ({ instances }) => (Array.isArray(instances) ? undefined : "instances"),
  created: ({ id }) => ({ name: `models/veo/operations/${id}` }),
  look: /^\/v1beta\/models\/veo\/operations\/([\w-]+)$/,
  told: ({ state, url }) => {
    if (state === "waiting" || state === "running") return reply(200, { name: "operation" });
    if (state === "failed") return reply(200, { done: true, error: { code: 13, message: "no" } });
    const generateVideoResponse =
      state === "done"
        ? { generatedSamples: [{ video: { uri: url } }] }
        : { raiMediaFilteredCount: 1, raiMediaFilteredReasons: ["in words of the service"] };
    return reply(200, { done: true, response: { generateVideoResponse } });
  },
  missing: reply(404, code("NOT_FOUND")),
  ...{ cancel: undefined, free: {} },
};

const bflWords: Words = {
  ...{ waiting: "Pending", running: "Generating", done: "Ready" },
  ...{ refused: "Content Moderated", failed: "Error", cancelled: "Error" },
};

const words = { type: "string" };
const pixels = { type: "integer", minimum: 64 };
/** The part of BFL's OpenAPI that the shipped catalog uses. */
const fluxInput = {
  ...{ type: "object", required: ["prompt"], additionalProperties: false },
  properties: {
    ...{ prompt: words, width: pixels, height: pixels, seed: { type: "integer" } },
    output_format: { type: "string", enum: ["jpeg", "png"] },
    ...{ input_image: words, input_image_2: words, input_image_3: words },
  },
};
const fluxDocument = {
  paths: {
    "/v1/flux-2-pro": {
      post: { requestBody: { content: { "application/json": { schema: fluxInput } } } },
    },
  },
};

/** vercel/ai knows no other states of images. */
const bflOtherWords: Words = { ...bflWords, running: "Pending", refused: "Request Moderated" };

/** BFL's pages integration_guidelines and errors, and its OpenAPI. */
const bfl: Facts = {
  ...{ makes: "image", base: "", key: { header: "x-key", denied: replyText(403) } },
  create: /^\/v1\/(flux-[\w-]+)$/,
  faultOf: ({ input_image }) =>
    String(input_image).startsWith("data:") ? "base64 is wanted" : undefined,
  invalid: (message) => reply(422, { detail: [{ msg: message }] }),
  created: ({ id, lookUrl }) => ({ id, polling_url: lookUrl, cost: 3 }),
  look: /^\/v1\/get_result$/,
  idOf: ({ query }) => query.get("id") ?? "",
  told: ({ id, state, url }, isOther) => {
    const result = state === "done" ? { sample: url } : null;
    const status = (isOther ? bflOtherWords : bflWords)[state];
    return reply(200, { id, status, progress: 0.4, result });
  },
  // Only the host of polling_url knows the task.
  missing: reply(200, { status: "Task not found", result: null }),
  hasCluster: true,
  most: { tasks: 24, in: ["waiting", "running"], answer: replyText(429) },
  free: { "/v1/credits": reply(200, { credits: 100 }) },
  openapi: { path: "/openapi.json", document: fluxDocument },
  // The link is signed for ten minutes.
  linkMs: 10 * 60_000,
  answers: { empty: replyText(402), busy: replyText(429), down },
};

const wanWords: Words = {
  ...{ waiting: "PENDING", running: "RUNNING", done: "SUCCEEDED" },
  ...{ refused: "FAILED", failed: "FAILED", cancelled: "CANCELED" },
};

/** Alibaba's page manage-asynchronous-tasks of 2026-03-15, and vercel/ai. */
const wan: Facts = {
  ...{ makes: "video", base: "", key: bearer },
  constant: ["x-dashscope-async", "enable"],
  create: /^\/api\/v1\/services\/aigc\/video-generation\/video-synthesis$/,
  faultOf: ({ parameters }) => {
    const { size, resolution } = parameters as JsonObject;
    return /^(\d+\*\d+|\d+P)$/.test(String(size ?? resolution)) ? undefined : "size";
  },
  invalid: (message) => reply(400, { code: "InvalidParameter", message }),
  created: ({ id }) => ({ output: { task_id: id, task_status: "PENDING" } }),
  look: /^\/api\/v1\/tasks\/([\w-]+)$/,
  told: ({ id, state, url }) => {
    const failure = state === "refused" ? "DataInspectionFailed" : "InternalError";
    const ended = wanWords[state] === "FAILED" ? { code: failure } : {};
    const made = state === "done" ? { video_url: url } : {};
    const output = { task_id: id, task_status: wanWords[state], ...ended, ...made };
    return reply(200, { output });
  },
  ...{ linkMs: dayMs, recordMs: dayMs },
  // A task that is not there, or is older than a day, is no error.
  missing: reply(200, { output: { task_status: "UNKNOWN" } }),
  cancel: {
    ...{ method: "POST", path: /^\/api\/v1\/tasks\/([\w-]+)\/cancel$/ },
    ...{ in: ["waiting"], answer: () => reply(200, { request_id: "r" }) },
  },
  answers: {
    refusedInput: reply(400, { code: "DataInspectionFailed" }),
    empty: reply(400, { code: "Arrearage" }),
    busy: reply(429, { code: "Throttling.RateQuota" }),
    down,
  },
};

const runwayWords: Words = {
  ...{ waiting: "THROTTLED", running: "RUNNING", done: "SUCCEEDED" },
  ...{ refused: "FAILED", failed: "FAILED", cancelled: "CANCELLED" },
};

/** Runway's SDK of 2026-07-23, and its pages task-failures and outputs. */
const runway: Facts = {
  ...{
    makes: "video",
    base: "",
    key: bearer,
    constant: ["x-runway-version", "2024-11-06"],
    isForAll: true,
  },
  create: /^\/v1\/(text_to_video|image_to_video)$/,
  faultOf: ({ ratio, duration, promptImage }, way) => {
    if (!/^\d+:\d+$/.test(String(ratio)) || typeof duration !== "number") return "ratio";
    return (way === "image_to_video") === Array.isArray(promptImage) ? undefined : "promptImage";
  },
  invalid: (message) => reply(400, { error: message }),
  created: ({ id }) => ({ id }),
  look: /^\/v1\/tasks\/([\w-]+)$/,
  told: ({ id, state, url }) => {
    const failureCode = state === "refused" ? "SAFETY.INPUT.TEXT" : "INTERNAL.BAD_OUTPUT.CODE01";
    const ended = runwayWords[state] === "FAILED" ? { failure: "in words", failureCode } : {};
    const made = state === "done" ? { output: [url] } : {};
    const progress = state === "running" ? { progress: 0.4 } : {};
    const createdAt = "2026-07-23T00:00:00Z";
    return reply(200, {
      ...{ id, createdAt, status: runwayWords[state] },
      ...progress,
      ...ended,
      ...made,
    });
  },
  linkMs: dayMs,
  free: { "/v1/organization": reply(200, { creditBalance: 100 }) },
  missing: reply(404, { error: "not found" }),
  cancel: {
    ...{ method: "DELETE", path: /^\/v1\/tasks\/([\w-]+)$/, in: ["waiting", "running"] },
    // SDK: a task that was cancelled or deleted cannot be fetched again.
    ...{ deletes: "all", answer: () => replyText(204) },
  },
  answers: { busy: reply(429, { error: "slow down" }), down },
};

const viduWords: Words = {
  ...{ waiting: "queueing", running: "processing", done: "success" },
  ...{ refused: "failed", failed: "failed", cancelled: "failed" },
};

/** Vidu's pages get-generation and error codes (platform.vidu.com/docs). */
const vidu: Facts = {
  ...{ makes: "video", base: "" },
  key: { header: "authorization", before: "Token ", denied: unauthorized },
  create: /^\/ent\/v2\/(text2video|img2video|start-end2video)$/,
  faultOf: ({ images = [] }, way) => {
    const wanted = { text2video: 0, img2video: 1 }[way] ?? 2;
    return (images as JsonValue[]).length === wanted ? undefined : "images";
  },
  // Inferred: an error has its word as `reason`.
  invalid: (message) => reply(400, { code: 400, reason: "FieldInvalid", message }),
  created: ({ id }: Task) => ({ task_id: id, state: "created" }),
  look: /^\/ent\/v2\/tasks\/([\w-]+)\/creations$/,
  told: ({ state, url }) => {
    const err_code =
      state === "refused" ? "CreationPolicyViolation" : state === "failed" ? "Internal" : "";
    const creations = state === "done" ? [{ id: "1", url }] : [];
    return reply(200, { state: viduWords[state], err_code, creations });
  },
  linkMs: dayMs,
  missing: reply(404, { code: 404, reason: "TaskNotFound" }),
  cancel: {
    ...{ method: "POST", path: /^\/ent\/v2\/tasks\/([\w-]+)\/cancel$/ },
    ...{ in: ["waiting"], answer: () => reply(200, {}) },
  },
  answers: {
    refusedInput: reply(400, { code: 400, reason: "TaskPromptPolicyViolation" }),
    empty: reply(400, { code: 400, reason: "CreditInsufficient" }),
    busy: reply(429, { code: 429 }),
    down,
  },
};

const pixverseStates: Words = {
  ...{ waiting: "5", running: "5", done: "1" },
  ...{ refused: "7", failed: "8", cancelled: "6" },
};
/** PixVerse answers 200 to everything. */
const pixverseError = (ErrCode: number) =>
  reply(200, { ErrCode, ErrMsg: "in words of the service", Resp: null });

/** PixVerse's pages text-to-video-generation, get-video-generation-status and error-codes (docs.platform.pixverse.ai). */
const pixverse: Facts = {
  ...{ makes: "video", base: "/openapi/v2" },
  // Inferred: a wrong key is an invalid account.
  key: { header: "api-key", denied: pixverseError(400012) },
  // Its page common-errors: a look with the id of an earlier request stays at "generating".
  fresh: { header: "ai-trace-id", again: reply(200, { ErrCode: 0, Resp: { status: 5 } }) },
  create: /^\/openapi\/v2\/video\/text\/generate$/,
  faultOf: ({ aspect_ratio, duration, quality }) => {
    const isRight = typeof duration === "number" && /^\d+p$/.test(String(quality));
    return isRight && /^\d+:\d+$/.test(String(aspect_ratio)) ? undefined : "binding";
  },
  invalid: () => pixverseError(400013),
  created: ({ id }) => ({ ErrCode: 0, ErrMsg: "success", Resp: { video_id: id } }),
  look: /^\/openapi\/v2\/video\/result\/(\w[\w-]*)$/,
  told: ({ id, state, url }) => {
    const status = Number(pixverseStates[state as keyof Words]);
    return reply(200, { ErrCode: 0, ErrMsg: "Success", Resp: { id, status, url } });
  },
  missing: pixverseError(500008),
  free: { "/openapi/v2/account/balance": reply(200, { ErrCode: 0, Resp: { credit_monthly: 10 } }) },
  // Inferred: resellers say that a link lasts a day.
  linkMs: dayMs,
  answers: {
    refusedInput: pixverseError(500063),
    empty: pixverseError(500090),
    busy: pixverseError(500044),
    overloaded: pixverseError(500069),
    denied: pixverseError(400012),
    unsure: pixverseError(99999),
    down,
  },
};

export const moreFacts = { google, veo, bfl, wan, runway, vidu, pixverse };
