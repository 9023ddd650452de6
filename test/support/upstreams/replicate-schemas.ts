import type { Behaviour } from "../scripted-behaviours.ts";
import { type Route, reply } from "./double.ts";

/**
 * `openapi_schema` of some models at Replicate, from `latest_version` of `GET /models/{owner}/{name}`. Enumerations have schemas of their
 * own that `allOf` refers to, in coglet's form. Names, enumerations and bounds are transcribed from the models' pages of 2026. Inputs that
 * no shipped catalog uses are left out.
 */
const inputs: Record<string, { input: Input; output: object }> = {
  "black-forest-labs/flux-schnell": {
    input: {
      required: ["prompt"],
      properties: {
        prompt: { type: "string" },
        aspect_ratio: [
          "1:1",
          "16:9",
          "21:9",
          "3:2",
          "2:3",
          "4:5",
          "5:4",
          "3:4",
          "4:3",
          "9:16",
          "9:21",
        ],
        num_outputs: { type: "integer", minimum: 1, maximum: 4, default: 1 },
        seed: { type: "integer" },
        output_format: ["webp", "jpg", "png"],
        go_fast: { type: "boolean", default: true },
      },
    },
    output: { type: "array", items: { type: "string", format: "uri" } },
  },
  "google/nano-banana": {
    input: {
      required: ["prompt"],
      properties: {
        prompt: { type: "string" },
        image_input: { type: "array", items: { type: "string", format: "uri" }, default: [] },
        aspect_ratio: [
          "match_input_image",
          "1:1",
          "2:3",
          "3:2",
          "3:4",
          "4:3",
          "4:5",
          "5:4",
          "9:16",
          "16:9",
          "21:9",
        ],
        output_format: ["jpg", "png"],
      },
    },
    output: { type: "string", format: "uri" },
  },
  "bytedance/seedance-1-pro": {
    input: {
      required: ["prompt"],
      properties: {
        prompt: { type: "string" },
        image: { type: "string", format: "uri" },
        last_frame_image: { type: "string", format: "uri" },
        duration: { type: "integer", minimum: 2, maximum: 12, default: 5 },
        resolution: ["480p", "720p", "1080p"],
        aspect_ratio: ["16:9", "4:3", "1:1", "3:4", "9:16", "21:9", "9:21"],
        camera_fixed: { type: "boolean", default: false },
        seed: { type: "integer" },
      },
    },
    output: { type: "string", format: "uri" },
  },
  "minimax/music-2.5": {
    input: {
      required: ["lyrics"],
      properties: {
        prompt: { type: "string", maxLength: 2000 },
        lyrics: { type: "string", minLength: 1, maxLength: 3500 },
        audio_format: ["mp3", "wav", "pcm"],
        sample_rate: { type: "integer", enum: [16000, 24000, 32000, 44100] },
      },
    },
    output: { type: "string", format: "uri" },
  },
};

interface Input {
  required: string[];
  /** A list means an enumeration of texts. */
  properties: Record<string, object | string[]>;
}

/** The schema of a model. Undefined for an unknown one. */
function replicateSchema(model: string): object | undefined {
  const found = inputs[model];
  if (!found) return undefined;
  const { properties, required } = found.input;
  const enumerations = Object.entries(properties).flatMap(([name, values]) =>
    Array.isArray(values) ? [[name, { title: name, type: "string", enum: values }] as const] : [],
  );
  const own = Object.entries(properties).map(([name, value]) => [
    name,
    Array.isArray(value) ? { allOf: [{ $ref: `#/components/schemas/${name}` }] } : value,
  ]);
  const Input = { type: "object", title: "Input", required, properties: Object.fromEntries(own) };
  const schemas = { Input, Output: { title: "Output", ...found.output } };
  return {
    openapi: "3.0.2",
    info: { title: "Cog", version: "0.1.0" },
    components: { schemas: { ...schemas, ...Object.fromEntries(enumerations) } },
  };
}

/** The version of every model here. */
export const usualVersion = "5".repeat(64);

/** Replicate's documents of a model and of a version. `unknown` is the answer for an unknown one. */
export function schemaRoutes(unknown: Behaviour): Route<"model" | "version">[] {
  const versionOf = (model: string) => {
    const schema = replicateSchema(model);
    return schema && { id: usualVersion, cog_version: "0.14.0", openapi_schema: schema };
  };
  return [
    {
      ...{ name: "model", method: "GET", path: /^\/v1\/models\/([^/]+)\/([^/]+)$/ },
      answer: (_seen, [owner = "", name = ""]) => {
        const version = versionOf(`${owner}/${name}`);
        return version
          ? reply(200, { owner, name, visibility: "public", latest_version: version })
          : unknown;
      },
    },
    {
      ...{ name: "version", method: "GET" },
      path: /^\/v1\/models\/([^/]+)\/([^/]+)\/versions\/([^/]+)$/,
      answer: (_seen, [owner = "", name = "", id = ""]) => {
        const version = versionOf(`${owner}/${name}`);
        return version && id === usualVersion ? reply(200, version) : unknown;
      },
    },
  ];
}
