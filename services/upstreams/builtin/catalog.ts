// Refuses a catalog whose built-in models offer an image or a video that the built-in renderer cannot make.

import { eachValid, type FoundFault, whereValid } from "#kit/base/valid-parts.ts";
import type { At, OfferedModel } from "../catalog-rules.ts";

/** The limits of the built-in renderer. A job beyond them could only fail. */
const builtin = {
  videoSeconds: 30,
  /** Pixels of a video's shorter side. */
  videoSide: 1080,
  /** Pixels of an image's side, and of its area. */
  leastSide: 16,
  longestSide: 5_120,
  area: 8_388_608,
  resolutions: ["1k", "2k", "480p", "720p", "1080p"],
} as const;

/** Faults where a model offers output that the built-in renderer cannot make. */
export function builtinFaults(model: OfferedModel, at: At): FoundFault[] {
  if (model.kind === "image") return imageFaults(model, at);
  return model.kind === "video" ? videoFaults(model, at) : [];
}

function videoFaults(model: OfferedModel, at: At): FoundFault[] {
  const tooLong = whereValid(() =>
    eachValid(model.videoOptions ?? [], ({ durationSeconds }, index) => {
      if (durationSeconds <= builtin.videoSeconds) return [];
      const path = at("videoOptions", index, "durationSeconds");
      return [{ path, message: `the builtin upstream makes at most ${builtin.videoSeconds}` }];
    }),
  );
  const tooLarge = whereValid(() =>
    eachValid(model.videoOptions ?? [], ({ resolution }, index) => {
      if (Number.parseInt(resolution, 10) <= builtin.videoSide) return [];
      const path = at("videoOptions", index, "resolution");
      return [{ path, message: `the builtin upstream makes at most ${builtin.videoSide}p` }];
    }),
  );
  return [...tooLong, ...tooLarge];
}

function imageFaults(model: OfferedModel, at: At): FoundFault[] {
  const sizes = whereValid(() =>
    eachValid(model.sizes ?? [], (size, index) => {
      const [width = 0, height = 0] = size.split("x").map(Number);
      const sides = [width, height].every(
        (side) => side >= builtin.leastSide && side <= builtin.longestSide,
      );
      if (sides && width * height <= builtin.area) return [];
      return [{ path: at("sizes", index), message: "the builtin upstream makes no such size" }];
    }),
  );
  const known: readonly string[] = builtin.resolutions;
  const resolutions = whereValid(() =>
    eachValid(model.resolutions ?? [], (resolution, index) => {
      if (known.includes(resolution.toLowerCase())) return [];
      const message = `the builtin upstream makes ${known.join(", ")}`;
      return [{ path: at("resolutions", index), message }];
    }),
  );
  return [...sizes, ...resolutions];
}
