import { readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parse } from "yaml";
import { comfyCalls } from "../../services/upstreams/comfyui/calls.fixture.ts";

/** Doubles that are a run's upstreams, by their origins. A second one of a protocol is the fallback of the first. */
export interface Outside {
  fal?: readonly string[];
  replicate?: readonly string[];
  comfyui?: readonly string[];
  /** Base URLs of servers with OpenAI's images. */
  images?: readonly string[];
  /** The catalog's value for lost answers of fal and Replicate. Default: none. */
  lostAnswer?: "again" | "fail";
  /** Jobs that one process may have at one upstream at once. */
  maxConcurrent: number;
}

/** Models of the catalog by kind. Where there are others too, those at ComfyUI have names of their own. */
export const models = { image: "image-1", video: "svc-video-1-5", music: "music-1" } as const;
export const gpuModels = { image: "gpu-image", video: "gpu-video", music: "gpu-music" } as const;
/** The model of OpenAI's images. */
export const imagesModel = "plain-image";

/**
 * Writes the catalog of a run into a folder: the shipped models of fal or Replicate, and one model of each kind at ComfyUI, with its
 * workflow. Answers the file, which the processes of the run share.
 */
export async function writeCatalog(
  folder: string,
  { fal = [], replicate = [], comfyui = [], images = [], lostAnswer, maxConcurrent }: Outside,
): Promise<string> {
  const at = (protocol: string, origins: readonly string[], more: object) =>
    origins.map((baseUrl, i) => [
      `${protocol}-${i}`,
      { protocol, baseUrl, maxConcurrent, apiKeyEnv: "KEY", ...more },
    ]);
  const upstreams = Object.fromEntries([
    ...at("fal", fal, { references: "upload", lostAnswer }),
    ...at("replicate", replicate, { references: "upload", lostAnswer }),
    ...at("comfyui", comfyui, {}),
    ...at("openai", images, {}),
  ]);
  const ids = fal.length > 0 ? gpuModels : models;
  const all = [
    ...shippedModels("fal", fal),
    ...shippedModels("replicate", replicate),
    ...(comfyui.length > 0 ? comfyModels(ids) : []).map((model) => ({
      ...model,
      ...among("comfyui", comfyui),
      default: fal.length === 0,
    })),
    ...(images.length > 0 ? [{ ...plainImages, ...among("openai", images) }] : []),
  ];
  for (const [name, text] of Object.entries(workflows)) await writeFile(join(folder, name), text);
  const path = join(folder, "catalog.yaml");
  await writeFile(path, JSON.stringify({ upstreams, models: all }));
  return path;
}

function among(protocol: string, origins: readonly string[]) {
  const [upstream, ...fallbackUpstreams] = origins.map((_, i) => `${protocol}-${i}`);
  return { upstream, ...(fallbackUpstreams.length > 0 ? { fallbackUpstreams } : {}) };
}

/** Shipped models, but every model gets the job's seed, and the default video model makes the videos of the runs. */
function shippedModels(protocol: "fal" | "replicate", origins: readonly string[]): object[] {
  if (origins.length === 0) return [];
  const file = new URL(`../../deploy/catalogs/${protocol}.yaml`, import.meta.url);
  const { models: shipped } = parse(readFileSync(file, "utf8"));
  return shipped.map((model: ShippedModel) => {
    const calls = "input" in model.call ? [model.call] : Object.values(model.call);
    for (const call of calls) Object.assign(call.input as object, { seed: "${seed}" });
    const isFilm = model.kind === "video" && model.default;
    return { ...model, ...(isFilm ? film : {}), ...among(protocol, origins) };
  });
}

interface ShippedModel {
  kind: string;
  default?: boolean;
  call: Record<string, { input: object }>;
}

/** The video model of the runs. */
const film = {
  id: models.video,
  videoOptions: [{ durationSeconds: 6, resolution: "480p", modes: ["t2v", "i2v"], credits: 45 }],
};

const plainImages = {
  ...{ id: imagesModel, kind: "image", creditPrice: 5, sizes: ["1024x1024"], maxImages: 4 },
};

const workflows = {
  "image.json": comfyCalls.image.workflow,
  "video.json": comfyCalls.video.workflow,
  "music.json": comfyCalls.music.workflow,
};

/** One of each kind, with the options of the runs. */
function comfyModels(ids: Record<keyof typeof models, string>): object[] {
  const call = (kind: keyof typeof comfyCalls, more: object = {}) => {
    const { input, output } = comfyCalls[kind];
    return { workflow: `${kind}.json`, output, input: { ...JSON.parse(input), ...more } };
  };
  const shapes = { availableAspectRatios: ["auto", "16:9", "9:16", "1:1"] };
  return [
    {
      ...{ id: ids.image, kind: "image", creditPrice: 5, sizes: ["1024x1024"], maxImages: 4 },
      call: call("image"),
    },
    {
      ...{ id: ids.video, kind: "video", maxReferences: 1, ...shapes },
      videoOptions: [{ durationSeconds: 6, resolution: "480p", modes: ["i2v"], credits: 45 }],
      call: { i2v: call("video", { "50.length": { $map: "${seconds}", 6: 97 } }) },
    },
    {
      ...{ id: ids.music, kind: "music", creditPrice: 20 },
      call: call("music"),
    },
  ];
}
