import { describe, expect, test } from "vitest";
import { parseCatalog } from "./parse.ts";

const plain = {
  inputUsdMicrosPerMillionTokens: 2_000_000,
  cachedInputUsdMicrosPerMillionTokens: 100_000,
  outputUsdMicrosPerMillionTokens: 10_000_000,
};
const written = { ...plain, cacheWriteUsdMicrosPerMillionTokens: 2_500_000 };
const long = { aboveInputTokens: 272_000, ...written };

function catalogOf(pricing: object): string {
  const model = {
    id: "c",
    kind: "chat",
    upstream: "local",
    maxInputTokens: 400_000,
    maxOutputTokens: 1_000,
    pricing,
  };
  return JSON.stringify({
    upstreams: { local: { protocol: "openai", baseUrl: "http://127.0.0.1:11434/v1" } },
    models: [model],
  });
}

function specOf(pricing: object) {
  const { snapshot, faults } = parseCatalog(catalogOf(pricing));
  const spec = snapshot?.models[0]?.spec;
  if (spec?.case !== "chat") throw new Error(JSON.stringify(faults));
  return spec.value;
}

describe("prices of a chat model", () => {
  test("a catalog that names three prices has no list", () => {
    const { prices, upstreamCost, toolCallLimit } = specOf(plain);
    expect({ prices, upstreamCost, toolCallLimit }).toEqual({ toolCallLimit: 0 });
  });

  test("all of them are on the wire, and an absent one is absent", () => {
    const spec = specOf({
      ...written,
      longInput: [long],
      servedTiers: { priority: 200, flex: 50 },
      toolCalls: { web_search: 10_000 },
      upstreamCost: plain,
    });
    const base = { input: 2_000_000n, cachedInput: 100_000n, output: 10_000_000n };
    const row = { ...base, cacheWrite: 2_500_000n };
    expect(spec.prices).toMatchObject({
      base: row,
      longInput: [{ aboveInputTokens: 272_000n, prices: row }],
      servedTiers: { priority: 200, flex: 50 },
      toolCalls: { web_search: 10_000n },
    });
    expect(spec.prices?.base?.cacheWriteLong).toBeUndefined();
    expect(spec.upstreamCost?.base).toMatchObject(base);
    expect(spec.toolCallLimit).toBe(8);
    // An earlier release reads the three prices.
    expect(spec.cachedInputUsdMicrosPerMillionTokens).toBe(100_000n);
  });

  const { cacheWriteUsdMicrosPerMillionTokens: _, ...forgetful } = long;
  const odd = { ...plain, inputUsdMicrosPerMillionTokens: 1_000_001 };
  const wholeFault = "is no whole number of USD micros for one of the prices";
  test.each<[string, object, string, string]>([
    [
      "a row that forgets a price",
      { ...written, longInput: [forgetful] },
      "longInput[0].cacheWriteUsdMicrosPerMillionTokens",
      "is required, because the prices for a shorter input name it",
    ],
    [
      "rows that do not ascend",
      { ...written, longInput: [long, long] },
      "longInput[1].aboveInputTokens",
      "must be above that of the row before",
    ],
    [
      "five rows",
      { ...plain, longInput: [1, 2, 3, 4, 5].map((n) => ({ ...plain, aboveInputTokens: n })) },
      "longInput",
      "must have a number of items of at most 4",
    ],
    [
      "a percent that breaks a micro",
      { ...odd, servedTiers: { flex: 50 } },
      "servedTiers.flex",
      wholeFault,
    ],
    [
      "a percent that breaks a micro of a row",
      { ...plain, longInput: [{ ...odd, aboveInputTokens: 9 }], servedTiers: { flex: 50 } },
      "servedTiers.flex",
      wholeFault,
    ],
    [
      "a percent that breaks a micro of what the operator pays",
      { ...plain, upstreamCost: { ...odd, servedTiers: { flex: 50 } } },
      "upstreamCost.servedTiers.flex",
      wholeFault,
    ],
    [
      "a percent of 0",
      { ...plain, servedTiers: { flex: 0 } },
      "servedTiers.flex",
      "must be at least 1",
    ],
    [
      "a name with a dot",
      { ...plain, toolCalls: { "web.search": 1 } },
      'toolCalls["web.search"]',
      "must be a name of letters, digits, '_' and '-'",
    ],
    ["a limit of no calls", { ...plain, toolCallLimit: 0 }, "toolCallLimit", "must be at least 1"],
    ["a price that is not known", { ...plain, reasoning: 1 }, "reasoning", "unknown key"],
    [
      "a cost within a cost",
      { ...plain, upstreamCost: { ...plain, upstreamCost: plain } },
      "upstreamCost.upstreamCost",
      "unknown key",
    ],
  ])("%s is a fault", (_name, pricing, path, message) => {
    const { faults = [] } = parseCatalog(catalogOf(pricing));
    const unplaced = faults.map((fault) => [
      fault.path,
      fault.message.replace(/ \(line \d+, column \d+\)$/, ""),
    ]);
    expect(unplaced).toEqual([[`models[0].pricing.${path}`, message]]);
  });
});
