/** The price of a text request in USD micros, for {@link meshCatalog}'s model with the scripted upstream's usual usage. */
export const textPriceMicros = 10n + 5n * 4n;
/** Credits for an image. */
export const imagePrice = 5n;

/** A catalog of one chat model, one image model and one more chat model for each name. */
export function meshCatalog(
  upstreams: { text: string; media: string },
  moreModels: readonly string[] = [],
): string {
  const chat = (id: string) => ({
    id,
    kind: "chat",
    upstream: "text",
    maxInputTokens: 2_000,
    maxOutputTokens: 100,
    safetyMarginTokens: 100,
    reasoningEfforts: [],
    reasoningAliases: {},
    inputModalities: ["text"],
    tools: [],
    pricing: {
      inputUsdMicrosPerMillionTokens: 1_000_000,
      cachedInputUsdMicrosPerMillionTokens: 250_000,
      outputUsdMicrosPerMillionTokens: 4_000_000,
    },
  });
  const image = {
    id: "image",
    kind: "image",
    upstream: "media",
    creditPrice: Number(imagePrice),
    sizes: ["64x64"],
    availableAspectRatios: ["auto", "1:1"],
    maxReferences: 1,
  };
  return JSON.stringify({
    developerPrompt: "",
    upstreams: {
      text: { protocol: "openai", baseUrl: upstreams.text },
      media: { protocol: "genmesh", baseUrl: upstreams.media, maxConcurrent: 100 },
    },
    models: [chat("chat"), image, ...moreModels.map(chat)],
  });
}
