import { describe, expect, test } from "vitest";
import { parseCatalog } from "./parse.ts";

const price = { inputUsdMicrosPerMillionTokens: 10, outputUsdMicrosPerMillionTokens: 30 };

/** A catalog with a chat model, whose upstreams are these. `more`: further keys of the model. */
function catalog(upstreams: Record<string, object>, more: object = {}, rest: object = {}): string {
  const model = { id: "c", kind: "chat", upstream: "main", maxInputTokens: 1000, ...more };
  const models = [{ maxOutputTokens: 100, pricing: price, ...model }];
  return JSON.stringify({ upstreams, models, ...rest });
}

const openai = (keys: object = {}) => ({
  ...{ protocol: "openai", baseUrl: "https://up.example.com/v1" },
  ...keys,
});

const faultsOf = (text: string) => parseCatalog(text).faults?.map(({ path }) => path);

describe("the key of an upstream", () => {
  test("is in a variable or in a file", () => {
    const upstreams = { main: openai({ apiKeyFile: "/keys/main" }) };
    expect(parseCatalog(catalog(upstreams)).snapshot?.upstreams.main).toMatchObject({
      apiKeyEnv: "",
      apiKeyFile: "/keys/main",
    });
  });

  test.each([
    [openai({ apiKeyFile: "keys/main" })],
    [openai({ apiKeyFile: "/" })],
    [openai({ apiKeyEnv: "KEY", apiKeyFile: "/keys/main" })],
    [openai({ apiKeyEnvs: ["A", "B"], apiKeyFile: "/keys/main" })],
    [{ protocol: "builtin", apiKeyFile: "/keys/main" }],
  ])("is refused as %j", (main) => {
    expect(faultsOf(catalog({ main }))).toEqual(["upstreams.main.apiKeyFile"]);
  });
});

describe("several keys of an upstream", () => {
  const two = openai({ apiKeyEnvs: ["A", "B"], maxConcurrent: 4 });

  test("are entries of their own, which share its requests", () => {
    const { snapshot } = parseCatalog(catalog({ main: two }));
    expect(snapshot?.upstreams).toMatchObject({
      main: { name: "main", apiKeyEnv: "A", maxConcurrent: 4 },
      "main#2": { name: "main#2", apiKeyEnv: "B", maxConcurrent: 4 },
    });
    expect(snapshot?.models[0]).toMatchObject({
      upstream: "main",
      fallbackUpstreams: ["main#2"],
      shares: [
        { upstream: "main", level: 0, weight: 0.5, upstreamModel: "" },
        { upstream: "main#2", level: 0, weight: 0.5, upstreamModel: "" },
      ],
    });
  });

  test.each([
    [openai({ apiKeyEnvs: [] }), "upstreams.main.apiKeyEnvs"],
    [openai({ apiKeyEnvs: ["A", "A"] }), "upstreams.main.apiKeyEnvs[1]"],
    [openai({ apiKeyEnvs: ["sk-1"] }), "upstreams.main.apiKeyEnvs[0]"],
    [
      openai({ apiKeyEnvs: Array.from({ length: 17 }, (_, at) => `K${at}`) }),
      "upstreams.main.apiKeyEnvs",
    ],
    [openai({ apiKeyEnv: "A", apiKeyEnvs: ["B"] }), "upstreams.main.apiKeyEnvs"],
  ])("are refused as %j", (main, path) => {
    expect(faultsOf(catalog({ main }))).toEqual([path]);
  });
});

describe("a pool", () => {
  const upstreams = {
    main: openai(),
    east: openai({ apiKeyEnvs: ["A", "B"] }),
    spare: openai(),
    legacy: { ...openai(), protocol: "chat-completions" },
  };
  const members = [{ upstream: "main", weight: 3 }, { upstream: "east" }];

  test("stands for its members, each with its share and its name of the model", () => {
    const model = { upstream: "both", fallbackUpstreams: ["spare"] };
    const pools = { both: { members, upstreamModels: { east: "m-east" } } };
    const { snapshot } = parseCatalog(catalog(upstreams, model, { pools }));
    const share = { level: 0, upstreamModel: "" };
    expect(snapshot?.models[0]).toMatchObject({
      upstream: "main",
      fallbackUpstreams: ["east", "east#2", "spare"],
      shares: [
        { ...share, upstream: "main", weight: 3 },
        { ...share, upstream: "east", weight: 0.5, upstreamModel: "m-east" },
        { ...share, upstream: "east#2", weight: 0.5, upstreamModel: "m-east" },
        { ...share, upstream: "spare", weight: 1, level: 1 },
      ],
    });
  });

  test("may have one member alone, whose name of the model counts", () => {
    const pools = { one: { members: [{ upstream: "main" }], upstreamModels: { main: "m" } } };
    const { snapshot } = parseCatalog(catalog(upstreams, { upstream: "one" }, { pools }));
    expect(snapshot?.models[0]?.shares).toMatchObject([{ upstream: "main", upstreamModel: "m" }]);
  });

  test("leaves a catalog without pools and further keys as it was", () => {
    const model = { fallbackUpstreams: ["spare"] };
    const { snapshot } = parseCatalog(catalog(upstreams, model));
    expect(snapshot?.models[0]).toMatchObject({ fallbackUpstreams: ["spare"], shares: [] });
  });

  test.each<[object, string]>([
    [{ both: { members: [] } }, "pools.both.members"],
    [{ both: { members: [{ upstream: "main", weight: 0 }] } }, "pools.both.members[0].weight"],
    [{ both: { members: [{ upstream: "main", weight: 101 }] } }, "pools.both.members[0].weight"],
    [{ both: { members: [{ upstream: "main", weight: 1.5 }] } }, "pools.both.members[0].weight"],
    [
      { both: { members: [...members, { upstream: "nowhere" }] } },
      "pools.both.members[2].upstream",
    ],
    [{ both: { members: [...members, { upstream: "both" }] } }, "pools.both.members[2].upstream"],
    [{ both: { members: [...members, { upstream: "main" }] } }, "pools.both.members[2].upstream"],
    [{ both: { members: [...members, { upstream: "legacy" }] } }, "pools.both.members[2].upstream"],
    [{ both: { members, upstreamModels: { spare: "m" } } }, "pools.both.upstreamModels.spare"],
    [{ both: { members }, main: { members } }, "pools.main"],
  ])("is refused as %j", (pools, path) => {
    expect(faultsOf(catalog(upstreams, { upstream: "both" }, { pools }))).toEqual([path]);
  });

  test.each<[object, string]>([
    [{ upstream: "neither" }, "models[0].upstream"],
    [{ upstream: "both", fallbackUpstreams: ["east"] }, "models[0].fallbackUpstreams[0]"],
    [{ upstream: "east", fallbackUpstreams: ["both"] }, "models[0].fallbackUpstreams[0]"],
  ])("is refused in the model %j", (model, path) => {
    expect(faultsOf(catalog(upstreams, model, { pools: { both: { members } } }))).toEqual([path]);
  });

  test("of a protocol that lacks the model's kind is refused", () => {
    const image = { id: "i", kind: "image", upstream: "old", creditPrice: 5 };
    const pools = { old: { members: [{ upstream: "legacy" }] } };
    const text = JSON.stringify({ upstreams, pools, models: [image] });
    expect(faultsOf(text)).toEqual(["models[0].upstream"]);
  });

  test("with names of its own serves text alone", () => {
    const image = { id: "i", kind: "image", upstream: "one", creditPrice: 5 };
    const pools = { one: { members: [{ upstream: "main" }], upstreamModels: { main: "m" } } };
    const text = JSON.stringify({ upstreams, pools, models: [image] });
    expect(faultsOf(text)).toEqual(["models[0].upstream"]);
  });
});
