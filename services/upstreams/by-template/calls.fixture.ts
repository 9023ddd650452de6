// Calls of a catalog to fal and Replicate, for tests of their drivers.

import { create } from "@bufbuild/protobuf";
import type { JsonObject } from "#kit/base/json.ts";
import { type ModelCall, ModelCallSchema } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";

/** A call in the form of a catalog's snapshot. */
export function modelCall(
  model: string,
  input: JsonObject,
  output: string,
  more: { mode?: string; refused?: string } = {},
): ModelCall {
  return create(ModelCallSchema, { model, input: JSON.stringify(input), output, ...more });
}

export const falCalls = {
  image: modelCall(
    "fal-ai/flux/dev",
    {
      prompt: "${prompt}",
      num_images: "${count}",
      seed: "${seed}",
      image_size: { width: "${width}", height: "${height}" },
    },
    "images[*].url",
    { refused: "has_nsfw_concepts[*]" },
  ),
  video: modelCall(
    "fal-ai/bytedance/seedance/v1/pro/image-to-video",
    {
      prompt: "${prompt}",
      duration: "${seconds:string}",
      resolution: "${resolution}",
      image_url: "${references[0]}",
      end_image_url: "${references[1]}",
      generate_audio: "${audio}",
    },
    "video.url",
    { mode: "i2v" },
  ),
  music: modelCall(
    "fal-ai/minimax-music/v2.6",
    {
      prompt: "${title}. ${description}",
      lyrics: "${lyrics}",
      is_instrumental: { $map: "${musicMode}", instrumental: true, lyrics: false },
    },
    "audio.url",
  ),
};

export const replicateCalls = {
  image: modelCall(
    "black-forest-labs/flux-schnell",
    {
      prompt: "${prompt}",
      num_outputs: "${count}",
      seed: "${seed}",
      aspect_ratio: "${aspectRatio}",
    },
    "output[*]",
  ),
  video: modelCall(
    "bytedance/seedance-1-pro",
    {
      prompt: "${prompt}",
      duration: "${seconds}",
      image: "${references[0]}",
      last_frame_image: "${references[1]}",
    },
    "output[*]",
    { mode: "i2v" },
  ),
  music: modelCall(
    "minimax/music-1.5",
    { prompt: "${title}. ${description}", lyrics: "${lyrics}" },
    "output[*]",
  ),
};
