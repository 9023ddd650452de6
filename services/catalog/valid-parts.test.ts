import { describe, expect, test } from "vitest";
import { parseCatalog } from "./parse.ts";

/** A chat, an image, a video and a speech model. A fresh copy each time, so that a test can break it. */
function good() {
  return {
    upstreams: {
      studio: { protocol: "builtin" },
      local: { protocol: "openai", baseUrl: "http://127.0.0.1:11434/v1" },
    },
    models: [
      {
        id: "c",
        kind: "chat",
        upstream: "local",
        maxInputTokens: 1_000,
        maxOutputTokens: 100,
        reasoningEfforts: ["low"],
        pricing: { inputUsdMicrosPerMillionTokens: 10, outputUsdMicrosPerMillionTokens: 30 },
      },
      { id: "i", kind: "image", upstream: "studio", creditPrice: 5 },
      {
        id: "v",
        kind: "video",
        upstream: "studio",
        maxReferences: 2,
        availableAspectRatios: ["auto"],
        videoOptions: [{ durationSeconds: 6, resolution: "480p", modes: ["t2v"], credits: 45 }],
      },
      {
        id: "s",
        kind: "speech",
        upstream: "studio",
        voices: ["alloy"],
        pricing: { usdMicrosPerMillionCharacters: 15 },
      },
    ] as Record<string, unknown>[],
  };
}
type Good = ReturnType<typeof good>;

const pathsOf = (text: string) => parseCatalog(text).faults?.map((fault) => fault.path);

describe("faults of single keys and faults between entries come together", () => {
  const changed = (change: (file: Good) => void) => {
    const file = good();
    change(file);
    return pathsOf(JSON.stringify(file))?.sort();
  };
  const chat = (file: Good) => file.models[0] as Record<string, unknown>;
  const video = (file: Good) => file.models[2] as Record<string, unknown>;
  const row = { durationSeconds: 6, resolution: "480p", modes: ["t2v"], credits: 1 };

  test("the file to be broken has none", () => {
    expect(pathsOf(JSON.stringify(good()))).toBeUndefined();
  });

  test("of different models, of one, and of a list's items", () => {
    const paths = changed((file) => {
      Object.assign(file, { extra: 1 });
      Object.assign(chat(file), {
        upstream: "nowhere",
        maxOutputTokens: 2_000,
        safetyMarginTokens: -1,
        colour: "red",
        tools: ["*", "function"],
        reasoningAliases: { Fast: "none" },
        fallbackUpstreams: ["studio", 5, "missing"],
      });
      Object.assign(file.models[1] ?? {}, { id: "c", creditPrice: "5" });
      Object.assign(video(file), {
        maxReferences: 0,
        firstLastFrame: true,
        videoOptions: [row, { ...row, credits: -1 }, { ...row, durationSeconds: "6" }, row],
      });
    });
    expect(paths).toEqual(
      [
        "extra",
        "models[0].colour",
        "models[0].fallbackUpstreams[1]",
        "models[0].fallbackUpstreams[2]",
        "models[0].maxOutputTokens",
        "models[0].reasoningAliases.Fast",
        "models[0].safetyMarginTokens",
        "models[0].tools",
        "models[0].upstream",
        "models[1].creditPrice",
        "models[1].id",
        "models[2].firstLastFrame",
        "models[2].videoOptions[1].credits",
        "models[2].videoOptions[1].modes[0]",
        "models[2].videoOptions[2].durationSeconds",
        "models[2].videoOptions[3].modes[0]",
      ].sort(),
    );
  });

  test("what is at fault itself is not the ground of another fault", () => {
    const paths = changed((file) => {
      // A broken upstream still exists, and a limit that cannot be read is not exceeded.
      Object.assign(file.upstreams.local ?? {}, { protocol: "grpc" });
      Object.assign(chat(file), { maxInputTokens: "many", maxOutputTokens: 5_000_000 });
      Object.assign(video(file), { maxReferences: "two", firstLastFrame: true, videoOptions: [] });
      Object.assign(file.models[3] ?? {}, { kind: "sound", upstream: "nowhere" });
    });
    expect(paths).toEqual([
      "models[0].maxInputTokens",
      "models[2].maxReferences",
      "models[2].videoOptions",
      "models[3].kind",
      "upstreams.local.protocol",
    ]);
  });

  test("a list in place of everything is one fault", () => {
    expect(pathsOf("[]")).toEqual([""]);
    expect(changed((file) => Object.assign(file, { upstreams: 5 }))).toEqual(["upstreams"]);
  });
});
