/** A catalog whose upstreams have their keys in variables that are not set, so each request finds that a key is refused. */
export const refusedKeys = JSON.stringify({
  developerPrompt: "",
  upstreams: Object.fromEntries(
    ["first", "second"].map((name) => [
      name,
      {
        protocol: "openai",
        baseUrl: "http://127.0.0.1:1/v1",
        apiKeyEnv: `${name.toUpperCase()}_KEY`,
      },
    ]),
  ),
  models: ["first", "second"].map((name) => ({
    ...{ id: name, kind: "chat", upstream: name, upstreamModel: name },
    ...{ maxInputTokens: 1_000, maxOutputTokens: 100 },
    pricing: {
      inputUsdMicrosPerMillionTokens: 0,
      cachedInputUsdMicrosPerMillionTokens: 0,
      outputUsdMicrosPerMillionTokens: 0,
    },
  })),
});
