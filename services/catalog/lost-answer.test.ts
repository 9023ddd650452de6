import { expect, test } from "vitest";
import { LostAnswer } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { parseCatalog } from "./parse.ts";

/** A catalog whose upstreams and models have these values of `lostAnswer`. Undefined: they have none. */
function catalog(upstream: unknown, model: unknown, kind = "image") {
  const prices = { maxInputTokens: 10, maxOutputTokens: 10 };
  const pricing = { inputUsdMicrosPerMillionTokens: 1, outputUsdMicrosPerMillionTokens: 1 };
  const ofKind = kind === "chat" ? { ...prices, pricing } : { creditPrice: 5 };
  return parseCatalog(
    JSON.stringify({
      upstreams: {
        up: { protocol: "openai", baseUrl: "https://up.test/v1", lostAnswer: upstream },
        card: { protocol: "comfyui", baseUrl: "https://card.test", lostAnswer: upstream },
      },
      models: [{ id: "m", kind, upstream: "up", lostAnswer: model, ...ofKind }],
    }),
  );
}

test.each([
  [undefined, undefined, LostAnswer.UNSPECIFIED, LostAnswer.UNSPECIFIED],
  ["again", "fail", LostAnswer.AGAIN, LostAnswer.FAIL],
  ["fail", "again", LostAnswer.FAIL, LostAnswer.AGAIN],
])("a catalog says of upstreams %s and of a model %s", (upstream, model, ofUpstream, ofModel) => {
  const { snapshot } = catalog(upstream, model);
  expect(snapshot?.upstreams.up?.lostAnswer).toBe(ofUpstream);
  expect(snapshot?.upstreams.card?.lostAnswer).toBe(ofUpstream);
  expect(snapshot?.models[0]?.lostAnswer).toBe(ofModel);
});

test("other words, and models of other kinds, are faults with their place", () => {
  const pathsOf = ({ faults = [] }: ReturnType<typeof catalog>) => faults.map(({ path }) => path);
  expect(pathsOf(catalog("retry", true))).toEqual([
    "upstreams.up.lostAnswer",
    "upstreams.card.lostAnswer",
    "models[0].lostAnswer",
  ]);
  expect(pathsOf(catalog("again", "again", "chat"))).toEqual(["models[0].lostAnswer"]);
});
