import { describe, expect, test } from "vitest";
import {
  ModelKind,
  NativeAudio,
  OutputLimit,
  SafetyCheck,
} from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { maxFaults, maxFileBytes } from "./limits.ts";
import { parseCatalog } from "./parse.ts";

/** One small model of each kind. A fresh copy each time, so that a test can break it. */
function good() {
  const price = { inputUsdMicrosPerMillionTokens: 10, outputUsdMicrosPerMillionTokens: 30 };
  return {
    upstreams: {
      studio: { protocol: "builtin" },
      local: { protocol: "openai", baseUrl: "http://127.0.0.1:11434/v1/" },
      legacy: { protocol: "chat-completions", baseUrl: "https://llm.example.com/v1" },
    } as Record<string, Record<string, unknown>>,
    models: [
      {
        id: "c",
        kind: "chat",
        upstream: "local",
        maxInputTokens: 1000,
        maxOutputTokens: 100,
        reasoningEfforts: ["low", "high"],
        reasoningAliases: { Fast: "low" },
        pricing: price,
      },
      { id: "i", kind: "image", upstream: "studio", creditPrice: 5 },
      {
        id: "v",
        kind: "video",
        upstream: "studio",
        maxReferences: 2,
        availableAspectRatios: ["auto"],
        videoOptions: [
          { durationSeconds: 6, resolution: "480p", modes: ["t2v", "i2v"], credits: 45 },
          { durationSeconds: 6, resolution: "720p", modes: ["t2v"], credits: 90 },
        ],
      },
      {
        id: "s",
        kind: "speech",
        upstream: "studio",
        voices: ["alloy"],
        pricing: { usdMicrosPerMillionCharacters: 15 },
      },
      { id: "m", kind: "music", upstream: "studio", creditPrice: 20 },
    ] as Record<string, unknown>[],
  };
}
type Good = ReturnType<typeof good>;

/** Replaces `path` in the good catalog. `undefined` removes it. */
function broken(path: string, value: unknown) {
  const file: Good = good();
  const parts = path.split(".");
  const last = parts.pop() ?? "";
  const parent = parts.reduce<unknown>(
    (node, part) => (node as Record<string, unknown>)[part],
    file,
  );
  (parent as Record<string, unknown>)[last] = value;
  return JSON.stringify(file);
}

const pathsOf = (text: string) => parseCatalog(text).faults?.map((fault) => fault.path);
const snapshotOf = (file: unknown) => {
  const { snapshot, faults } = parseCatalog(typeof file === "string" ? file : JSON.stringify(file));
  if (!snapshot) throw new Error(JSON.stringify(faults));
  return snapshot;
};

describe("a broken file names each fault with its path", () => {
  const row = { durationSeconds: 6, resolution: "480p", modes: ["t2v"], credits: 1 };
  test.each<[place: string, value: unknown, path: string]>([
    ["extra", 1, "extra"],
    ["upstreams", undefined, "upstreams"],
    ["upstreams", [], "upstreams"],
    ["models", undefined, "models"],
    ["models", [], "models"],
    ["developerPrompt", 7, "developerPrompt"],
    // Upstreams
    ["upstreams.local.protocol", "grpc", "upstreams.local.protocol"],
    ["upstreams.local.protocol", undefined, "upstreams.local.protocol"],
    ["upstreams.local.baseUrl", undefined, "upstreams.local.baseUrl"],
    ["upstreams.local.baseUrl", "ftp://host/v1", "upstreams.local.baseUrl"],
    ["upstreams.local.baseUrl", "localhost:80", "upstreams.local.baseUrl"],
    ["upstreams.local.baseUrl", "https://user:secret@host/v1", "upstreams.local.baseUrl"],
    ["upstreams.local.baseUrl", "https://host/v1?key=1", "upstreams.local.baseUrl"],
    ["upstreams.local.apiKey", "sk-1", "upstreams.local.apiKey"],
    ["upstreams.local.apiKeyEnv", "sk-1234", "upstreams.local.apiKeyEnv"],
    ["upstreams.local.timeoutMs", 0, "upstreams.local.timeoutMs"],
    ["upstreams.local.timeoutMs", 2 ** 31, "upstreams.local.timeoutMs"],
    ["upstreams.local.tokenDelayMs", 5, "upstreams.local.tokenDelayMs"],
    ["upstreams.local.maxConcurrent", 1.5, "upstreams.local.maxConcurrent"],
    ["upstreams.legacy.inlineImages", true, "upstreams.legacy.inlineImages"],
    ["upstreams.legacy.outputLimit", "num_predict", "upstreams.legacy.outputLimit"],
    ["upstreams.studio.outputLimit", "none", "upstreams.studio.outputLimit"],
    ["upstreams.studio.baseUrl", "http://host", "upstreams.studio.baseUrl"],
    ["upstreams.studio.tokenDelayMs", -1, "upstreams.studio.tokenDelayMs"],
    ["upstreams.a b", { protocol: "builtin" }, 'upstreams["a b"]'],
    // Every model
    ["models.0", "chat", "models[0]"],
    ["models.0.kind", "text", "models[0].kind"],
    ["models.0.kind", undefined, "models[0].kind"],
    ["models.0.id", undefined, "models[0].id"],
    ["models.0.id", "a b", "models[0].id"],
    ["models.1.id", "c", "models[1].id"],
    ["models.0.name", "", "models[0].name"],
    ["models.0.active", "yes", "models[0].active"],
    ["models.0.colour", "red", "models[0].colour"],
    ["models.0.upstream", undefined, "models[0].upstream"],
    ["models.0.upstream", "nowhere", "models[0].upstream"],
    ["models.0.upstream", "constructor", "models[0].upstream"],
    ["models.0.fallbackUpstreams", ["studio", "nowhere"], "models[0].fallbackUpstreams[1]"],
    ["models.0.fallbackUpstreams", ["studio", "studio"], "models[0].fallbackUpstreams[1]"],
    ["models.0.fallbackUpstreams", ["local"], "models[0].fallbackUpstreams[0]"],
    ["models.1.upstream", "legacy", "models[1].upstream"],
    ["models.4.upstream", "local", "models[4].upstream"],
    ["models.2.fallbackUpstreams", ["legacy"], "models[2].fallbackUpstreams[0]"],
    // Chat
    ["models.0.pricing", undefined, "models[0].pricing"],
    [
      "models.0.pricing.inputUsdMicrosPerMillionTokens",
      undefined,
      "models[0].pricing.inputUsdMicrosPerMillionTokens",
    ],
    [
      "models.0.pricing.outputUsdMicrosPerMillionTokens",
      -1,
      "models[0].pricing.outputUsdMicrosPerMillionTokens",
    ],
    [
      "models.0.pricing.outputUsdMicrosPerMillionTokens",
      0.5,
      "models[0].pricing.outputUsdMicrosPerMillionTokens",
    ],
    [
      "models.0.pricing.outputUsdMicrosPerMillionTokens",
      "2",
      "models[0].pricing.outputUsdMicrosPerMillionTokens",
    ],
    [
      "models.0.pricing.outputUsdMicrosPerMillionTokens",
      2 ** 60,
      "models[0].pricing.outputUsdMicrosPerMillionTokens",
    ],
    ["models.0.pricing.perCharacter", 1, "models[0].pricing.perCharacter"],
    ["models.0.maxInputTokens", 0, "models[0].maxInputTokens"],
    ["models.0.maxInputTokens", 2 ** 40, "models[0].maxInputTokens"],
    ["models.0.maxOutputTokens", 1001, "models[0].maxOutputTokens"],
    ["models.0.safetyMarginTokens", 1000, "models[0].safetyMarginTokens"],
    ["models.0.reasoningEfforts", ["low", "low"], "models[0].reasoningEfforts[1]"],
    ["models.0.reasoningAliases", { deep: "max" }, "models[0].reasoningAliases.deep"],
    ["models.0.reasoningAliases", { deep: "low", Deep: "high" }, "models[0].reasoningAliases.Deep"],
    ["models.0.reasoningAliases", { LOW: "high" }, "models[0].reasoningAliases.LOW"],
    ["models.0.inputModalities", ["image"], "models[0].inputModalities"],
    ["models.0.inputModalities", ["text", "smell"], "models[0].inputModalities[1]"],
    ["models.0.tools", ["*", "function"], "models[0].tools"],
    ["models.0.maxConcurrent", 4, "models[0].maxConcurrent"],
    // Image, speech, music
    ["models.1.creditPrice", undefined, "models[1].creditPrice"],
    ["models.1.creditPrice", -5, "models[1].creditPrice"],
    ["models.1.sizes", ["1024x1024", "auto"], "models[1].sizes[1]"],
    ["models.1.availableAspectRatios", ["16:9", "16/9"], "models[1].availableAspectRatios[1]"],
    ["models.1.availableAspectRatios", ["16:9", "16:9"], "models[1].availableAspectRatios[1]"],
    ["models.1.maxReferences", -1, "models[1].maxReferences"],
    ["models.3.voices", [], "models[3].voices"],
    ["models.3.pricing", undefined, "models[3].pricing"],
    ["models.3.languages", [1], "models[3].languages[0]"],
    ["models.4.creditPrice", undefined, "models[4].creditPrice"],
    ["models.4.maxConcurrent", 0, "models[4].maxConcurrent"],
    // Video
    ["models.2.videoOptions", undefined, "models[2].videoOptions"],
    ["models.2.videoOptions", [], "models[2].videoOptions"],
    ["models.2.videoOptions", [{ ...row, active: false }], "models[2].videoOptions"],
    ["models.2.videoOptions.0.credits", undefined, "models[2].videoOptions[0].credits"],
    ["models.2.videoOptions.1.durationSeconds", "6s", "models[2].videoOptions[1].durationSeconds"],
    ["models.2.videoOptions.1.resolution", "720", "models[2].videoOptions[1].resolution"],
    ["models.2.videoOptions.1.modes", [], "models[2].videoOptions[1].modes"],
    ["models.2.videoOptions.1.modes", ["v2v"], "models[2].videoOptions[1].modes[0]"],
    ["models.2.videoOptions.1.price", 1, "models[2].videoOptions[1].price"],
    ["models.2.videoOptions.2", row, "models[2].videoOptions[2].modes[0]"],
    ["models.2.maxReferences", 0, "models[2].videoOptions[0].modes[1]"],
    ["models.2.maxReferences", 40_000_000_000, "models[2].maxReferences"],
    ["models.2.availableAspectRatios", [], "models[2].availableAspectRatios"],
    ["models.2.availableAspectRatios", ["auto", "0:9"], "models[2].availableAspectRatios[1]"],
    ["models.2.safetyCheck", { t2v: "some" }, "models[2].safetyCheck.t2v"],
    ["models.2.safetyCheck", { v2v: "none" }, "models[2].safetyCheck.v2v"],
    ["models.2.nativeAudio", true, "models[2].nativeAudio"],
  ])("%s = %j is a fault at %s", (place, value, path) => {
    expect(pathsOf(broken(place, value))?.[0]).toBe(path);
  });

  test.each<[model: number, offer: object, path: string]>([
    [1, { maxReferences: 8 }, "maxReferences"],
    [1, { sizes: ["64x64", "8x64"] }, "sizes[1]"],
    [1, { sizes: ["5121x64"] }, "sizes[0]"],
    [1, { sizes: ["4096x4096"] }, "sizes[0]"],
    [1, { resolutions: ["1k", "8k"] }, "resolutions[1]"],
    [1, { resolutions: ["hd"] }, "resolutions[0]"],
    [2, { maxReferences: 8 }, "maxReferences"],
    [2, { upstream: "local" }, "maxReferences"],
    [2, { fallbackUpstreams: ["local"] }, "maxReferences"],
    [2, { videoOptions: [{ ...row, durationSeconds: 31 }] }, "videoOptions[0].durationSeconds"],
    [2, { videoOptions: [row, { ...row, resolution: "1440p" }] }, "videoOptions[1].resolution"],
  ])("models[%i] offers %j, which an upstream cannot make", (model, offer, path) => {
    const file = good();
    Object.assign(file.models[model] ?? {}, offer);
    expect(pathsOf(JSON.stringify(file))).toEqual([`models[${model}].${path}`]);
  });

  test("what another upstream is to make is its own to know", () => {
    const file = good();
    const more = { ...row, durationSeconds: 60, resolution: "2160p" };
    Object.assign(file.models[1] ?? {}, { upstream: "local", maxReferences: 16, sizes: ["10x10"] });
    Object.assign(file.models[2] ?? {}, {
      ...{ upstream: "local", maxReferences: 1, videoOptions: [more] },
    });
    expect(pathsOf(JSON.stringify(file))).toBeUndefined();
  });

  test("firstLastFrame needs two references, and only then", () => {
    const file = good();
    Object.assign(file.models[2] ?? {}, { firstLastFrame: true, maxReferences: 1 });
    expect(pathsOf(JSON.stringify(file))).toEqual(["models[2].firstLastFrame"]);
    Object.assign(file.models[2] ?? {}, { maxReferences: 2 });
    expect(pathsOf(JSON.stringify(file))).toBeUndefined();
  });

  test("one default a kind", () => {
    const file = good();
    const [chat] = file.models;
    Object.assign(chat ?? {}, { default: true });
    Object.assign(file.models[1] ?? {}, { default: true });
    expect(pathsOf(JSON.stringify(file))).toBeUndefined();
    file.models.push({ ...chat, id: "c2" });
    expect(pathsOf(JSON.stringify(file))).toEqual(["models[5].default"]);
  });

  test("all of them at once, in the words of the file and without its values", () => {
    const file = good();
    Object.assign(file.upstreams.local ?? {}, { apiKey: "sk-hidden", timeoutMs: "sk-hidden" });
    Object.assign(file.models[3] ?? {}, { voices: "alloy", name: undefined, kinds: 1 });
    const faults = parseCatalog(JSON.stringify(file, null, 2)).faults ?? [];
    expect(faults.map(({ path, message }) => `${path}: ${message}`)).toEqual([
      "upstreams.local.timeoutMs: must be a number (line 10, column 7)",
      "upstreams.local.apiKey: unknown key (line 9, column 7)",
      expect.stringMatching(/^models\[3\]\.voices: must be a list \(line \d+, column \d+\)$/),
      expect.stringMatching(/^models\[3\]\.kinds: unknown key \(line \d+, column \d+\)$/),
    ]);
    expect(JSON.stringify(faults)).not.toContain("sk-hidden");
  });
});

describe("the notation itself", () => {
  const models = "models:\n  - { id: m, kind: music, upstream: a, creditPrice: 1 }\n";
  const upstreams = "upstreams: { a: { protocol: builtin } }\n";

  test.each<[what: string, text: string, path: string]>([
    ["a duplicate key", `${upstreams}${models}upstreams: {}\n`, "upstreams"],
    [
      "a duplicate key inside",
      `upstreams: { a: { protocol: builtin, protocol: openai } }\n${models}`,
      "upstreams.a.protocol",
    ],
    [
      "a key that objects cannot hold",
      `upstreams: { __proto__: { protocol: builtin } }\n${models}`,
      "upstreams.__proto__",
    ],
    ["a merge key", `${upstreams}${models}<<: { developerPrompt: x }\n`, '["<<"]'],
    ["an unknown tag", `${upstreams}${models}developerPrompt: !secret x\n`, "developerPrompt"],
    [
      "a type beyond the core",
      `${upstreams}${models}developerPrompt: !!timestamp 2020-01-01\n`,
      "developerPrompt",
    ],
    ["a second document", `${upstreams}${models}---\na: 1\n`, ""],
    ["an empty file", "", ""],
    ["a comment alone", "# nothing\n", ""],
    ["text", "hello", ""],
    ["a list", "[]", ""],
    ["broken syntax", "models: [", "models"],
    ["nesting without end", "[".repeat(50_000), ""],
    ["an alias without an anchor", `${upstreams}models: *nothing\n`, ""],
    ["an alias of itself", `${upstreams}models: &m [*m]\n`, "models[0]"],
    ["too many bytes", `#${" ".repeat(maxFileBytes)}\n${upstreams}${models}`, ""],
  ])("%s is refused", (_, text, path) => {
    expect(parseCatalog(`${upstreams}${models}`).faults).toBeUndefined();
    const faults = parseCatalog(text).faults ?? [];
    expect(faults.length).toBeGreaterThan(0);
    // Deep nesting is reported at the place where the reader stopped.
    if (!text.startsWith("[[")) expect(faults[0]?.path).toBe(path);
    expect(faults.length).toBeLessThanOrEqual(maxFaults + 1);
  });

  test("aliases that unfold without end are refused", () => {
    const layers = Array.from(
      { length: 12 },
      (_, i) => `x${i + 1}: &x${i + 1} [${Array(9).fill(`*x${i}`)}]`,
    );
    expect(parseCatalog(`x0: &x0 [a]\n${layers.join("\n")}`).faults).toHaveLength(1);
  });

  test("a snapshot that its aliases make too large is refused", () => {
    const chat =
      "kind: chat, upstream: a, maxInputTokens: 90000, maxOutputTokens: 9, developerPrompt: *p";
    const price =
      "pricing: { inputUsdMicrosPerMillionTokens: 1, outputUsdMicrosPerMillionTokens: 1 }";
    const entries = Array.from({ length: 60 }, (_, i) => `  - { id: m${i}, ${chat}, ${price} }`);
    const text = `developerPrompt: &p ${"x".repeat(60_000)}\n${upstreams}models:\n${entries.join("\n")}\n`;
    expect(pathsOf(text)).toEqual([""]);
  });

  test("a ratio and a 'no' without quotes are text, in a file that claims any version", () => {
    const text = `%YAML 1.1\n---\n${upstreams}models:
  - { id: i, kind: image, upstream: a, creditPrice: 1, availableAspectRatios: [16:9] }
  - { id: s, kind: speech, upstream: a, voices: [v], languages: [no], pricing: { usdMicrosPerMillionCharacters: 1 } }`;
    const [image, speech] = snapshotOf(text).models;
    expect(image?.spec.value).toMatchObject({ aspectRatios: ["16:9"] });
    expect(speech?.spec.value).toMatchObject({ languages: ["no"] });
  });
});

describe("a good file", () => {
  test("becomes a snapshot with its defaults filled in", () => {
    const snapshot = snapshotOf(good());
    expect(snapshot.upstreams.local).toMatchObject({
      name: "local",
      baseUrl: "http://127.0.0.1:11434/v1",
      apiKeyEnv: "",
      inlineImages: false,
      timeoutMs: 600_000n,
      idleTimeoutMs: 120_000n,
      connectTimeoutMs: 10_000n,
      maxConcurrent: 0,
    });
    expect(snapshot.upstreams.studio).toMatchObject({ baseUrl: "", tokenDelayMs: 15 });
    const named = snapshotOf(broken("upstreams.local.outputLimit", "max_tokens"));
    expect([snapshot, named].map(({ upstreams }) => upstreams.local?.outputLimit)).toEqual([
      OutputLimit.UNSPECIFIED,
      OutputLimit.MAX_TOKENS,
    ]);
    const [chat, image, video] = snapshot.models;
    expect(chat).toMatchObject({
      name: "c",
      upstreamModel: "c",
      active: true,
      isDefault: false,
      kind: ModelKind.CHAT,
      spec: {
        case: "chat",
        value: {
          cachedInputUsdMicrosPerMillionTokens: 10n,
          reasoningAliases: { fast: "low" },
          inputModalities: ["text"],
          tools: [],
          serviceTier: "",
          passParameters: [],
        },
      },
    });
    expect(image?.spec.value).toMatchObject({ creditPrice: 5n, sizes: [], maxReferences: 0 });
    expect(video?.spec.value).toMatchObject({
      t2vSafetyCheck: SafetyCheck.UNSPECIFIED,
      nativeAudio: NativeAudio.NONE,
      firstLastFrame: false,
    });
  });

  test("an empty developer prompt of a model is not the absence of one", () => {
    const file = good();
    Object.assign(file.models[0] ?? {}, { developerPrompt: "" });
    expect(snapshotOf(file).models[0]?.spec.value).toMatchObject({ developerPrompt: "" });
  });

  test("an inactive row may stand beside its successor", () => {
    const file = good();
    const rows = (file.models[2]?.videoOptions ?? []) as Record<string, unknown>[];
    rows.push({ ...rows[0], credits: 50, active: false });
    expect(pathsOf(JSON.stringify(file))).toBeUndefined();
  });

  test("has a version that is its content's, not its spelling's", () => {
    const file = good();
    const { version } = snapshotOf(file);
    expect(version).toMatch(/^[0-9a-f]{16}$/);
    const { upstreams, models } = file;
    const turned = Object.fromEntries(Object.entries(upstreams).reverse());
    expect(snapshotOf(JSON.stringify({ models, upstreams: turned }, null, 3)).version).toBe(
      version,
    );
    Object.assign(models[4] ?? {}, { creditPrice: 21 });
    expect(snapshotOf(file).version).not.toBe(version);
  });
});
