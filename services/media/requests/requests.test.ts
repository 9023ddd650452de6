import { readFileSync } from "node:fs";
import { create } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { viewOf } from "#common/agreements/catalog-client.ts";
import { ErrorReason, type RefusalError } from "#kit/base/errors.ts";
import type { JsonObject } from "#kit/base/json.ts";
import { AdmissionSchema } from "#proto/genmesh/common/v1/access_pb.ts";
import { parseCatalog } from "../../catalog/parse.ts";
import { isTaken } from "../../upstreams/optional-fields.ts";
import type { MediaKind } from "../jobs/job.ts";
import { closestRatio } from "./fields.ts";
import { bodyOf, checkRequest } from "./index.ts";
import { readReferences, toStoredReference } from "./references.ts";

const file = new URL("../../../deploy/catalog.yaml", import.meta.url);
const { snapshot } = parseCatalog(readFileSync(file, "utf8"));
if (!snapshot) throw new Error("the shipped catalog is broken");
const view = viewOf(snapshot);

const image = (more: JsonObject = {}) => ({ model: "image-1", prompt: "a boat", ...more });
const music = (more: JsonObject = {}) => ({
  model: "music-1",
  mode: "instrumental",
  title: "A boat",
  ...more,
});
const video = (more: JsonObject = {}) => ({
  model: "svc-video-1-5",
  prompt: "waves",
  ...more,
});
const check = (kind: MediaKind, body: JsonObject) => checkRequest(kind, body, view, {});
const refusal = (kind: MediaKind, body: JsonObject) => {
  try {
    check(kind, body);
  } catch (error) {
    return error;
  }
  throw new Error(`accepted: ${JSON.stringify(body)}`);
};

describe("images", () => {
  test.each<[JsonObject, bigint, object]>([
    [{}, 5n, { count: 1, width: 1024, height: 1024 }],
    [{ n: 10 }, 50n, { count: 10 }],
    [{ size: "1792x1024" }, 5n, { width: 1792, height: 1024, size: "1792x1024" }],
    [{ size: "auto", resolution: "2k" }, 5n, { width: 2048, height: 2048, resolution: "2k" }],
    [{ aspectRatio: "2:3" }, 5n, { width: 832, height: 1248, aspectRatio: "2:3" }],
    [{ size: "1792x1024", aspectRatio: "16:9" }, 5n, { width: 1792 }],
    [{ n: null, size: null, aspectRatio: null }, 5n, { count: 1 }],
  ])("%j is taken", (more, price, request) => {
    const { spec } = check("image", image(more));
    expect(spec.price).toBe(price);
    expect(spec.request).toMatchObject(request);
    expect(spec).toMatchObject({ mode: "", model: "image-1", upstreamModel: "image-1" });
    expect(spec.upstreams.map(({ name }) => name)).toEqual(["studio"]);
  });

  test.each<[JsonObject, ErrorReason, string]>([
    [{ n: 0 }, ErrorReason.INVALID_VALUE, "n"],
    [{ n: 11 }, ErrorReason.INVALID_VALUE, "n"],
    [{ n: "2" }, ErrorReason.INVALID_TYPE, "n"],
    [{ size: "1x1" }, ErrorReason.UNSUPPORTED_SIZE, "size"],
    [{ resolution: "4k" }, ErrorReason.UNSUPPORTED_RESOLUTION, "resolution"],
    [{ aspectRatio: "5:4" }, ErrorReason.UNSUPPORTED_ASPECT_RATIO, "aspectRatio"],
    [{ size: "1024x1024", aspectRatio: "16:9" }, ErrorReason.INVALID_VALUE, "aspectRatio"],
    [
      { referenceFileIds: ["a", "b", "c", "d", "e"] },
      ErrorReason.TOO_MANY_REFERENCES,
      "referenceFileIds",
    ],
    [{ modelId: "image-1", model: null }, ErrorReason.MISSING_REQUIRED_PARAMETER, "model"],
  ])("%j is refused", (more, reason, param) => {
    expect(refusal("image", image(more))).toMatchObject({ reason, param });
  });
});

describe("what an image model offers is told with the refusal", () => {
  const catalog = `
upstreams: { studio: { protocol: builtin } }
developerPrompt: ""
models:
  - { id: bare, kind: image, upstream: studio, creditPrice: 1, sizes: [64x64] }
  - { id: shapeless, kind: image, upstream: studio, creditPrice: 1 }
  - id: full
    kind: image
    upstream: studio
    creditPrice: 1
    sizes: [64x64]
    resolutions: [1k, 2k]
    availableAspectRatios: [auto, "1:1"]
    maxReferences: 1
`;
  const own = parseCatalog(catalog).snapshot;
  if (!own) throw new Error("the catalog is broken");
  const refused = (model: string, more: JsonObject) => {
    try {
      checkRequest("image", { model, prompt: "x", ...more }, viewOf(own), {});
    } catch (error) {
      const { message, metadata } = error as RefusalError;
      const options = metadata.available_options ?? metadata.available_aspect_ratios ?? "null";
      return { message, options: JSON.parse(options) };
    }
    throw new Error("accepted");
  };
  const two = { referenceFileIds: ["a", "b"] };

  test.each<[string, JsonObject, string, unknown]>([
    [
      "full",
      { resolution: "8k" },
      "The model's resolutions are: 1k, 2k.",
      [{ resolution: "1k" }, { resolution: "2k" }],
    ],
    ["bare", { resolution: "8k" }, "The model takes no resolution.", []],
    ["full", { aspectRatio: "9:1" }, "The model's aspect ratios are: auto, 1:1.", ["auto", "1:1"]],
    [
      "bare",
      { aspectRatio: "9:1" },
      "The model's aspect ratios are: auto, 16:9, 9:16, 3:2, 2:3, 1:1.",
      ["auto", "16:9", "9:16", "3:2", "2:3", "1:1"],
    ],
    ["shapeless", { aspectRatio: "1:1" }, "The model takes no aspect ratio but 'auto'.", ["auto"]],
    ["full", two, "The model takes at most 1 reference.", [{ maxReferences: 1 }]],
    ["bare", two, "The model takes no references.", [{ maxReferences: 0 }]],
  ])("%s %j", (model, more, message, options) => {
    expect(refused(model, more)).toEqual({ message, options });
  });
});

describe("music", () => {
  test.each<[JsonObject, object]>([
    [{}, { mode: "instrumental", title: "A boat" }],
    [
      { mode: "lyrics", lyrics: "row, row" },
      { mode: "lyrics", lyrics: "row, row" },
    ],
    [{ description: "calm" }, { description: "calm" }],
    [{ lyrics: null }, { mode: "instrumental" }],
    [{ lyrics: "" }, { mode: "instrumental" }],
  ])("%j is taken for the fixed price", (more, request) => {
    const { spec } = check("music", music(more));
    expect(spec.price).toBe(20n);
    expect(spec.request).toMatchObject(request);
  });

  test.each<[JsonObject, ErrorReason, string]>([
    [{ mode: "lyrics" }, ErrorReason.MISSING_REQUIRED_PARAMETER, "lyrics"],
    [{ mode: "lyrics", lyrics: null }, ErrorReason.MISSING_REQUIRED_PARAMETER, "lyrics"],
    [{ mode: "lyrics", lyrics: "" }, ErrorReason.MISSING_REQUIRED_PARAMETER, "lyrics"],
    [{ mode: "lyrics", lyrics: " " }, ErrorReason.MISSING_REQUIRED_PARAMETER, "lyrics"],
    [{ mode: "lyrics", lyrics: "\n\t\u00a0" }, ErrorReason.MISSING_REQUIRED_PARAMETER, "lyrics"],
    [{ lyrics: "row" }, ErrorReason.INVALID_VALUE, "lyrics"],
    [{ lyrics: " " }, ErrorReason.INVALID_VALUE, "lyrics"],
    [{ lyrics: "\n\t\u00a0" }, ErrorReason.INVALID_VALUE, "lyrics"],
    [{ mode: "polka" }, ErrorReason.INVALID_VALUE, "mode"],
    [{ mode: null }, ErrorReason.MISSING_REQUIRED_PARAMETER, "mode"],
    [{ title: "" }, ErrorReason.MISSING_REQUIRED_PARAMETER, "title"],
    [{ description: 5 }, ErrorReason.INVALID_TYPE, "description"],
  ])("%j is refused", (more, reason, param) => {
    expect(refusal("music", music(more))).toMatchObject({ reason, param });
  });
});

describe("references", () => {
  test("come in their order, duplicates and all", () => {
    const body = { input_reference: { file_id: "file_a" }, referenceFileIds: ["file_b", "file_a"] };
    expect(readReferences(body)).toEqual([
      { kind: "file", fileId: "file_a", param: "input_reference.file_id" },
      { kind: "file", fileId: "file_b", param: "referenceFileIds[0]" },
      { kind: "file", fileId: "file_a", param: "referenceFileIds[1]" },
    ]);
    expect(readReferences({ input_reference: null, referenceFileIds: null })).toEqual([]);
  });

  test("are written down without bytes", () => {
    const [inline] = readReferences({
      input_reference: { image_url: "DATA:image/png;base64,AAAA" },
    });
    const [url] = readReferences({ input_reference: { image_url: "https://example.com/a.png" } });
    if (!inline || !url) throw new Error("no references");
    expect(toStoredReference(inline)).toEqual({
      kind: "inline",
      param: "input_reference.image_url",
    });
    expect(toStoredReference(url)).toEqual(url);
  });

  test.each<[JsonObject, ErrorReason, string]>([
    [{ input_reference: "file_a" }, ErrorReason.INVALID_INPUT_REFERENCE, "input_reference"],
    [{ input_reference: {} }, ErrorReason.INVALID_INPUT_REFERENCE, "input_reference"],
    // A property counts as present with any value.
    [
      { input_reference: { file_id: "file_a", image_url: null } },
      ErrorReason.INVALID_INPUT_REFERENCE,
      "input_reference",
    ],
    [
      { input_reference: { file_id: null, image_url: "https://example.com/a.png" } },
      ErrorReason.INVALID_INPUT_REFERENCE,
      "input_reference",
    ],
    [
      { input_reference: { file_id: "file_a", detail: null } },
      ErrorReason.INVALID_INPUT_REFERENCE,
      "input_reference",
    ],
    [
      { input_reference: { file_id: null } },
      ErrorReason.INVALID_INPUT_REFERENCE,
      "input_reference.file_id",
    ],
    [
      { input_reference: { file_id: "file_a", image_url: "https://example.com/a" } },
      ErrorReason.INVALID_INPUT_REFERENCE,
      "input_reference",
    ],
    [
      { input_reference: { file_id: "file_a", detail: "high" } },
      ErrorReason.INVALID_INPUT_REFERENCE,
      "input_reference",
    ],
    [
      { input_reference: { image_url: "ftp://example.com/a.png" } },
      ErrorReason.INVALID_INPUT_REFERENCE,
      "input_reference.image_url",
    ],
    [
      { input_reference: { image_url: 5 } },
      ErrorReason.INVALID_INPUT_REFERENCE,
      "input_reference.image_url",
    ],
    [{ referenceFileIds: "file_a" }, ErrorReason.INVALID_TYPE, "referenceFileIds"],
    [{ referenceFileIds: ["file_a", 5] }, ErrorReason.INVALID_TYPE, "referenceFileIds[1]"],
    [{ referenceFileIds: [""] }, ErrorReason.REFERENCE_NOT_FOUND, "referenceFileIds[0]"],
  ])("%j is refused", (more, reason, param) => {
    expect(refusal("image", image(more))).toMatchObject({ reason, param });
  });
});

test("the closest ratio is the least logarithmic distance", () => {
  expect(closestRatio(16, 9, ["auto", "21:9", "4:3"])).toBe("21:9");
  expect(closestRatio(1, 1, ["9:16", "16:9"])).toBe("9:16");
  expect(closestRatio(1, 1, ["auto"])).toBe("auto");
});

test("a key that may use some models is refused the others", () => {
  const admission = create(AdmissionSchema, { allowedModels: ["music-1"] });
  expect(() => checkRequest("image", image(), view, { admission })).toThrow(/may not use/);
  expect(checkRequest("music", music(), view, { admission }).spec.model).toBe("music-1");
});

test.each<[MediaKind, JsonObject]>([
  ["image", image({ n: 3, size: "1792x1024", webhookUrl: "https://example.com/hook" })],
  ["image", image({ resolution: "2k", aspectRatio: "3:2" })],
  ["video", { model: "svcalt-video-1-5b", prompt: "waves", size: "720x720" }],
  ["music", music({ mode: "lyrics", lyrics: "row", description: "calm" })],
])("%s %j, asked for again, asks for the same", (kind, body) => {
  const { spec, webhookUrl: url } = check(kind, body);
  const webhook = url === undefined ? undefined : { url, baseUrl: "", isAnnounced: true };
  const again = check(kind, bodyOf({ spec, pinned: [], webhook }));
  expect(again).toMatchObject({ spec, webhookUrl: url });
});

describe("fields that not every model knows", () => {
  const elsewhere = (protocol: string, fallback?: string) => `
upstreams:
  one: { protocol: ${protocol}, baseUrl: "http://127.0.0.1:9/v1" }
  two: { protocol: ${fallback ?? protocol}${fallback === "builtin" ? "" : ', baseUrl: "http://127.0.0.1:9/v1"'} }
models:
  - { id: i, kind: image, upstream: one, ${fallback ? "fallbackUpstreams: [two], " : ""}creditPrice: 1, sizes: [64x64] }
`;
  const asked = (catalog: string, more: JsonObject) => {
    const { snapshot: own, faults } = parseCatalog(catalog);
    if (!own) throw new Error(JSON.stringify(faults));
    return checkRequest("image", { model: "i", prompt: "a boat", ...more }, viewOf(own), {}).spec;
  };
  const unsupported = (param: string) =>
    expect.objectContaining({ reason: ErrorReason.UNSUPPORTED_PARAMETER, param });
  const both = { negativePrompt: "people", seed: 7 };

  test("are kept in the request where all of its upstreams take them", () => {
    expect(asked(elsewhere("genmesh"), both).request).toMatchObject(both);
    expect(check("video", video({ seed: 0 })).spec.request.seed).toBe(0);
    expect(check("music", music({ seed: 2_147_483_647 })).spec.request.seed).toBe(2_147_483_647);
    expect(asked(elsewhere("genmesh", "builtin"), { seed: 7 }).request.seed).toBe(7);
    const none = check("image", image({ seed: null, negativePrompt: null })).spec.request;
    expect([none.seed, none.negativePrompt]).toEqual([undefined, undefined]);
  });

  test("are refused by name where one of them does not", () => {
    const refused = (catalog: string, more: JsonObject) => {
      try {
        return asked(catalog, more);
      } catch (error) {
        return error;
      }
    };
    expect(refusal("image", image({ negativePrompt: "x" }))).toEqual(unsupported("negativePrompt"));
    expect(refused(elsewhere("openai"), { seed: 7 })).toEqual(unsupported("seed"));
    expect(refused(elsewhere("openai"), { negativePrompt: "x" })).toEqual(
      unsupported("negativePrompt"),
    );
    expect(refused(elsewhere("genmesh", "openai"), { seed: 7 })).toEqual(unsupported("seed"));
    expect(refused(elsewhere("genmesh", "builtin"), both)).toEqual(unsupported("negativePrompt"));
    // Names that no protocol has are still allowed.
    expect(asked(elsewhere("openai"), { steps: 30, nonsense: {} }).request.seed).toBeUndefined();
  });

  test("are those that a template places, in the call of the request's mode", () => {
    const abilities = { callsBy: "template", serves: { image: {}, video: {} } } as never;
    const input = (value: object) => JSON.stringify({ prompt: "${prompt}", ...value });
    const calls = [
      { mode: "t2v", input: input({ seed: "${seed}" }) },
      { mode: "i2v", input: input({ quality: { $map: "${seed}", 1: "low" } }) },
      { mode: "firstLast", input: input({}) },
    ];
    const { request } = check("video", video()).spec;
    if (request.kind !== "video") throw new Error("no video");
    const taken = (more: object, name: "seed" | "negativePrompt" = "seed") =>
      isTaken(name, { ...request, ...more }, calls, abilities);
    expect(taken({ mode: "t2v" })).toBe(true);
    expect(taken({ mode: "i2v" })).toBe(true);
    expect(taken({ mode: "i2v", firstLastFrame: true })).toBe(false);
    expect(taken({ mode: "t2v" }, "negativePrompt")).toBe(false);
    expect(isTaken("seed", request, [], abilities)).toBe(false);
    expect(isTaken("seed", request, calls, undefined)).toBe(false);
  });

  test.each<[JsonObject, ErrorReason, string]>([
    [{ seed: -1 }, ErrorReason.INVALID_VALUE, "seed"],
    [{ seed: 2_147_483_648 }, ErrorReason.INVALID_VALUE, "seed"],
    [{ seed: 1.5 }, ErrorReason.INVALID_TYPE, "seed"],
    [{ seed: "7" }, ErrorReason.INVALID_TYPE, "seed"],
    [{ negativePrompt: 7 }, ErrorReason.INVALID_TYPE, "negativePrompt"],
    [{ negativePrompt: "x".repeat(32_001) }, ErrorReason.INVALID_VALUE, "negativePrompt"],
    [{ metadata: [] }, ErrorReason.INVALID_TYPE, "metadata"],
    [{ metadata: { a: 1 } }, ErrorReason.INVALID_TYPE, "metadata.a"],
    [{ metadata: { ["n".repeat(65)]: "" } }, ErrorReason.INVALID_VALUE, "metadata"],
    [{ metadata: { a: "x".repeat(513) } }, ErrorReason.INVALID_VALUE, "metadata.a"],
    [JSON.parse('{"metadata":{"__proto__":"x"}}'), ErrorReason.INVALID_VALUE, "metadata"],
    [
      { metadata: Object.fromEntries(Array.from({ length: 17 }, (_, i) => [`n${i}`, ""])) },
      ErrorReason.INVALID_VALUE,
      "metadata",
    ],
  ])("%j is refused", (more, reason, param) => {
    for (const error of [refusal("image", image(more)), refusal("music", music(more))]) {
      expect(error).toMatchObject({ reason, param });
    }
  });

  test("a video and a piece of music are one each", () => {
    for (const n of [1, null]) expect(check("video", video({ n })).spec.kind).toBe("video");
    for (const n of [0, 2]) {
      expect(refusal("video", video({ n }))).toEqual(unsupported("n"));
      expect(refusal("music", music({ n }))).toEqual(unsupported("n"));
    }
  });

  test("metadata of the most and longest pairs is taken in ASCII, and refused where it has far more bytes", () => {
    const metadata = notes("x");
    expect(check("image", image({ metadata })).spec.metadata).toEqual(Object.entries(metadata));
    for (const character of ["\u{1f98a}", "\u0001"]) {
      const refused = refusal("image", image({ metadata: notes(character) }));
      expect(refused).toMatchObject({ reason: ErrorReason.INVALID_VALUE, param: "metadata" });
    }
  });

  test("a job that is repeated asks for the same", () => {
    const metadata = { order: "7", empty: "" };
    const { spec } = check("image", image({ seed: 7, metadata }));
    expect(spec.metadata).toEqual(Object.entries(metadata));
    const again = check("image", bodyOf({ spec, pinned: [], webhook: undefined }));
    expect(again.spec).toEqual(spec);
  });
});

/** As many pairs as allowed, each of the allowed length, of one character. */
function notes(character: string): Record<string, string> {
  const names = Array.from({ length: 16 }, (_, i) => String.fromCharCode(97 + i) + "n".repeat(63));
  return Object.fromEntries(names.map((name) => [name, character.repeat(512)]));
}
