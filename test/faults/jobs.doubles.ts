import { type Clock, systemClock } from "#kit/time/clock.ts";
import { startScriptedMediaUpstream } from "../support/scripted-media-upstream.ts";
import type { ComfyDouble } from "../support/upstreams/comfyui.ts";
import { type ComfyOptions, startComfy } from "../support/upstreams/comfyui.ts";
import { bytesMade, sampleOutputs } from "../support/upstreams/double.ts";
import { type FalDouble, type FalGeneration, startFal } from "../support/upstreams/fal.ts";
import { type ReplicateDouble, startReplicate } from "../support/upstreams/replicate.ts";
import { upstreamKey } from "./jobs.drivers.ts";
import { endless, impossible } from "./jobs.upstream.ts";

/** A double of fal with models like the real ones. Music with the title that no model can make fails. */
export async function startFalDouble(): Promise<FalDouble> {
  const fal = await startFal({ key: upstreamKey });
  fal.usual.output = (generation) => outputOf(fal, generation);
  return fal;
}

/** A double of Replicate with the same rules. */
export async function startReplicateDouble(): Promise<ReplicateDouble> {
  const replicate = await startReplicate({ key: upstreamKey });
  replicate.usual.output = (urls, prediction) => (isImpossible(prediction) ? [] : urls);
  return replicate;
}

/** A server with OpenAI's images. A request takes `takesMs` by `clock`, and its answer has the images. */
export interface ImagesDouble extends AsyncDisposable {
  baseUrl: string;
  /** Prompts of the requests that it has done or begun, in the order of arrival. */
  prompts: string[];
  /** Sets the clock of its requests. */
  follow(clock: Pick<Clock, "sleep">): void;
}

/** Starts a double. */
export async function startImagesDouble({ takesMs }: { takesMs: number }): Promise<ImagesDouble> {
  const outputs = await sampleOutputs();
  const server = await startScriptedMediaUpstream("openai", outputs);
  const prompts: string[] = [];
  let clock: Pick<Clock, "sleep"> = systemClock;
  server.always("POST /images/generations", {
    kind: "custom",
    async handle({ body }, response) {
      const { prompt, n = 1 } = body as { prompt: string; n?: number };
      prompts.push(prompt);
      await clock.sleep(takesMs);
      const made = bytesMade("image", n, outputs);
      const data = made.map((bytes) => ({ b64_json: Buffer.from(bytes).toString("base64") }));
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify({ created: 0, data }));
    },
  });
  return {
    baseUrl: server.baseUrl,
    prompts,
    follow(next) {
      clock = next;
    },
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

/** Does a request ask for something that no model can make? */
export function isImpossible({ input }: Pick<FalGeneration, "input">): boolean {
  return typeof input.prompt === "string" && input.prompt.startsWith(impossible);
}

function outputOf({ files, outputs }: FalDouble, generation: FalGeneration): object {
  const { model, input } = generation;
  if (isImpossible(generation)) return {};
  const of = (bytes: Uint8Array, type: string) => ({ url: files.add({ bytes, type }) });
  if (/video|seedance/.test(model)) return { video: of(outputs.video, "video/mp4") };
  if (/music/.test(model)) return { audio: of(outputs.sound, "audio/mpeg") };
  const [image = Buffer.alloc(0)] = outputs.images;
  return { images: Array.from({ length: input.num_images }, () => of(image, "image/png")) };
}

/** A double of ComfyUI where music with some titles fails, or never ends. */
export async function startComfyDouble(options: ComfyOptions = {}): Promise<ComfyDouble> {
  const comfy = await startComfy({ key: upstreamKey, ...options });
  comfy.usual.of = (graph) => {
    const tags = String(graph["14"]?.inputs.tags ?? "");
    if (tags.startsWith(impossible)) return { failure: { message: "no", type: "ValueError" } };
    return tags.startsWith(endless) ? { pace: "looks", steps: 1_000_000 } : {};
  };
  return comfy;
}

/** Generations that the doubles accepted, with or without an answer, by the seed that identifies the job. An operator pays for these. */
export function createdBySeed({
  fal = [],
  comfyui = [],
  replicate = [],
}: {
  fal?: readonly FalDouble[];
  comfyui?: readonly ComfyDouble[];
  replicate?: readonly ReplicateDouble[];
}): Map<number, string[]> {
  const created = new Map<number, string[]>();
  const add = (seed: unknown, where: string) => {
    const key = Number(seed);
    created.set(key, [...(created.get(key) ?? []), where]);
  };
  for (const { origin, generations } of fal) {
    for (const { input, model } of generations) add(input.seed, `${model} at ${origin}`);
  }
  for (const { origin, predictions } of replicate) {
    for (const { input, model } of predictions) add(input.seed, `${model} at ${origin}`);
  }
  for (const { origin, runs } of comfyui) {
    for (const { graph, state } of runs) add(graph["3"]?.inputs.seed, `${state} at ${origin}`);
  }
  return created;
}
