import { expect, test } from "vitest";
import { parseCatalog } from "../services/catalog/parse.ts";
import { operatorModel } from "./operator-model.ts";

const openai = (keys: object) => ({
  ...{ protocol: "openai", baseUrl: "https://up.example.com/v1" },
  ...keys,
});

test("operators see a model's lanes, the names of their keys, and their own prices", () => {
  const pricing = { inputUsdMicrosPerMillionTokens: 10, outputUsdMicrosPerMillionTokens: 30 };
  const upstreamCost = { ...pricing, longInput: [{ aboveInputTokens: 9, ...pricing }] };
  const text = JSON.stringify({
    upstreams: {
      main: openai({ apiKeyEnvs: ["KEY_A", "KEY_B"] }),
      east: openai({ apiKeyFile: "/keys/east" }),
      spare: openai({}),
    },
    pools: {
      both: {
        members: [
          { upstream: "main", weight: 2 },
          { upstream: "east", weight: 3 },
        ],
        upstreamModels: { east: "chat-east" },
      },
    },
    models: [
      {
        ...{ id: "c", kind: "chat", upstream: "both", fallbackUpstreams: ["spare"] },
        ...{ maxInputTokens: 1_000, maxOutputTokens: 100, upstreamModel: "up" },
        pricing: { ...pricing, upstreamCost },
      },
    ],
  });
  const { snapshot, faults } = parseCatalog(text);
  const [model] = snapshot?.models ?? [];
  if (!snapshot || !model) throw new Error(JSON.stringify(faults));
  const shown = operatorModel(model, snapshot);
  expect(shown).toMatchObject({
    ...{ id: "c", kind: "chat", active: true, pricing, upstreamCost },
    upstreams: ["main", "main#2", "east", "spare"],
  });
  expect(shown.lanes).toEqual([
    { name: "main", key: "KEY_A", level: 1, share: 0.2, model: "up" },
    { name: "main#2", key: "KEY_B", level: 1, share: 0.2, model: "up" },
    { name: "east", key: "/keys/east", level: 1, share: 0.6, model: "chat-east" },
    { name: "spare", key: null, level: 2, share: 1, model: "up" },
  ]);
});
