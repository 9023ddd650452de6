// Makes the inputs that a model's call would send, one for each choice that the catalog offers. Checks compare them with
// descriptions.

import { isJsonObject, type JsonObject } from "#kit/base/json.ts";
import { fill, type Template } from "#kit/template/template.ts";
import {
  type ImageSpec,
  type Model,
  type ModelCall,
  NativeAudio,
  VideoMode,
  type VideoSpec,
} from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { valuesOf } from "../by-template/values.ts";
import type { GenerationRequest } from "../media/port.ts";

/** A sample reference. Upstreams get data URIs or addresses of uploads, and a description tells neither from the other. */
const reference = "data:image/png;base64,iVBORw0KGgo=";
/** Side of an image of a model without sizes. */
const usualSide = 1024;
/** The id of a sample job. */
export const sampleJob = "job_sample";
const extras = { seed: 1, negativePrompt: "blurred" } as const;

type Of<K extends GenerationRequest["kind"]> = Extract<GenerationRequest, { kind: K }>;

/** A generation that a model offers, and the number of its references. */
interface Offered {
  request: GenerationRequest;
  references: number;
}

/** The inputs that a model's call would send for the model's offers: each choice of a caller in turn. */
export function inputsOf(model: Model, call: ModelCall): JsonObject[] {
  const template: Template = JSON.parse(call.input);
  return offeredBy(model, call.mode).flatMap(({ request, references }) => {
    const urls = Array.from({ length: references }, () => reference);
    const shapes = urls.map(() => ({
      ...{ mimeType: "image/png", width: usualSide, height: usualSide },
      open: () => Promise.reject(new Error("a sample has no bytes")),
    }));
    const named = { model: call.model, job: sampleJob };
    const values = valuesOf({ request, jobId: sampleJob, references: shapes }, urls);
    const input = fill(template, { ...values, ...named });
    return isJsonObject(input) ? [input] : [];
  });
}

function offeredBy({ spec }: Model, mode: string): Offered[] {
  switch (spec.case) {
    case "image":
      return picturesOf(spec.value);
    case "video":
      return filmsOf(spec.value, mode);
    case "music":
      return [musicOf("instrumental"), musicOf("lyrics")];
    default:
      return [];
  }
}

function picturesOf(spec: ImageSpec): Offered[] {
  const { sizes, resolutions, aspectRatios, maxImages, maxReferences, masks } = spec;
  const usual: Of<"image"> = {
    ...{ kind: "image", prompt: "a red boat", count: 1, width: usualSide, height: usualSide },
    ...{ size: undefined, resolution: undefined, aspectRatio: undefined, ...extras },
  };
  const requests: Of<"image">[] = [
    usual,
    { ...usual, count: maxImages || 1 },
    ...sizes.map((size) => ({ ...usual, size, ...sidesOf(size) })),
    ...resolutions.map((resolution) => ({ ...usual, resolution })),
    ...aspectRatios.map((aspectRatio) => ({ ...usual, aspectRatio })),
  ];
  const counts = maxReferences > 0 ? [0, 1, maxReferences] : [0];
  const offered = requests.flatMap((request) =>
    counts.map((references) => ({ request, references })),
  );
  // The mask is the last of the references.
  const masked = { request: { ...usual, hasMask: true }, references: maxReferences + 1 };
  return masks ? [...offered, masked] : offered;
}

/** Every row in one shape, and the first row in all shapes. A call without a mode serves a video from text, and from references. */
function filmsOf(spec: VideoSpec, mode: string): Offered[] {
  if (mode === "") return [...filmsOf(spec, "t2v"), ...filmsOf(spec, "i2v")];
  const { options, aspectRatios, maxReferences, nativeAudio } = spec;
  const isFromText = mode === "t2v";
  const ofMode = isFromText ? VideoMode.T2V : VideoMode.I2V;
  const rows = options.filter((row) => row.active && row.modes.includes(ofMode));
  const counts = isFromText ? [0] : mode === "i2v" ? [1, maxReferences] : [2];
  return rows.flatMap(({ durationSeconds, resolution }, index) =>
    aspectRatios.slice(0, index === 0 ? undefined : 1).flatMap((aspectRatio) => {
      const request: Of<"video"> = {
        ...{ kind: "video", prompt: "waves", mode: isFromText ? "t2v" : "i2v" },
        ...{ durationSeconds, resolution, aspectRatio, ...extras },
        audio: nativeAudio >= NativeAudio.MONO ? "mono" : "none",
        firstLastFrame: mode === "firstLast",
      };
      return counts.map((references) => ({ request, references }));
    }),
  );
}

function musicOf(mode: Of<"music">["mode"]): Offered {
  const lyrics = mode === "lyrics" ? "The sea is calm tonight" : undefined;
  const request: Of<"music"> = {
    ...{ kind: "music", mode, title: "Tides", description: "slow", lyrics, ...extras },
  };
  return { request, references: 0 };
}

function sidesOf(size: string): { width: number; height: number } {
  const [width = usualSide, height = usualSide] = size.split("x").map(Number);
  return { width, height };
}
