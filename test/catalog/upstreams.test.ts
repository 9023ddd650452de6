import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { viewOf } from "#common/agreements/catalog-client.ts";
import { ModelKind, UpstreamProtocol } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { parseCatalog } from "../../services/catalog/parse.ts";

const folder = new URL("../../deploy/catalogs/", import.meta.url);
const load = (name: string) => {
  const text = readFileSync(new URL(`${name}.yaml`, folder), "utf8");
  const { snapshot, faults } = parseCatalog(text);
  if (!snapshot) throw new Error(JSON.stringify(faults));
  return { text, snapshot, models: viewOf(snapshot).activeModels };
};
const { CHAT, EMBEDDING, IMAGE, SPEECH, TRANSCRIPTION } = ModelKind;
const { ANTHROPIC, CHAT_COMPLETIONS, ELEVENLABS, OPENAI } = UpstreamProtocol;

/** Name, offered kinds, protocols, and the variable of its key. */
const shipped = [
  ["elevenlabs", [SPEECH], [ELEVENLABS], "ELEVENLABS_API_KEY"],
  ["openai", [CHAT, IMAGE, SPEECH, EMBEDDING, TRANSCRIPTION], [OPENAI], "OPENAI_API_KEY"],
  ["anthropic", [CHAT], [ANTHROPIC], "ANTHROPIC_API_KEY"],
  ["ollama", [CHAT], [OPENAI], ""],
  ["vllm", [CHAT], [OPENAI, CHAT_COMPLETIONS], "VLLM_API_KEY"],
  ["openrouter", [CHAT], [CHAT_COMPLETIONS], "OPENROUTER_API_KEY"],
] as const;

describe.each(shipped)("the catalog for %s", (name, kinds, protocols, variable) => {
  const { text, snapshot, models } = load(name);

  test("has a model of each kind by default, at its protocols and with its key's variable", () => {
    expect([...new Set(models.map(({ kind }) => kind))]).toEqual(kinds);
    for (const kind of kinds) {
      expect(models.filter((one) => one.kind === kind && one.isDefault)).toHaveLength(1);
    }
    const upstreams = Object.values(snapshot.upstreams);
    expect(new Set(upstreams.map(({ protocol }) => protocol))).toEqual(new Set(protocols));
    for (const { apiKeyEnv } of upstreams) expect(apiKeyEnv).toBe(variable);
    if (variable !== "") expect(text).toContain(`${variable}=… npm start`);
  });

  test("has a price for each, and says how to check and to start it", () => {
    for (const { spec } of models) {
      if (spec.case === "chat")
        expect(spec.value.outputUsdMicrosPerMillionTokens).toBeGreaterThan(0n);
      if (spec.case === "image") expect(spec.value.creditPrice).toBeGreaterThan(0n);
      if (spec.case === "speech")
        expect(spec.value.usdMicrosPerMillionCharacters).toBeGreaterThan(0n);
    }
    expect(text).toContain(`genmesh catalog check deploy/catalogs/${name}.yaml`);
    expect(text).toContain(`GENMESH_CATALOG=deploy/catalogs/${name}.yaml`);
  });
});

test("each shipped catalog is loaded by a test, and has its section in docs/upstreams.md", () => {
  const names = readdirSync(folder)
    .filter((file) => file.endsWith(".yaml"))
    .map((file) => file.slice(0, -".yaml".length));
  // Tested in called.test.ts, comfyui.test.ts and declared.test.ts.
  const elsewhere = [
    ...["fal", "replicate", "comfyui", "xai", "ark", "minimax", "kling", "google", "bfl"],
    ...["wan", "runway", "vidu", "pixverse", "seed-videos"],
  ];
  expect(names.sort()).toEqual([...shipped.map(([name]) => name), ...elsewhere].sort());
  const docs = readFileSync(new URL("../../docs/upstreams.md", import.meta.url), "utf8");
  for (const name of names) {
    const catalog = parse(readFileSync(new URL(`${name}.yaml`, folder), "utf8"));
    const { length } = catalog.models;
    expect(docs).toContain(`catalog check deploy/catalogs/${name}.yaml\`: ${length} model`);
    expect(docs).toContain(`GENMESH_CATALOG=deploy/catalogs/${name}.yaml`);
  }
});

test("faults of a speech model's voices and fallbacks are found when a catalog is loaded", () => {
  const faultsOf = (more: object) => {
    const upstreams = {
      first: { protocol: "elevenlabs", baseUrl: "https://one.test/v1" },
      second: { protocol: "elevenlabs", baseUrl: "https://two.test/v1" },
      other: { protocol: "openai", baseUrl: "https://other.test/v1" },
    };
    const pricing = { usdMicrosPerMillionCharacters: 1 };
    const model = {
      id: "s",
      kind: "speech",
      upstream: "first",
      voices: ["rachel"],
      pricing,
      ...more,
    };
    const { faults = [] } = parseCatalog(JSON.stringify({ upstreams, models: [model] }));
    return faults.map(({ path, message }) => `${path}: ${message}`);
  };
  expect(faultsOf({})).toEqual([]);
  expect(faultsOf({ fallbackUpstreams: ["second"] })).toEqual([]);
  expect(faultsOf({ fallbackUpstreams: ["second", "other"] })).toEqual([
    "models[0].fallbackUpstreams[1]: speaks openai, and the model's voices are for elevenlabs (line 1, column 364)",
  ]);
  expect(faultsOf({ upstreamVoices: { rachel: "21m00" } })).toEqual([]);
  expect(faultsOf({ upstreamVoices: { adam: "pNInz" } })).toEqual([
    "models[0].upstreamVoices.adam: is none of the model's voices (line 1, column 352)",
  ]);
  expect(faultsOf({ kind: "chat" }).join()).toMatch(/elevenlabs/);
});
