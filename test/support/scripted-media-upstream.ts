import { createHash } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { type SoundFormat, soundTypes } from "#kit/sound/formats.ts";
import { sampleSound } from "../../services/upstreams/media/samples.fixture.ts";
import type { Behaviour } from "./scripted-behaviours.ts";
import { type SeenRequest, startScriptedUpstream } from "./scripted-upstream.ts";

/** The outputs of good answers. A test may change them at any time. */
export interface MediaOutputs {
  /** Used in turn. */
  images: Uint8Array[];
  video: Uint8Array;
  /** Music and speech. */
  sound: Uint8Array;
}

/** The form of good answers. A test may change it at any time. */
export interface MediaWording {
  outputs: MediaOutputs;
  /** OpenAI: images in base64 (default), or as URLs. */
  imagesAs: "b64_json" | "url";
  /** Looks that find a task running, before it is done. Default 2. */
  runningLooks: number;
  /** The beginning of URLs in answers, up to and with /v1. Default: the base URL. */
  publicBase: string;
}

/**
 * A media upstream that speaks OpenAI's API or genmesh's own, over real HTTP. Routes are written like `POST /videos`: without /v1, and with
 * `*` in the place of an id.
 */
export interface ScriptedMediaUpstream extends AsyncDisposable {
  /** Ends in /v1. */
  baseUrl: string;
  wording: MediaWording;
  /** Every request in the order of arrival. */
  requests: SeenRequest[];
  /** The requests of one route. */
  seen(route: string): SeenRequest[];
  /** The behaviours for the next requests of a route, one each. Later ones get good answers again. */
  next(route: string, ...behaviours: Behaviour[]): void;
  /** The behaviour for every request of a route from now on. Undefined: a good answer. */
  always(route: string, behaviour: Behaviour | undefined): void;
  /** Resolves with the `n`th request of all (from 1) once it has arrived. */
  request(n: number): Promise<SeenRequest>;
  /** Connections that are open now. */
  openConnections(): number;
}

/** Starts an upstream on a free loopback port (or on `port`). */
export async function startScriptedMediaUpstream(
  protocol: "openai" | "genmesh",
  outputs: MediaOutputs,
  { port = 0 } = {},
): Promise<ScriptedMediaUpstream> {
  const server = await startScriptedUpstream({ port });
  const { baseUrl, requests } = server;
  const wording: MediaWording = {
    outputs,
    imagesAs: "b64_json",
    runningLooks: 2,
    publicBase: baseUrl,
  };
  const queues = new Map<string, Behaviour[]>();
  const standing = new Map<string, Behaviour>();
  const answer = protocol === "openai" ? openAiAnswers(wording) : genmeshAnswers(wording);
  server.script((seen) => {
    const route = routeOf(seen);
    return queues.get(route)?.shift() ?? standing.get(route) ?? answer(route, seen);
  });
  return {
    baseUrl,
    wording,
    requests,
    seen: (route) => requests.filter((seen) => routeOf(seen) === route),
    next: (route, ...behaviours) => {
      queues.set(route, [...(queues.get(route) ?? []), ...behaviours]);
    },
    always: (route, behaviour) => {
      if (behaviour) standing.set(route, behaviour);
      else standing.delete(route);
    },
    request: server.request,
    openConnections: server.openConnections,
    [Symbol.asyncDispose]: server.close,
  };
}

/** The form in a request's body. */
export function formOf(seen: SeenRequest): Promise<FormData> {
  const headers = { "content-type": seen.headers["content-type"] ?? "" };
  return new Response(new Uint8Array(seen.raw), { headers }).formData();
}

/** An answer of bytes. With `cutAfter` the socket is destroyed after that many bytes. With `hangAfter` no byte follows them. */
export function bytesAnswer(
  bytes: Uint8Array,
  type: string,
  { cutAfter, hangAfter }: { cutAfter?: number; hangAfter?: number } = {},
): Behaviour {
  return {
    kind: "custom",
    async handle(_seen, response) {
      response.writeHead(200, { "content-type": type, "content-length": bytes.length });
      const stop = cutAfter ?? hangAfter;
      if (stop === undefined) return void response.end(bytes);
      response.write(bytes.subarray(0, stop));
      if (cutAfter === undefined) return;
      // The written bytes must arrive before the cut.
      await delay(20);
      response.socket?.destroy();
    },
  };
}

/** A redirect. */
export function redirectTo(location: string): Behaviour {
  return {
    kind: "custom",
    handle(_seen, response) {
      response.writeHead(302, { location });
      response.end();
    },
  };
}

type Answers = (route: string, seen: SeenRequest) => Behaviour;

function routeOf({ method, path }: SeenRequest): string {
  const names =
    /^\/(v1|images|videos|music|audio|speech|transcriptions|embeddings|files|generations|cancel|edits|content|made)$/;
  const parts = path.match(/\/[^/]*/g) ?? [];
  const route = parts.map((part) => (names.test(part) ? part : "/*")).join("");
  return `${method} ${route.replace(/^\/v1/, "")}`;
}

/** The part of a path that is an id: its last. */
function idOf(path: string): string {
  return path.split("/").findLast((part) => part.includes("_")) ?? "";
}

const unknownRoute: Behaviour = { kind: "status", status: 404, code: "unknown_route" };

function openAiAnswers(wording: MediaWording): Answers {
  const looks = new Map<string, number>();
  let images = 0;
  const nextImage = () => wording.outputs.images[images++ % wording.outputs.images.length];
  const made = new Map<string, Uint8Array>();
  const image = () => {
    const bytes = nextImage() ?? new Uint8Array();
    if (wording.imagesAs === "b64_json") return { b64_json: Buffer.from(bytes).toString("base64") };
    const id = `image_${images}.png`;
    made.set(id, bytes);
    return { url: `${wording.publicBase}/made/${id}` };
  };
  const video = (id: string, look: number, fields: object = {}) => {
    const isDone = look > wording.runningLooks;
    const status = isDone ? "completed" : look === 0 ? "queued" : "in_progress";
    const progress = isDone ? 100 : Math.floor((100 * look) / (wording.runningLooks + 1));
    return { id, object: "video", created_at: 1, error: null, status, progress, ...fields };
  };
  return (route, seen) => {
    switch (route) {
      case "POST /images/generations":
        return imagesAnswer(Array.from({ length: seen.body?.n ?? 1 }, image));
      case "POST /images/edits":
        return {
          kind: "custom",
          async handle(request, response) {
            const n = Number((await formOf(request)).get("n") ?? 1);
            response.setHeader("content-type", "application/json");
            response.end(JSON.stringify({ created: 1, data: Array.from({ length: n }, image) }));
          },
        };
      case "GET /made/*":
        return bytesAnswer(made.get(idOf(seen.path)) ?? new Uint8Array(), "image/png");
      case "POST /videos": {
        const id = `video_up_${looks.size + 1}`;
        looks.set(id, 0);
        return { kind: "json", body: video(id, 0) };
      }
      case "GET /videos/*": {
        const id = idOf(seen.path);
        const look = (looks.get(id) ?? 0) + 1;
        looks.set(id, look);
        return { kind: "json", body: video(id, look) };
      }
      case "GET /videos/*/content":
        return bytesAnswer(wording.outputs.video, "video/mp4");
      case "POST /audio/speech":
        return spokenAnswer(wording, seen);
      case "POST /embeddings":
        return vectorsAnswer(seen);
      default:
        return unknownRoute;
    }
  };
}

/** One vector for each input. A text is one input, and so is a list of tokens. */
function vectorsAnswer({ body }: SeenRequest): Behaviour {
  const { input } = body;
  const inputs = Array.isArray(input) && typeof input[0] !== "number" ? input : [input];
  const data = inputs.map((_, index) => ({ object: "embedding", index, embedding: [0.5] }));
  const usage = { prompt_tokens: 1, total_tokens: 1 };
  return { kind: "json", body: { object: "list", model: "m", data, usage } };
}

function imagesAnswer(data: object[]): Behaviour {
  return { kind: "json", body: { created: 1, data } };
}

interface GenmeshJob {
  id: string;
  area: string;
  count: number;
  looks: number;
  isCancelled: boolean;
}

function genmeshAnswers(wording: MediaWording): Answers {
  const jobs = new Map<string, GenmeshJob>();
  /** Answers by idempotency key. The same key gets the same answer. */
  const kept = new Map<string, Behaviour>();
  const once = (seen: SeenRequest, make: () => Behaviour): Behaviour => {
    const key = seen.headers["idempotency-key"];
    if (typeof key !== "string") return make();
    const known = kept.get(key) ?? make();
    kept.set(key, known);
    return known;
  };
  const bytesOf = (area: string, index: number) => {
    const { images, video, sound } = wording.outputs;
    if (area === "images") return images[index % images.length] ?? new Uint8Array();
    return area === "videos" ? video : sound;
  };
  return (route, seen) => {
    const area = /^\w+ \/(\w+)/.exec(route)?.[1] ?? "";
    const rest = route.replace(/^(\w+) \/(images|videos|music)/, "$1 ");
    switch (rest) {
      case "POST /files":
        return once(seen, () => ({ kind: "json", body: { id: `file_up_${kept.size}` } }));
      case "DELETE /files/*":
        return { kind: "json", body: { id: idOf(seen.path), deleted: true } };
      case "POST /audio/speech":
        return once(seen, () => spokenAnswer(wording, seen));
      case "POST /speech/generations":
        return once(seen, () => speechAnswer(wording, seen));
      case "GET /speech/generations/*/files/*":
        return bytesAnswer(wording.outputs.sound, "audio/mpeg");
      case "POST /generations":
        return once(seen, () => {
          const id = `job_up_${jobs.size + 1}`;
          jobs.set(id, { id, area, count: seen.body?.n ?? 1, looks: 0, isCancelled: false });
          const statusUrl = `${wording.publicBase}/${area}/generations/${id}`;
          return {
            kind: "json",
            status: 202,
            body: { id, jobId: id, status: "queued", statusUrl },
          };
        });
      case "GET /generations/*": {
        const job = jobs.get(idOf(seen.path));
        if (!job) return { kind: "status", status: 404, code: "job_not_found" };
        job.looks++;
        return { kind: "json", body: jobDocument(wording, job, bytesOf) };
      }
      case "POST /generations/*/cancel": {
        const job = jobs.get(idOf(seen.path));
        if (!job) return { kind: "status", status: 404, code: "job_not_found" };
        job.isCancelled = true;
        return { kind: "json", body: jobDocument(wording, job, bytesOf) };
      }
      case "GET /generations/*/files/*": {
        const index = Number(idOf(seen.path).split("_").at(-1));
        return bytesAnswer(bytesOf(area, index), typeOf(area));
      }
      default:
        return unknownRoute;
    }
  };
}

function jobDocument(
  wording: MediaWording,
  { id, area, count, looks, isCancelled }: GenmeshJob,
  bytesOf: (area: string, index: number) => Uint8Array,
): object {
  if (isCancelled) {
    const error = { message: "", type: "invalid_request_error", code: "job_cancelled" };
    return { id, status: "failed", terminal: true, progress: 0, error };
  }
  if (looks <= wording.runningLooks) {
    const progress = Math.floor((100 * looks) / (wording.runningLooks + 1));
    return { id, status: "running", terminal: false, progress, error: null };
  }
  const items = Array.from({ length: count }, (_, index) => {
    const bytes = bytesOf(area, index);
    const fileId = `file_up_${index}`;
    return {
      id: fileId,
      url: `${wording.publicBase}/${area}/generations/${id}/files/${fileId}`,
      mimeType: typeOf(area),
      sizeBytes: bytes.length,
      sha256: createHash("sha256").update(bytes).digest("hex"),
    };
  });
  const field = area === "music" ? "clips" : area;
  return { id, status: "completed", terminal: true, progress: 100, error: null, [field]: items };
}

/** The bytes of speech. Formats other than MP3 get silence. */
function spokenAnswer({ outputs }: MediaWording, { body }: SeenRequest): Behaviour {
  const format = (body?.response_format ?? "mp3") as SoundFormat;
  const sound = format === "mp3" ? outputs.sound : sampleSound(format);
  return bytesAnswer(sound, soundTypes[format]);
}

function speechAnswer({ publicBase, outputs }: MediaWording, seen: SeenRequest): Behaviour {
  const id = "speech_up_1";
  const audio = {
    id: "file_up_0",
    url: `${publicBase}/speech/generations/${id}/files/file_up_0`,
    mimeType: "audio/mpeg",
    sizeBytes: outputs.sound.length,
    durationSeconds: 2,
  };
  return { kind: "json", body: { id, object: "speech", model: seen.body?.model, audio } };
}

function typeOf(area: string): string {
  return area === "images" ? "image/png" : area === "videos" ? "video/mp4" : "audio/mpeg";
}
