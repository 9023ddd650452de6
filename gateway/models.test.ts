import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import {
  ModelKind,
  ModelSchema,
  NativeAudio,
  SafetyCheck,
  SnapshotSchema,
  UpstreamProtocol,
  VideoMode,
} from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { lifeHeaders, toCatalogEntry } from "./models.ts";

const secrets = {
  upstream: "secret-place",
  upstreamModel: "secret-name",
  fallbackUpstreams: ["secret-fallback"],
};
type Spec = MessageInitShape<typeof ModelSchema>["spec"];

const snapshot = create(SnapshotSchema, {
  version: "0123456789abcdef",
  developerPrompt: "secret prompt of all",
  upstreams: {
    "secret-place": {
      name: "secret-place",
      protocol: UpstreamProtocol.CHAT_COMPLETIONS,
      baseUrl: "http://secret-host/v1",
      apiKeyEnv: "SECRET_KEY",
    },
    "secret-fallback": { name: "secret-fallback", protocol: UpstreamProtocol.CHAT_COMPLETIONS },
    open: { name: "open", protocol: UpstreamProtocol.OPENAI },
  },
});

const chat = create(ModelSchema, {
  ...secrets,
  id: "chat-1",
  kind: ModelKind.CHAT,
  name: "Chat One",
  active: true,
  isDefault: true,
  spec: {
    case: "chat",
    value: {
      maxInputTokens: 128_000n,
      maxOutputTokens: 16_384n,
      safetyMarginTokens: 512n,
      reasoningEfforts: ["low", "high"],
      reasoningAliases: { fast: "low" },
      inputModalities: ["text"],
      tools: ["function"],
      developerPrompt: "secret prompt of one",
      inputUsdMicrosPerMillionTokens: 250_000n,
      cachedInputUsdMicrosPerMillionTokens: 25_000n,
      outputUsdMicrosPerMillionTokens: 2_000_000n,
      serviceTier: "secret-tier",
    },
  },
});

const video = create(ModelSchema, {
  ...secrets,
  id: "video-1",
  kind: ModelKind.VIDEO,
  name: "Video One",
  active: true,
  spec: {
    case: "video",
    value: {
      options: [
        {
          durationSeconds: 6,
          resolution: "480p",
          modes: [VideoMode.T2V],
          credits: 45n,
          active: true,
        },
        {
          durationSeconds: 6,
          resolution: "720p",
          modes: [VideoMode.I2V],
          credits: 90n,
          active: false,
        },
      ],
      aspectRatios: ["auto", "16:9"],
      maxReferences: 2,
      i2vSafetyCheck: SafetyCheck.NONE,
      nativeAudio: NativeAudio.STEREO,
    },
  },
});

const ofAnthropic = (display_name: string) => ({
  ...{ type: "model", display_name, created_at: "1970-01-01T00:00:00.000Z" },
});

describe("an entry of GET /models", () => {
  test("of a chat model has its limits, efforts and prices", () => {
    expect(toCatalogEntry(chat, snapshot)).toEqual({
      id: "chat-1",
      object: "model",
      created: 0,
      owned_by: "genmesh",
      ...ofAnthropic("Chat One"),
      kind: "chat",
      name: "Chat One",
      default: true,
      maxInputTokens: 128_000,
      maxOutputTokens: 16_384,
      safetyMarginTokens: 512,
      reasoningEfforts: ["low", "high"],
      reasoningAliases: { fast: "low" },
      inputModalities: ["text"],
      tools: ["function"],
      pricing: {
        inputUsdMicrosPerMillionTokens: 250_000,
        cachedInputUsdMicrosPerMillionTokens: 25_000,
        outputUsdMicrosPerMillionTokens: 2_000_000,
      },
      responsesCapable: false,
    });
  });

  test("says that a model is Responses capable where one of its upstreams is", () => {
    const model = create(ModelSchema, { ...chat, fallbackUpstreams: ["secret-fallback", "open"] });
    expect(toCatalogEntry(model, snapshot)).toMatchObject({ responsesCapable: true });
  });

  test("of a video model leaves inactive rows out of everything", () => {
    const row = { durationSeconds: 6, resolution: "480p", modes: ["t2v"], credits: 45 };
    expect(toCatalogEntry(video, snapshot)).toEqual({
      id: "video-1",
      object: "model",
      created: 0,
      owned_by: "genmesh",
      ...ofAnthropic("Video One"),
      kind: "video",
      name: "Video One",
      default: false,
      t2vEnabled: true,
      i2vEnabled: false,
      videoOptions: [row],
      availableOptions: [row],
      availableAspectRatios: ["auto", "16:9"],
      durations: [6],
      resolutions: ["480p"],
      sizes: ["854x480", "480x854", "480x480"],
      maxReferences: 2,
      safetyCheck: { i2v: "none" },
      nativeAudio: "stereo",
      firstLastFrame: false,
      maxPromptCharacters: 32_000,
      optionalParameters: ["references"],
    });
  });

  test("of the other kinds has prices and choices", () => {
    const entry = (spec: Parameters<typeof create<typeof ModelSchema>>[1]) =>
      toCatalogEntry(create(ModelSchema, { ...secrets, id: "m", ...spec }), snapshot);
    expect(
      entry({
        kind: ModelKind.IMAGE,
        spec: { case: "image", value: { creditPrice: 5n, sizes: ["1024x1024"], maxReferences: 4 } },
      }),
    ).toMatchObject({ kind: "image", creditPrice: 5, sizes: ["auto", "1024x1024"], maxImages: 10 });
    expect(
      entry({
        kind: ModelKind.SPEECH,
        spec: { case: "speech", value: { voices: ["alloy"], usdMicrosPerMillionCharacters: 15n } },
      }),
    ).toMatchObject({
      kind: "speech",
      voices: ["alloy"],
      formats: ["mp3"],
      languages: [],
      speed: { min: 0.25, max: 4, default: 1 },
      pricing: { usdMicrosPerMillionCharacters: 15 },
    });
    expect(
      entry({ kind: ModelKind.MUSIC, spec: { case: "music", value: { creditPrice: 20n } } }),
    ).toMatchObject({ kind: "music", creditPrice: 20, modes: ["instrumental", "lyrics"] });
  });

  test("names the optional parameters that all of its upstreams take, in each of its modes", () => {
    const { OPENAI, GENMESH, BUILTIN, FAL } = UpstreamProtocol;
    const upstreams = { openai: OPENAI, genmesh: GENMESH, builtin: BUILTIN, fal: FAL };
    const all = create(SnapshotSchema, {
      upstreams: Object.fromEntries(
        Object.entries(upstreams).map(([name, protocol]) => [name, { name, protocol }]),
      ),
    });
    const taken = (model: MessageInitShape<typeof ModelSchema>) =>
      toCatalogEntry(create(ModelSchema, { id: "m", ...model }), all).optionalParameters;
    const image = { case: "image", value: { maxReferences: 2 } } as const;
    expect(taken({ upstream: "genmesh", spec: image })).toEqual([
      ...["negativePrompt", "seed", "n", "references"],
    ]);
    expect(taken({ upstream: "genmesh", fallbackUpstreams: ["builtin"], spec: image })).toEqual([
      ...["seed", "n", "references"],
    ]);
    const one = { case: "image", value: { maxImages: 1 } } as const;
    expect(taken({ upstream: "openai", spec: one })).toEqual([]);
    expect(taken({ upstream: "builtin", spec: { case: "music", value: {} } })).toEqual(["seed"]);
    const row = { durationSeconds: 5, active: true, modes: [VideoMode.T2V, VideoMode.I2V] };
    const film = {
      case: "video" as const,
      value: { options: [row], maxReferences: 1 },
    } satisfies Spec;
    const call = (mode: string, input: object) => ({ mode, input: JSON.stringify(input) });
    const both = { seed: "${seed}", negative: "${negativePrompt}" };
    expect(
      taken({ upstream: "fal", spec: film, calls: [call("t2v", both), call("i2v", both)] }),
    ).toEqual(["negativePrompt", "seed", "references"]);
    expect(
      taken({
        ...{ upstream: "fal", spec: film },
        calls: [call("t2v", both), call("i2v", { seed: "${seed}" })],
      }),
    ).toEqual(["seed", "references"]);
    expect(taken({ upstream: "openai", spec: { case: "speech", value: {} } })).toBeUndefined();
  });

  test("shows nothing of prompts, upstreams, their names and keys", () => {
    for (const model of [chat, video]) {
      expect(JSON.stringify(toCatalogEntry(model, snapshot))).not.toMatch(/secret/i);
    }
  });

  test("is plain JSON: numbers, no bigints", () => {
    const entry = toCatalogEntry(chat, snapshot);
    expect(JSON.parse(JSON.stringify(entry))).toEqual(entry);
  });
});

test("the announced end of a model is in its entry, and in headers in the form of their RFCs", () => {
  const ending = create(ModelSchema, {
    ...chat,
    deprecatedAtMs: 1_688_169_599_000n,
    shutdownAtMs: 1_719_791_999_000n,
  });
  expect(toCatalogEntry(ending, snapshot)).toMatchObject({
    deprecatedAt: "2023-06-30T23:59:59.000Z",
    shutdownDate: "2024-06-30T23:59:59.000Z",
  });
  // The example of RFC 9745, section 4.
  expect(lifeHeaders(ending)).toEqual({
    deprecation: "@1688169599",
    sunset: "Sun, 30 Jun 2024 23:59:59 GMT",
  });
  expect(lifeHeaders(chat)).toEqual({});
  expect(Object.keys(toCatalogEntry(chat, snapshot))).not.toContain("deprecatedAt");
});
