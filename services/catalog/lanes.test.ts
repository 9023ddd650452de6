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
    [{ protocol: "builtin", apiKeyFile: "/keys/main" }],
  ])("is refused as %j", (main) => {
    expect(faultsOf(catalog({ main }))).toEqual(["upstreams.main.apiKeyFile"]);
  });
});
