import { expect, test } from "vitest";
import { z } from "zod";
import { callFaults } from "./calls.ts";
import { pathText } from "./faults.ts";
import { parseCatalog } from "./parse.ts";
import { catalogSchema } from "./schema.ts";

const seedance = {
  id: "seedance",
  kind: "video",
  upstream: "fal",
  maxReferences: 2,
  firstLastFrame: true,
  availableAspectRatios: ["auto", "16:9"],
  videoOptions: [
    { durationSeconds: 5, resolution: "480p", modes: ["t2v", "i2v"], credits: 1 },
    { durationSeconds: 10, resolution: "720p", modes: ["t2v", "i2v"], credits: 2 },
  ],
};
const t2v = {
  model: "fal-ai/bytedance/seedance/v1/pro/text-to-video",
  input: {
    prompt: "${prompt}",
    duration: "${seconds:string}",
    resolution: "${resolution}",
    aspect_ratio: { $map: "${aspectRatio}", auto: null, "16:9": "16:9" },
  },
  output: "video.url",
};
const i2v = {
  model: "fal-ai/bytedance/seedance/v1/pro/image-to-video",
  input: {
    prompt: "${prompt}",
    duration: "${seconds:string}",
    resolution: "${resolution}",
    image_url: "${references[0]}",
    end_image_url: "${references[1]}",
  },
  output: "video.url",
};
const flux = {
  id: "flux",
  kind: "image",
  upstream: "fal",
  creditPrice: 1,
  call: {
    model: "fal-ai/flux/dev",
    input: { prompt: "${prompt}", num_images: "${count}", seed: "${seed}" },
    output: "images[*].url",
    refused: "has_nsfw_concepts[*]",
  },
};

test.each([
  ["a picture", flux],
  ["a video from text and from references", { ...seedance, call: { t2v, i2v } }],
  [
    "a piece of music",
    {
      id: "song",
      kind: "music",
      upstream: "fal",
      creditPrice: 1,
      call: {
        model: "fal-ai/minimax-music/v2.6",
        input: {
          prompt: "${title}. ${description}",
          lyrics: "${lyrics}",
          is_instrumental: { $map: "${musicMode}", instrumental: true, lyrics: false },
        },
        output: "audio.url",
      },
    },
  ],
])("%s as it should be", (_, model) => {
  expect(faultsOf(model)).toEqual([]);
});

test.each([
  ["no call", { ...flux, call: undefined }, "call: is required by its upstream"],
  [
    "several images that are not asked for",
    { ...flux, call: { ...flux.call, input: { prompt: "${prompt}" } } },
    "call.input: places no count: maxImages allows several",
  ],
  [
    "a name of another kind",
    { ...flux, call: { ...flux.call, input: { ...flux.call.input, l: "${lyrics}" } } },
    "call.input.l: names lyrics, which is no value of this kind of generation",
  ],
  [
    "a mode without a call",
    { ...seedance, call: { t2v } },
    "call: has no i2v, which the model offers",
  ],
  [
    "a last frame that no call places",
    {
      ...seedance,
      call: { t2v, i2v: { ...i2v, input: { ...i2v.input, end_image_url: undefined } } },
    },
    "call: has no firstLast, which the model offers",
  ],
  [
    "a duration that is not passed on",
    { ...seedance, call: { i2v, t2v: { ...t2v, input: { ...t2v.input, duration: 5 } } } },
    "call.t2v.input: places no seconds: its rows have several",
  ],
  [
    "a ratio without an entry",
    {
      ...seedance,
      call: {
        i2v,
        t2v: {
          ...t2v,
          input: { ...t2v.input, aspect_ratio: { $map: "${aspectRatio}", auto: null } },
        },
      },
    },
    "call.t2v.input.aspect_ratio: has no entry for 16:9, which the model offers",
  ],
  [
    "a reference in a call from text",
    { ...seedance, call: { i2v, t2v: { ...t2v, input: { ...t2v.input, r: "${references[0]}" } } } },
    "call.t2v.input.r: places reference 1 of at most 0",
  ],
])("%s is found", (_, model, fault) => {
  expect(faultsOf(model)).toContain(fault);
});

test("an output that stands nowhere is found by the schema", () => {
  const call = { ...flux.call, output: "images[" };
  expect(() => read({ ...flux, call })).toThrow(/must be a path like/);
});

test("a call is for upstreams that need one", () => {
  const faults = callFaults(read(flux), false, (...rest) => rest);
  expect(faults).toMatchObject([{ path: ["call"] }]);
});

test("a call is a fault in a file whose upstream takes none, a fallback included", () => {
  const remote = { protocol: "openai", baseUrl: "http://127.0.0.1:11434/v1" };
  const upstreams = { fal: remote, studio: { protocol: "builtin" } };
  for (const fallbackUpstreams of [[], ["studio"]]) {
    const file = { upstreams, models: [{ ...flux, fallbackUpstreams }] };
    expect(parseCatalog(JSON.stringify(file)).faults).toEqual([
      expect.objectContaining({ path: "models[0].call" }),
    ]);
  }
});

function faultsOf(model: object): string[] {
  const faults = callFaults(read(model), true, (...rest) => rest);
  return faults.map(({ path, message }) => `${pathText(path)}: ${message}`);
}

function read(model: object) {
  const file = z.parse(
    catalogSchema,
    JSON.parse(JSON.stringify({ models: [model], upstreams: {} })),
  );
  const [first] = file.models;
  const isMedia = first?.kind === "image" || first?.kind === "video" || first?.kind === "music";
  if (!isMedia) throw new Error("no media model");
  return first;
}
