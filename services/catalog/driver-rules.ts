import type { FaultPath, FoundFault } from "./faults.ts";
import type { CatalogModel, CatalogModelOf } from "./schema-model.ts";

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
  const tooMany =
    most !== undefined && model.maxReferences > most
      ? [{ path: at("maxReferences"), message: "an openai upstream takes one reference" }]
      : [];
  return [...tooMany, ...(isBuiltin ? builtinVideoFaults(model, at) : [])];
}

function referenceFaults({ maxReferences }: { maxReferences: number }, at: At): FoundFault[] {
  if (maxReferences <= builtin.references) return [];
  const message = `the builtin upstream takes at most ${builtin.references}`;
  return [{ path: at("maxReferences"), message }];
}

function builtinVideoFaults(model: CatalogModelOf<"video">, at: At): FoundFault[] {
  const faults = referenceFaults(model, at);
  for (const [index, { durationSeconds, resolution }] of model.videoOptions.entries()) {
    if (durationSeconds > builtin.videoSeconds) {
      const path = at("videoOptions", index, "durationSeconds");
      faults.push({ path, message: `the builtin upstream makes at most ${builtin.videoSeconds}` });
    }
    if (Number.parseInt(resolution, 10) > builtin.videoSide) {
      const path = at("videoOptions", index, "resolution");
      faults.push({ path, message: `the builtin upstream makes at most ${builtin.videoSide}p` });
    }
  }
  return faults;
}

function builtinImageFaults(model: CatalogModelOf<"image">, at: At): FoundFault[] {
  const faults = referenceFaults(model, at);
  for (const [index, size] of model.sizes.entries()) {
    const [width = 0, height = 0] = size.split("x").map(Number);
    const sides = [width, height].every(
      (side) => side >= builtin.leastSide && side <= builtin.longestSide,
    );
    if (sides && width * height <= builtin.area) continue;
    faults.push({ path: at("sizes", index), message: "the builtin upstream makes no such size" });
  }
  const known: readonly string[] = builtin.resolutions;
  for (const [index, resolution] of model.resolutions.entries()) {
    if (known.includes(resolution.toLowerCase())) continue;
    const message = `the builtin upstream makes ${known.join(", ")}`;
    faults.push({ path: at("resolutions", index), message });
  }
  return faults;
}
