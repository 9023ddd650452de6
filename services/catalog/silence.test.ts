import { expect, test } from "vitest";
import { maxHiddenTokensPerSecond } from "./limits.ts";
import { parseCatalog } from "./parse.ts";

/** A catalog of one chat model. */
const parsed = (fields: object) =>
  parseCatalog(
    JSON.stringify({
      upstreams: { local: { protocol: "openai", baseUrl: "http://127.0.0.1:1/v1" } },
      models: [
        {
          ...{ id: "c", kind: "chat", upstream: "local" },
          ...{ maxInputTokens: 1000, maxOutputTokens: 100 },
          pricing: { inputUsdMicrosPerMillionTokens: 1, outputUsdMicrosPerMillionTokens: 1 },
          ...fields,
        },
      ],
    }),
  );
const said = (fields: object) => parsed(fields).snapshot?.models[0]?.spec.value;

test("a model says what a second of its silence counts as; without that it counts as nothing", () => {
  expect(said({ hiddenTokensPerSecond: 80 })).toMatchObject({ hiddenTokensPerSecond: 80n });
  expect(said({})).toMatchObject({ hiddenTokensPerSecond: 0n });
});

test.for([0, -1, 1.5, maxHiddenTokensPerSecond + 1, "80", null])(
  "%j is no such number",
  (hiddenTokensPerSecond) => {
    const { faults } = parsed({ hiddenTokensPerSecond });
    expect(faults?.map(({ path }) => path)).toEqual(["models[0].hiddenTokensPerSecond"]);
  },
);

test("the key of earlier versions is refused, so that no operator relies on it unawares", () => {
  const { faults } = parsed({ tokensPerSecond: 80 });
  expect(faults?.map(({ path }) => path)).toEqual(["models[0].tokensPerSecond"]);
});
