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
const oneFrame = { ...i2v, input: { ...i2v.input, end_image_url: undefined } };
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
  [
    "a picture of sizes and resolutions, after a list of references",
    {
      ...{ ...flux, sizes: ["1024x1024"], resolutions: ["1k"], maxReferences: 3 },
      call: {
        ...flux.call,
        input: {
          ...flux.call.input,
          ...{ size: "${size}", resolution: "${resolution}", images: "${references}" },
        },
      },
    },
  ],
  [
    "a first and a last frame with a call of their own",
    { ...seedance, call: { t2v, i2v: oneFrame, firstLast: i2v } },
  ],
  ...[
    ["none", "false"],
    ["stereo", "true"],
  ].map(([nativeAudio, audio]): [string, object] => [
    `a map of the sound that a model of nativeAudio ${nativeAudio} has`,
    {
      ...{ ...seedance, nativeAudio },
      call: {
        i2v,
        t2v: { ...t2v, input: { ...t2v.input, sound: { $map: "${audio}", [`${audio}`]: 1 } } },
      },
    },
  ]),
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
    "call.input.l: names lyrics, which no generation of this model has",
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
    'call.t2v.input.aspect_ratio: has no entry for 16:9, which the model offers: add one, or "*" for all others',
  ],
  ...(["size", "resolution"] as const).map((name): [string, object, string] => [
    `a ${name} of a model that offers none`,
    { ...flux, call: { ...flux.call, input: { ...flux.call.input, s: `\${${name}}` } } },
    `call.input.s: names ${name}, which no generation of this model has`,
  ]),
  [
    "a reference that callers may send and that goes nowhere",
    {
      ...{ ...flux, maxReferences: 2 },
      call: { ...flux.call, input: { ...flux.call.input, image_url: "${references[0]}" } },
    },
    "call.input: places no reference 2: what callers choose there would be lost",
  ],
  [
    "a mask that callers may send and that goes nowhere",
    {
      ...{ ...flux, maxReferences: 1, masks: true },
      call: { ...flux.call, input: { ...flux.call.input, image_url: "${references[0]}" } },
    },
    "call.input: places no mask: what callers choose there would be lost",
  ],
  [
    "a mask that no caller may send",
    { ...flux, call: { ...flux.call, input: { ...flux.call.input, mask: "${mask}" } } },
    "call.input.mask: names mask, which no generation of this model has",
  ],
  [
    "a last frame that its own call places nowhere",
    {
      ...seedance,
      call: { t2v, i2v: oneFrame, firstLast: oneFrame },
    },
    "call.firstLast.input: places no reference 2: what callers choose there would be lost",
  ],
  [
    "a second reference in the call from one, where two have a call of their own",
    { ...seedance, call: { t2v, i2v, firstLast: i2v } },
    "call.i2v.input.end_image_url: places reference 2 of at most 1",
  ],
  [
    "the ratio auto, which callers may always send, without an entry",
    {
      ...{ ...seedance, availableAspectRatios: ["16:9"] },
      call: {
        i2v,
        t2v: {
          ...t2v,
          input: { ...t2v.input, aspect_ratio: { $map: "${aspectRatio}", "16:9": 1 } },
        },
      },
    },
    'call.t2v.input.aspect_ratio: has no entry for auto, which the model offers: add one, or "*" for all others',
  ],
  [
    "a list of references in a call from text",
    { ...seedance, call: { i2v, t2v: { ...t2v, input: { ...t2v.input, r: "${references}" } } } },
    "call.t2v.input.r: places reference 1 of at most 0",
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
