import { createHash } from "node:crypto";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import type { Webhook } from "#proto/genmesh/media/v1/media_service_pb.ts";
import { sampleMp3, sampleMp4, samplePng } from "../../services/upstreams/media/samples.fixture.ts";
import {
  type ScriptedMediaUpstream,
  startScriptedMediaUpstream,
} from "../support/scripted-media-upstream.ts";
import type { Behaviour } from "../support/scripted-upstream.ts";
import { until } from "../support/until.ts";
import type { Asked, Caller, PostOptions } from "./caller.ts";
import type { CatalogObject } from "./catalog.ts";
import { startWorld, type World, type WorldOptions } from "./world.ts";

/** First segment of the paths of a kind of job. */
export type Area = "images" | "videos" | "music";

// biome-ignore lint/suspicious/noExplicitAny: documents of every shape.
export type Document = any;

/** A {@link World} with media models whose upstream a test controls. */
export interface MediaWorld extends AsyncDisposable {
  world: World;
  media: ScriptedMediaUpstream;
  /** The upstream's image: 64 by 64. */
  png: Buffer;
}

/**
 * Starts a world. The shipped image, music and speech models and `svcalt-video-1-4` are rendered here, and `small-image` is too, with
 * 64x64. The scripted upstream has every other video model, `scripted-image` (1 credit, 64x64), `scripted-speech`, `scripted-vectors`,
 * `scripted-ears` and `text-only`.
 */
export async function startMediaWorld({
  models = [],
  contentCredentials,
  ...options
}: Omit<WorldOptions, "catalog"> & {
  /** Further models. */
  models?: CatalogObject["models"];
  contentCredentials?: object | undefined;
} = {}) {
  await using stack = new AsyncDisposableStack();
  const png = await samplePng(64, 64);
  const outputs = {
    images: [png],
    video: sampleMp4({ width: 854, height: 480 }),
    sound: sampleMp3(),
  };
  const media = stack.use(await startScriptedMediaUpstream("openai", outputs));
  media.wording.runningLooks = 0;
  const catalog = (usual: CatalogObject) => {
    const made = withMedia(usual, media.baseUrl);
    const signed = contentCredentials ? { contentCredentials } : {};
    return { ...made, models: [...made.models, ...models], ...signed };
  };
  const world = stack.use(await startWorld({ ...options, catalog }));
  const owned = stack.move();
  const made: MediaWorld = {
    world,
    media,
    png,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
  return made;
}

/** The usual models, and media models at a scripted upstream. */
export function withMedia(usual: CatalogObject, baseUrl: string): CatalogObject {
  const image = {
    kind: "image",
    creditPrice: 1,
    sizes: ["64x64", "96x64"],
    availableAspectRatios: ["auto", "1:1", "3:2"],
    maxReferences: 2,
  };
  const speech = {
    kind: "speech",
    voices: ["alloy"],
    formats: ["mp3", "opus", "aac", "flac", "wav", "pcm"],
    pricing: { usdMicrosPerMillionCharacters: 2_500_000 },
  };
  const vectors = {
    ...{ id: "scripted-vectors", kind: "embedding", maxInputTokens: 1_000 },
    pricing: { inputUsdMicrosPerMillionTokens: 1_000_000 },
  };
  const ears = {
    ...{ id: "scripted-ears", kind: "transcription" },
    pricing: { usdMicrosPerMinute: 60_000 },
  };
  const textOnly = {
    kind: "video",
    availableAspectRatios: ["auto"],
    videoOptions: [{ durationSeconds: 6, resolution: "480p", modes: ["t2v"], credits: 10 }],
  };
  // The references of a video for an openai upstream.
  const oneReference = { maxReferences: 1, firstLastFrame: false };
  const moved = usual.models.map((model) =>
    model.kind === "video" && model.id !== "svcalt-video-1-4"
      ? { ...model, upstream: "scripted", ...oneReference }
      : model,
  );
  return {
    ...usual,
    upstreams: {
      ...usual.upstreams,
      scripted: { protocol: "openai", baseUrl, apiKeyEnv: "UP_KEY" },
    },
    models: [
      ...moved,
      { ...image, id: "small-image", upstream: "studio" },
      { ...image, id: "scripted-image", upstream: "scripted" },
      { ...textOnly, id: "text-only", upstream: "scripted" },
      { ...speech, id: "scripted-speech", upstream: "scripted" },
      { ...vectors, upstream: "scripted" },
      { ...ears, upstream: "scripted" },
    ],
  };
}

/** More than the lease of a try and the first two pauses, and less than the third pause of two minutes. In ms. */
const longPauseMs = 60_000;

/**
 * Lets time pass until every webhook of the account has its next try more than a minute away, and gives them. A try within seconds after
 * that can only be a requested one. All must have failed once.
 */
export function pausedWebhooks(world: World, accountId: string): Promise<Webhook[]> {
  return until(
    "a long pause of the webhooks",
    async () => {
      const { webhooks } = await world.admin.media.listAccountWebhooks({ accountId });
      const dueAt = webhooks.map((one) => one.nextAttemptTime && timestampMs(one.nextAttemptTime));
      const inMs = Math.min(...dueAt.map((at) => (at ?? 0) - world.now()));
      if (inMs > longPauseMs) return webhooks;
      if (inMs > 0) await world.later(inMs);
      return undefined;
    },
    { everyMs: 50 },
  );
}

/** Submits a job. Rejects where it was not accepted. */
export async function submit(
  caller: Caller,
  area: Area,
  body: object,
  options?: PostOptions,
): Promise<Document> {
  const { status, text, json } = await caller.post(`/${area}/generations`, body, options);
  if (status !== 202) throw new Error(`not accepted: ${status} ${text}`);
  return json;
}

/** Polls a job's own status URL until its status is final. */
export function ended(caller: Caller, { statusUrl }: Document): Promise<Document> {
  const path = pathOf(caller, statusUrl);
  return until(
    "the job's end",
    async () => {
      const { json } = await caller.get(path);
      return json.terminal ? json : undefined;
    },
    { withinMs: 60_000, everyMs: 50 },
  );
}

/** The path of an answer's URL below the base URL. Rejects other URLs. */
export function pathOf({ baseUrl }: Pick<Caller, "baseUrl">, url: string): string {
  if (!url.startsWith(`${baseUrl}/`)) throw new Error(`not under ${baseUrl}: ${url}`);
  return url.slice(baseUrl.length);
}

/** Credits in the form of `GET /billing`. */
export async function creditsOf(caller: Caller): Promise<Document> {
  const { json } = await caller.get("/billing");
  return json.credits;
}

/** An answer of bytes. */
export interface Download {
  status: number;
  headers: Headers;
  bytes: Buffer;
}

/** Fetches a URL, or a path below the base URL, with the caller's key. */
export async function download(
  caller: Pick<Caller, "baseUrl" | "key">,
  target: string,
  { method = "GET", headers = {} }: { method?: string; headers?: Record<string, string> } = {},
): Promise<Download> {
  const url = target.startsWith("/") ? `${caller.baseUrl}${target}` : target;
  const response = await fetch(url, {
    method,
    headers: { authorization: `Bearer ${caller.key}`, ...headers },
  });
  const bytes = Buffer.from(await response.arrayBuffer());
  return { status: response.status, headers: response.headers, bytes };
}

/** The refusal of a download. */
export function askedOf({ status, headers, bytes }: Download): Asked {
  const text = bytes.toString();
  return { status, headers, text, json: text === "" ? undefined : JSON.parse(text) };
}

/** The fields of an upload. */
export interface UploadOptions {
  name?: string;
  /** Undefined leaves the field out. */
  purpose?: string | undefined;
  /** Sends the file before the purpose, like OpenAI's SDK. */
  isFileFirst?: boolean;
  idempotencyKey?: string;
}

/** Uploads a file as a multipart form. */
export async function upload(
  caller: Pick<Caller, "baseUrl" | "key">,
  bytes: Uint8Array,
  options: UploadOptions = {},
): Promise<Asked> {
  const { name = "picture.png", idempotencyKey } = options;
  const purpose = "purpose" in options ? options.purpose : "vision";
  const form = new FormData();
  const file = new Blob([new Uint8Array(bytes)]);
  if (options.isFileFirst) form.set("file", file, name);
  if (purpose !== undefined) form.set("purpose", purpose);
  if (!options.isFileFirst) form.set("file", file, name);
  const response = await fetch(`${caller.baseUrl}/files`, {
    method: "POST",
    body: form,
    headers: {
      authorization: `Bearer ${caller.key}`,
      ...(idempotencyKey === undefined ? {} : { "idempotency-key": idempotencyKey }),
    },
  });
  const text = await response.text();
  return { status: response.status, headers: response.headers, text, json: JSON.parse(text) };
}

/** Deletes a file. */
export async function remove(caller: Caller, fileId: string): Promise<Asked> {
  return askedOf(await download(caller, `/files/${fileId}`, { method: "DELETE" }));
}

export function sha256Of(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

/** Image requests that wait until `open` is called, and then get good answers. */
export function heldImages(png: Uint8Array): { behaviour: Behaviour; open: () => void } {
  const gate = Promise.withResolvers<void>();
  const image = { b64_json: Buffer.from(png).toString("base64") };
  return {
    open: gate.resolve,
    behaviour: {
      kind: "custom",
      async handle({ body }, response) {
        await gate.promise;
        const data = Array(body.n ?? 1).fill(image);
        response.setHeader("content-type", "application/json");
        response.end(JSON.stringify({ created: 1, data }));
      },
    },
  };
}

/** Two keys of one account that see their own jobs, and one that sees the account's. */
export async function threeKeys(world: Pick<World, "caller" | "withKey">) {
  const first = await world.caller({ usdMicros: 50_000_000n, credits: 100n });
  const second = await world.withKey(first, {});
  const all = await world.withKey(first, { scopes: [Scope.BILLING, Scope.USAGE_READ_ALL] });
  return { first, second, all };
}
