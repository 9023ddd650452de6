/**
 * Node classes that the double of ComfyUI knows, and the validation of a graph before it is queued.
 *
 * From Comfy-Org/ComfyUI: classes and their inputs (nodes.py, comfy_extras/nodes_video.py, nodes_wan.py, nodes_audio.py), in short form;
 * refusals and their wording (execution.py `validate_prompt`, `validate_inputs`).
 */

/** A node of a graph in API format. */
export interface GraphNode {
  class_type?: string;
  inputs: Record<string, unknown>;
  _meta?: { title?: string };
}

export type Graph = Record<string, GraphNode>;

/** An input: its type in the form of `/object_info`, and its bounds. */
type Input = [type: string | string[], bounds?: { min?: number; max?: number; default?: unknown }];

export interface NodeClass {
  required: Record<string, Input>;
  optional?: Record<string, Input>;
  /** The types of its results. */
  returns: string[];
  /** The files of an output node. `animated` and `format` have the values that the class adds. */
  saves?: { key: "images" | "audio" | "gifs"; kind: "image" | "video" | "sound"; isTemp?: boolean };
  /** Does it sample, with progress and previews? */
  samples?: boolean;
}

const seed: Input = ["INT", { default: 0, min: 0, max: 2 ** 64 }];
const size: Input = ["INT", { default: 512, min: 16, max: 16_384 }];
/** A model's file. Each has one name that exists. */
const file: Input = ["STRING"];
const wan: Record<string, Input> = {
  ...{
    positive: ["CONDITIONING"],
    negative: ["CONDITIONING"],
    vae: ["VAE"],
    width: size,
    height: size,
  },
  ...{ length: ["INT", { default: 81, min: 1, max: 16_384 }], batch_size: ["INT", { min: 1 }] },
};
const prefix: Input = ["STRING", { default: "ComfyUI" }];

export const nodeClasses: Record<string, NodeClass> = {
  CheckpointLoaderSimple: {
    required: {
      ckpt_name: [
        ["v1-5-pruned-emaonly.ckpt", "sd_xl_base_1.0.safetensors", "ace_step_v1_3.5b.safetensors"],
      ],
    },
    returns: ["MODEL", "CLIP", "VAE"],
  },
  CLIPTextEncode: {
    required: { text: ["STRING"], clip: ["CLIP"] },
    returns: ["CONDITIONING"],
  },
  ConditioningZeroOut: {
    required: { conditioning: ["CONDITIONING"] },
    returns: ["CONDITIONING"],
  },
  EmptyLatentImage: {
    required: { width: size, height: size, batch_size: ["INT", { default: 1, min: 1, max: 4096 }] },
    returns: ["LATENT"],
  },
  KSampler: {
    required: {
      ...{ model: ["MODEL"], seed, steps: ["INT", { default: 20, min: 1, max: 10_000 }] },
      ...{
        cfg: ["FLOAT", { default: 8, min: 0, max: 100 }],
        sampler_name: [["euler", "dpmpp_2m"]],
      },
      ...{ scheduler: [["normal", "karras", "simple"]], positive: ["CONDITIONING"] },
      ...{ negative: ["CONDITIONING"], latent_image: ["LATENT"] },
      denoise: ["FLOAT", { default: 1, min: 0, max: 1 }],
    },
    returns: ["LATENT"],
    samples: true,
  },
  VAEDecode: { required: { samples: ["LATENT"], vae: ["VAE"] }, returns: ["IMAGE"] },
  VAEEncode: { required: { pixels: ["IMAGE"], vae: ["VAE"] }, returns: ["LATENT"] },
  LoadImage: { required: { image: ["STRING"] }, returns: ["IMAGE", "MASK"] },
  SaveImage: {
    required: { images: ["IMAGE"], filename_prefix: prefix },
    ...{ returns: [], saves: { key: "images", kind: "image" } },
  },
  PreviewImage: {
    required: { images: ["IMAGE"] },
    ...{ returns: [], saves: { key: "images", kind: "image", isTemp: true } },
  },
  CreateVideo: {
    required: { images: ["IMAGE"], fps: ["FLOAT", { default: 30, min: 1, max: 120 }] },
    optional: { audio: ["AUDIO"] },
    returns: ["VIDEO"],
  },
  SaveVideo: {
    required: {
      ...{ video: ["VIDEO"], filename_prefix: prefix, format: [["auto", "mp4", "mkv", "webm"]] },
    },
    optional: { codec: [["auto", "h264", "av1"]] },
    ...{ returns: ["VIDEO"], saves: { key: "images", kind: "video" } },
  },
  VHS_VideoCombine: {
    required: { images: ["IMAGE"], frame_rate: ["FLOAT", { min: 1 }], filename_prefix: prefix },
    ...{ returns: ["VHS_FILENAMES"], saves: { key: "gifs", kind: "video" } },
  },
  UNETLoader: { required: { unet_name: file, weight_dtype: [["default"]] }, returns: ["MODEL"] },
  CLIPLoader: { required: { clip_name: file, type: ["STRING"] }, returns: ["CLIP"] },
  VAELoader: { required: { vae_name: file }, returns: ["VAE"] },
  CLIPVisionLoader: { required: { clip_name: file }, returns: ["CLIP_VISION"] },
  CLIPVisionEncode: {
    required: { clip_vision: ["CLIP_VISION"], image: ["IMAGE"], crop: [["center", "none"]] },
    returns: ["CLIP_VISION_OUTPUT"],
  },
  ModelSamplingSD3: { required: { model: ["MODEL"], shift: ["FLOAT"] }, returns: ["MODEL"] },
  WanImageToVideo: {
    required: wan,
    optional: { clip_vision_output: ["CLIP_VISION_OUTPUT"], start_image: ["IMAGE"] },
    returns: ["CONDITIONING", "CONDITIONING", "LATENT"],
  },
  WanFirstLastFrameToVideo: {
    required: wan,
    optional: { start_image: ["IMAGE"], end_image: ["IMAGE"] },
    returns: ["CONDITIONING", "CONDITIONING", "LATENT"],
  },
  EmptyAceStepLatentAudio: {
    required: {
      seconds: ["FLOAT", { default: 120, min: 1, max: 1000 }],
      batch_size: ["INT", { min: 1 }],
    },
    returns: ["LATENT"],
  },
  TextEncodeAceStepAudio: {
    required: { clip: ["CLIP"], tags: ["STRING"], lyrics: ["STRING"], lyrics_strength: ["FLOAT"] },
    returns: ["CONDITIONING"],
  },
  VAEDecodeAudio: { required: { samples: ["LATENT"], vae: ["VAE"] }, returns: ["AUDIO"] },
  SaveAudioMP3: {
    required: { audio: ["AUDIO"], filename_prefix: prefix, quality: [["V0", "128k", "320k"]] },
    ...{ returns: [], saves: { key: "audio", kind: "sound" } },
  },
};

/** An error of a graph, in ComfyUI's words. */
export interface GraphError {
  type: string;
  message: string;
  details: string;
  extra_info: object;
}

export interface NodeErrors {
  [node: string]: { errors: GraphError[]; dependent_outputs: string[]; class_type: string };
}

/** The result of `POST /prompt`: outputs that run, and errors. Without outputs the graph is refused with `error`. */
export interface Validated {
  outputs: string[];
  errors: NodeErrors;
  error: GraphError | undefined;
}

/** Checks a graph. `hasInput` tells whether an image exists for LoadImage. */
export function validateGraph(graph: Graph, hasInput: (name: string) => boolean): Validated {
  const refused = (error: GraphError): Validated => ({ outputs: [], errors: {}, error });
  const outputs: string[] = [];
  for (const [id, { class_type, _meta }] of Object.entries(graph)) {
    const known = nodeClasses[class_type ?? ""];
    if (known?.saves) outputs.push(id);
    if (known) continue;
    const title = _meta?.title ?? class_type ?? `ID #${id}`;
    const why = class_type
      ? `Node '${title}' not found. The custom node may not be installed.`
      : `Node '${title}' has no class_type. The workflow may be corrupted or a custom node is missing.`;
    return refused(
      graphError("missing_node_type", why, `Node ID '#${id}'`, { node_id: id, class_type }),
    );
  }
  if (outputs.length === 0)
    return refused(graphError("prompt_no_outputs", "Prompt has no outputs", ""));
  const checked = new Map<string, GraphError[]>();
  const errors: NodeErrors = {};
  const good = outputs.filter((output) => {
    const nodes = nodesBehind(graph, output);
    const bad = nodes.filter((id) => {
      if (!checked.has(id)) checked.set(id, nodeErrors(graph, id, hasInput));
      return checked.get(id)?.length;
    });
    for (const id of bad) {
      errors[id] ??= {
        ...{ errors: checked.get(id) ?? [], dependent_outputs: [] },
        class_type: graph[id]?.class_type ?? "",
      };
      errors[id].dependent_outputs.push(output);
    }
    return bad.length === 0;
  });
  const lines = Object.values(errors).flatMap((one) =>
    one.errors.map(({ message, details }) => `${message}: ${details}`),
  );
  const error =
    good.length > 0
      ? undefined
      : graphError(
          "prompt_outputs_failed_validation",
          "Prompt outputs failed validation",
          lines.join("\n"),
        );
  return { outputs: good, errors, error };
}

/** A node and all that it depends on, the sources first. */
export function nodesBehind(graph: Graph, id: string, seen = new Set<string>()): string[] {
  if (seen.has(id) || !graph[id]) return [];
  seen.add(id);
  const sources = linksOf(graph[id]).flatMap((source) => nodesBehind(graph, source, seen));
  return [...sources, id];
}

/** A node with all that it depends on, as text. An equal one is answered from the cache (comfy_execution/caching.py). */
export function signatureOf(graph: Graph, id: string): string {
  const known = nodesBehind(graph, id).map((node) => [
    node,
    graph[node]?.class_type,
    graph[node]?.inputs,
  ]);
  return JSON.stringify(known);
}

function linksOf({ inputs = {} }: GraphNode): string[] {
  return Object.values(inputs).flatMap((value) => (Array.isArray(value) ? [String(value[0])] : []));
}

function nodeErrors(graph: Graph, id: string, hasInput: (name: string) => boolean): GraphError[] {
  const { class_type = "", inputs = {} } = graph[id] as GraphNode;
  const { required, optional = {} } = nodeClasses[class_type] as NodeClass;
  const errors: GraphError[] = [];
  const add = (type: string, message: string, details: string, input_name: string) =>
    errors.push(graphError(type, message, details, { input_name }));
  for (const [name, [type, bounds]] of Object.entries({ ...required, ...optional })) {
    const value = inputs[name];
    if (value === undefined) {
      if (name in required) add("required_input_missing", "Required input is missing", name, name);
    } else if (Array.isArray(value)) {
      if (value.length !== 2)
        add(
          "bad_linked_input",
          "Bad linked input, must be a length-2 list of [node_id, slot_index]",
          name,
          name,
        );
      else if (returnsOf(graph, value) !== type)
        add(
          ...(["return_type_mismatch", "Return type mismatch between linked nodes"] as const),
          ...([
            `${name}, received_type(${returnsOf(graph, value)}) mismatch input_type(${type})`,
            name,
          ] as const),
        );
    } else if (type === "INT" || type === "FLOAT") {
      const number = Number(value);
      if (value === "" || Number.isNaN(number))
        add(
          "invalid_input_type",
          `Failed to convert an input value to a ${type} value`,
          `${name}, ${value}`,
          name,
        );
      else if (bounds?.min !== undefined && number < bounds.min)
        add(
          "value_smaller_than_min",
          `Value ${number} smaller than min of ${bounds.min}`,
          name,
          name,
        );
      else if (bounds?.max !== undefined && number > bounds.max)
        add(
          "value_bigger_than_max",
          `Value ${number} bigger than max of ${bounds.max}`,
          name,
          name,
        );
    } else if (Array.isArray(type) && !type.includes(String(value))) {
      add(
        "value_not_in_list",
        "Value not in list",
        `${name}: '${value}' not in ${JSON.stringify(type)}`,
        name,
      );
    }
  }
  const image = inputs.image;
  if (class_type === "LoadImage" && typeof image === "string" && !hasInput(image))
    add(
      ...(["custom_validation_failed", "Custom validation failed for node"] as const),
      ...([`image - Invalid image file: ${image}`, "image"] as const),
    );
  return errors;
}

function returnsOf(graph: Graph, [id, slot]: unknown[]): string | undefined {
  return nodeClasses[graph[String(id)]?.class_type ?? ""]?.returns[Number(slot)];
}

function graphError(
  type: string,
  message: string,
  details: string,
  extra: object = {},
): GraphError {
  return { type, message, details, extra_info: extra };
}

/** A class in the form of `/object_info`. */
export function objectInfo(name: string): object {
  const { required, optional = {}, returns, saves } = nodeClasses[name] as NodeClass;
  const order = { required: Object.keys(required), optional: Object.keys(optional) };
  return {
    ...{ input: { required, optional }, input_order: order, is_input_list: false },
    ...{ output: returns, output_is_list: returns.map(() => false), output_name: returns },
    ...{ name, display_name: name, description: "", python_module: "nodes", category: "sd" },
    output_node: saves !== undefined,
  };
}
