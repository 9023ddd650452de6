import type { FaultPath, FoundFault } from "./faults.ts";
import type { CatalogModel, CatalogModelOf } from "./schema-model.ts";
import { eachSound, whereSound } from "./sound-part.ts";

/** What the built-in renderer can make. More would be a job that can only fail. */
const builtin = {
  references: 7,
  videoSeconds: 30,
  /** Pixels of a video's shorter side. */
  videoSide: 1080,
  /** Pixels of a picture's side, and of its area. */
  leastSide: 16,
  longestSide: 5_120,
  area: 8_388_608,
  resolutions: ["1k", "2k", "480p", "720p", "1080p"],
} as const;

/** References of a video at OpenAI's `/videos`: the first frame. */
const openAiVideoReferences = 1;

type At = (...rest: FaultPath) => FaultPath;

/** What a model offers that one of its upstreams cannot make, the fallbacks included. */
export function driverFaults(
  model: CatalogModel,
  protocols: readonly string[],
  at: At,
): FoundFault[] {
  const isBuiltin = protocols.includes("builtin");
  if (model.kind === "image") return isBuiltin ? builtinImageFaults(model, at) : [];
  if (model.kind !== "video") return [];
  const most = protocols.includes("openai") ? openAiVideoReferences : undefined;
  const tooMany = whereSound(() =>
    most !== undefined && model.maxReferences > most
      ? [{ path: at("maxReferences"), message: "an openai upstream takes one reference" }]
      : [],
  );
  return [...tooMany, ...(isBuiltin ? builtinVideoFaults(model, at) : [])];
}

function referenceFaults({ maxReferences }: { maxReferences: number }, at: At): FoundFault[] {
  if (maxReferences <= builtin.references) return [];
  const message = `the builtin upstream takes at most ${builtin.references}`;
  return [{ path: at("maxReferences"), message }];
}

function builtinVideoFaults(model: CatalogModelOf<"video">, at: At): FoundFault[] {
  const tooLong = eachSound(model.videoOptions, ({ durationSeconds }, index) => {
    if (durationSeconds <= builtin.videoSeconds) return [];
    const path = at("videoOptions", index, "durationSeconds");
    return [{ path, message: `the builtin upstream makes at most ${builtin.videoSeconds}` }];
  });
  const tooLarge = eachSound(model.videoOptions, ({ resolution }, index) => {
    if (Number.parseInt(resolution, 10) <= builtin.videoSide) return [];
    const path = at("videoOptions", index, "resolution");
    return [{ path, message: `the builtin upstream makes at most ${builtin.videoSide}p` }];
  });
  return [...whereSound(() => referenceFaults(model, at)), ...tooLong, ...tooLarge];
}

function builtinImageFaults(model: CatalogModelOf<"image">, at: At): FoundFault[] {
  const sizes = eachSound(model.sizes, (size, index) => {
    const [width = 0, height = 0] = size.split("x").map(Number);
    const sides = [width, height].every(
      (side) => side >= builtin.leastSide && side <= builtin.longestSide,
    );
    if (sides && width * height <= builtin.area) return [];
    return [{ path: at("sizes", index), message: "the builtin upstream makes no such size" }];
  });
  const known: readonly string[] = builtin.resolutions;
  const resolutions = eachSound(model.resolutions, (resolution, index) => {
    if (known.includes(resolution.toLowerCase())) return [];
    const message = `the builtin upstream makes ${known.join(", ")}`;
    return [{ path: at("resolutions", index), message }];
  });
  return [...whereSound(() => referenceFaults(model, at)), ...sizes, ...resolutions];
}
