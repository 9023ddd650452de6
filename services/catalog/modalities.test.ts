import { expect, test } from "vitest";
import { parseCatalog } from "./parse.ts";

/** A catalog of one chat model. */
const parsed = (fields: object) =>
  parseCatalog(
    JSON.stringify({
      upstreams: {
        local: { protocol: "openai", baseUrl: "http://127.0.0.1:1/v1" },
        legacy: { protocol: "chat-completions", baseUrl: "http://127.0.0.1:1/v1" },
        peer: { protocol: "genmesh", baseUrl: "http://127.0.0.1:1/v1" },
        studio: { protocol: "builtin" },
      },
      models: [
        {
          id: "c",
          kind: "chat",
          upstream: "local",
          maxInputTokens: 1000,
          maxOutputTokens: 100,
          pricing: { inputUsdMicrosPerMillionTokens: 1, outputUsdMicrosPerMillionTokens: 1 },
          ...fields,
        },
      ],
    }),
  );
const pathsOf = (fields: object) => parsed(fields).faults?.map(({ path }) => path);
const takes = { inputModalities: ["text", "pdf", "audio"] };

test("a model says what it takes, and how it counts that", () => {
  const said = { ...takes, audioTokensPerSecond: 25 };
  expect(parsed(said).snapshot?.models[0]?.spec.value).toMatchObject({
    ...takes,
    audioTokensPerSecond: 25n,
  });
  expect(parsed(takes).snapshot?.models[0]?.spec.value).toMatchObject({
    audioTokensPerSecond: 0n,
  });
});

test("numbers of tokens are whole and above zero", () => {
  expect(pathsOf({ ...takes, audioTokensPerSecond: 1.5 })).toEqual([
    "models[0].audioTokensPerSecond",
  ]);
});

test("files are for models whose upstreams all carry them", () => {
  expect(pathsOf({ ...takes, fallbackUpstreams: ["legacy", "peer"] })).toBeUndefined();
  expect(pathsOf({ ...takes, fallbackUpstreams: ["studio"] })).toEqual([
    "models[0].inputModalities[1]",
    "models[0].inputModalities[2]",
  ]);
});
