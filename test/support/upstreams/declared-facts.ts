import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import type { Facts } from "./declared.ts";
import { bearer, code, dayMs, down, tokenIssuer, type Words } from "./declared-common.ts";
import { moreFacts } from "./declared-facts-more.ts";
import { type Answer, reply, replyText } from "./double.ts";

/** The error of services that follow OpenAI's form. */
const error = (status: number, code: string, more: JsonObject = {}): Answer =>
  reply(status, { error: { code, message: "in words of the service", ...more } });

/** The images of Ark's and MiniMax's `content` must be URLs or data URIs, each in a role. An only image needs none (vercel/ai). */
function contentFault({ content }: JsonObject): string | undefined {
  if (!Array.isArray(content)) return "content is missing";
  const isOnly = content.filter((part) => isJsonObject(part) && part.type !== "text").length === 1;
  const isRight = (part: JsonValue) => {
    const { type, text, role, image_url } = part as Record<string, JsonValue | undefined>;
    if (type === "text") return typeof text === "string" && text !== "";
    const url = String((image_url as JsonObject | undefined)?.url);
    const hasRole = /^(first_frame|last_frame)$/.test(String(role));
    return (hasRole || (isOnly && role === undefined)) && /^(https|data):/.test(url);
  };
  return content.every(isRight) ? undefined : "a part of content is wrong";
}

/** The seconds are a number within bounds. */
function secondsFault(value: JsonValue | undefined, [least, most]: [number, number]) {
  const isWithin = typeof value === "number" && value >= least && value <= most;
  return isWithin ? undefined : "the duration is out of bounds";
}

/** xAI's documentation of 2026, its SDK 1.19.0, and vercel/ai. */
const xai: Facts = {
  ...{ makes: "video", base: "/v1", key: bearer },
  create: /^\/v1\/videos\/generations$/,
  // Inferred: an image beside reference images is refused. The documentation calls them alternatives.
  faultOf: (input) =>
    input.image !== undefined && input.reference_images !== undefined
      ? "image and reference_images exclude each other"
      : secondsFault(input.duration, [1, 15]),
  // The second form of its errors: `error` is a text.
  invalid: (message) => reply(400, { code: "invalid_argument", error: message }),
  created: ({ id }) => ({ request_id: id }),
  look: /^\/v1\/videos\/([\w-]+)$/,
  told: ({ state, url }) => {
    // SDK: 202 while it runs, and the body may be empty.
    if (state === "waiting") return replyText(202);
    if (state === "running") return reply(202, { status: "pending", progress: 40 });
    if (state === "failed") return reply(200, { status: "failed", ...code("invalid_argument") });
    if (state === "expired") return reply(200, { status: "expired" });
    // vercel/ai: a refused video is done, without a URL.
    const isRefused = state === "refused";
    const video = isRefused ? { respect_moderation: false } : { url, respect_moderation: true };
    return reply(200, { status: "done", progress: 100, video });
  },
  missing: error(404, "not_found"),
  // Inferred: the list of models has the form of OpenAI's.
  free: {
    "/v1/video-generation-models": reply(200, { models: [{ id: "grok-imagine-video-1.5" }] }),
  },
  ...{ expires: true, linkMs: dayMs },
  answers: { empty: reply(402, code("insufficient_funds")), busy: replyText(429), down },
};

const arkWords: Words = {
  ...{ waiting: "queued", running: "running", done: "succeeded" },
  ...{ refused: "failed", failed: "failed", cancelled: "cancelled", expired: "expired" },
};

/** Volcengine's SDK, BytePlus' page ModelArk/1520757, and Composio's page of byte_plus_ark. */
const ark: Facts = {
  ...{ makes: "video", base: "/api/v3", key: bearer },
  create: /^\/api\/v3\/contents\/generations\/tasks$/,
  faultOf: (input) => contentFault(input) ?? secondsFault(input.duration, [4, 15]),
  invalid: (message) => error(400, "InvalidParameter", { param: message }),
  created: ({ id }) => ({ id }),
  look: /^\/api\/v3\/contents\/generations\/tasks\/([\w-]+)$/,
  // A failed task is a success of HTTP, and a video that was made may be refused too.
  told: ({ id, state, url }) => {
    const failure = state === "refused" ? "OutputVideoSensitiveContentDetected" : "InternalError";
    const isFailed = arkWords[state] === "failed";
    const content = state === "done" ? { content: { video_url: url } } : {};
    return reply(200, { id, status: arkWords[state], ...content, ...(isFailed && code(failure)) });
  },
  missing: error(404, "ResourceNotFound"),
  cancel: {
    ...{ method: "DELETE", path: /^\/api\/v3\/contents\/generations\/tasks\/([\w-]+)$/ },
    // Composio: a queued task is cancelled, one that has ended loses its record, one that runs is an error.
    ...{ in: ["waiting"], deletes: "ended", answer: () => reply(200, {}) },
  },
  most: { tasks: 120, in: ["waiting"], answer: error(429, "QuotaExceeded") },
  free: { "/api/v3/contents/generations/tasks": reply(200, { items: [], total: 0 }) },
  // Inferred: a record lasts 7 days, as a page without a second source says.
  ...{ expires: true, linkMs: dayMs, recordMs: 7 * dayMs },
  answers: {
    refusedInput: error(400, "InputTextSensitiveContentDetected.PolicyViolation"),
    empty: error(403, "AccountOverdueError"),
    busy: error(429, "ModelAccountRpmRateLimitExceeded"),
    overloaded: error(429, "ServerOverloaded"),
    down,
  },
};

/** MiniMax's pages video-generation-v2-{query,delete,list} of 2026, and docs.comfy.org. */
const minimax: Facts = {
  ...{ makes: "video", base: "", key: bearer },
  create: /^\/v2\/video_generation$/,
  faultOf: (input) => contentFault(input) ?? secondsFault(input.duration, [4, 15]),
  invalid: (message) => minimaxError(400, message),
  created: ({ id }) => ({ task_id: id, base_resp: { status_code: 0, status_msg: "success" } }),
  look: /^\/v2\/query\/video_generation\/([\w-]+)$/,
  told: ({ state, url }) => {
    const isFailed = arkWords[state] === "failed";
    const content = state === "done" ? { content: { url } } : {};
    // Inferred: the codes of version 1 stand here too.
    const failure = isFailed ? code(state === "refused" ? 1027 : 1000) : {};
    return reply(200, { task: { status: arkWords[state], ...content, ...failure } });
  },
  missing: minimaxError(400, "invalid task_id"),
  cancel: {
    ...{ method: "DELETE", path: /^\/v2\/video_generation\/([\w-]+)$/, in: ["waiting"] },
    // The page in Chinese says cancelled, the page in English cancel. Of a task that has ended, the record is deleted.
    deletes: "ended",
    answer: ({ state }, isOther) => {
      const cancelled = isOther ? "cancel" : "cancelled";
      return reply(200, { action: state === "cancelled" ? cancelled : "delete" });
    },
  },
  ...{ expires: true, linkMs: dayMs, recordMs: 7 * dayMs },
  free: { "/v2/query/video_generation": reply(200, { tasks: [], total: 0 }) },
  // docs.comfy.org: asked for again, the URL is fresh.
  hasFreshLinks: true,
  answers: {
    refusedInput: baseResp(1026),
    empty: baseResp(1008),
    busy: baseResp(1002),
    denied: baseResp(1004),
    unsure: baseResp(1000),
    down,
  },
};

function minimaxError(status: number, message: string): Answer {
  const details = { type: "invalid_request_error", message, http_code: String(status) };
  return reply(status, { type: "error", error: details });
}

/** Version 1 answers 200 to everything, also on a look: its page errorcode. */
function baseResp(status_code: number): Answer {
  return reply(200, { base_resp: { status_code, status_msg: "in words of the service" } });
}

const hailuoWords: Words = {
  ...{ waiting: "Queueing", running: "Processing", done: "Success" },
  ...{ refused: "Fail", failed: "Fail", cancelled: "Fail" },
};
/** MiniMax's pages video-generation-query, file-management-retrieve and errorcode. */
const hailuo: Facts = {
  ...minimax,
  // Its ids are int64, which a number of JavaScript cannot hold.
  ...{ hasLongIds: true, expires: false, free: {} },
  create: /^\/v1\/video_generation$/,
  faultOf: ({ duration }) => secondsFault(duration, [6, 10]),
  invalid: () => baseResp(2013),
  look: /^\/v1\/query\/video_generation$/,
  idOf: ({ query }) => query.get("task_id") ?? query.get("file_id") ?? "",
  told: ({ id, state }) => {
    if (state === "refused") return baseResp(1027);
    const file = state === "done" ? `"file_id":${id},` : "";
    return replyText(
      200,
      `{${file}"status":"${hailuoWords[state]}","base_resp":{"status_code":0}}`,
    );
  },
  missing: baseResp(2013),
  cancel: undefined,
  result: {
    path: /^\/v1\/files\/retrieve$/,
    answer: ({ url }) => reply(200, { file: { download_url: url }, base_resp: { status_code: 0 } }),
  },
};

/** MiniMax's page music-generation: the answer comes when the music is made. */
const music: Facts = {
  ...minimax,
  ...{ makes: "sound", isWithin: true, expires: false, free: {}, cancel: undefined },
  create: /^\/v1\/music_generation$/,
  faultOf: ({ output_format }) => (output_format === "url" ? undefined : "hex is not wanted here"),
  told: ({ state, url }) => {
    if (state === "refused") return baseResp(1026);
    if (state === "failed") return baseResp(1000);
    return reply(200, { data: { audio: url, status: 2 }, base_resp: { status_code: 0 } });
  },
};

const klingWords: Words = {
  ...{ waiting: "submitted", running: "processing", done: "succeed" },
  ...{ refused: "failed", failed: "failed", cancelled: "failed" },
};
const klingCode = (status: number, value: number) =>
  reply(status, { code: value, message: "in words of the service", request_id: "r" });

/** A copy of kling.ai's General Information page, vercel/ai, and new-api. */
const kling: Facts = {
  ...{ makes: "video", base: "", key: { issuer: tokenIssuer, denied: klingCode(401, 1004) } },
  create: /^\/v1\/videos\/(text2video|image2video)$/,
  faultOf: ({ duration, image, image_tail }, way) => {
    // The duration is a text, and images are bare base64.
    if (typeof duration !== "string") return "duration";
    if ([image, image_tail].some((one) => String(one).startsWith("data:"))) return "image";
    return way === "image2video" && image === undefined ? "image" : undefined;
  },
  invalid: () => klingCode(400, 1201),
  created: ({ id }) => ({ code: 0, data: { task_id: id, task_status: "submitted" } }),
  // A task of one way is not known under another.
  look: /^\/v1\/videos\/(text2video|image2video)\/([\w-]+)$/,
  told: ({ id, state, url }) => {
    const said =
      state === "refused" ? { task_status_msg: "Failure to pass the risk control system" } : {};
    const result = state === "done" ? { task_result: { videos: [{ id, url }] } } : {};
    const data = { task_id: id, task_status: klingWords[state], ...said, ...result };
    return reply(200, { code: 0, data });
  },
  missing: klingCode(404, 1203),
  // Its page: external_task_id is unique in an account. Whether a second one is refused has no source.
  ourId: ({ external_task_id: id }) => (typeof id === "string" ? id : undefined),
  isTaken: klingCode(400, 1201),
  linkMs: 30 * dayMs,
  answers: {
    refusedInput: klingCode(400, 1301),
    empty: klingCode(429, 1102),
    busy: klingCode(429, 1303),
    unsure: klingCode(500, 5000),
    down: klingCode(503, 5001),
  },
};

/** The facts of each service, by its upstream's name in deploy/catalogs. */
export const declaredFacts = {
  ...{ xai, ark, minimax, hailuo, "minimax-music": music, kling, ...moreFacts },
} satisfies Record<string, Facts>;

export type DeclaredName = keyof typeof declaredFacts;
