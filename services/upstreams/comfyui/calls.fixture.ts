// Calls of the shipped catalog to ComfyUI, for tests of its driver.

import { fileURLToPath } from "node:url";
import { create } from "@bufbuild/protobuf";
import { type ModelCall, ModelCallSchema } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { readCatalogFile } from "../../catalog/file.ts";
import { parseCatalog } from "../../catalog/parse.ts";

/** The catalog with workflows that is shipped. */
export const shippedCatalog = fileURLToPath(
  new URL("../../../deploy/catalogs/comfyui.yaml", import.meta.url),
);

const { text = "", workflows } = await readCatalogFile(shippedCatalog);
const { snapshot, faults } = parseCatalog(text, workflows);
if (!snapshot) throw new Error(JSON.stringify(faults));

function shipped(id: string): ModelCall {
  const [call] = snapshot?.models.find((model) => model.id === id)?.calls ?? [];
  if (!call) throw new Error(`${id} has no call`);
  return call;
}

/** Music by ACE-Step. */
const song = {
  "3": {
    class_type: "KSampler",
    inputs: {
      ...{ seed: 0, steps: 50, cfg: 5, sampler_name: "euler", scheduler: "simple", denoise: 1 },
      ...{ model: ["40", 0], positive: ["14", 0], negative: ["14", 0], latent_image: ["17", 0] },
    },
  },
  "14": {
    class_type: "TextEncodeAceStepAudio",
    inputs: { tags: "", lyrics: "", lyrics_strength: 1, clip: ["40", 1] },
  },
  "17": { class_type: "EmptyAceStepLatentAudio", inputs: { seconds: 120, batch_size: 1 } },
  "18": { class_type: "VAEDecodeAudio", inputs: { samples: ["3", 0], vae: ["40", 2] } },
  "40": {
    class_type: "CheckpointLoaderSimple",
    inputs: { ckpt_name: "v1-5-pruned-emaonly.ckpt" },
  },
  "59": {
    class_type: "SaveAudioMP3",
    inputs: { filename_prefix: "audio/x", quality: "V0", audio: ["18", 0] },
  },
};

/** A call of each kind. The one for videos is from a reference. */
export const comfyCalls = {
  image: shipped("sdxl"),
  video: shipped("wan-2-1-i2v"),
  music: create(ModelCallSchema, {
    workflow: JSON.stringify(song),
    output: "59",
    input: JSON.stringify({
      "3.seed": "${seed}",
      "14.tags": "${title}, ${description}",
      "14.lyrics": "${lyrics}",
    }),
  }),
};
