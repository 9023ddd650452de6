import { expect, test } from "vitest";
import { AutoCache, BlockBinding } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { usualBetas } from "../upstreams/anthropic/capabilities.ts";
import { parseCatalog } from "./parse.ts";

const plain = { inputUsdMicrosPerMillionTokens: 4, outputUsdMicrosPerMillionTokens: 20 };
const short = { ...plain, cacheWriteUsdMicrosPerMillionTokens: 5 };
const long = { ...short, cacheWriteLongUsdMicrosPerMillionTokens: 8 };

/** A catalog of one chat model at an upstream of Messages. */
const parsed = ({ upstream = {}, model = {} }: { upstream?: object; model?: object } = {}) =>
  parseCatalog(
    JSON.stringify({
      upstreams: {
        claude: { protocol: "anthropic", baseUrl: "http://127.0.0.1:1/v1", ...upstream },
        local: { protocol: "openai", baseUrl: "http://127.0.0.1:1/v1" },
      },
      models: [
        {
          ...{ id: "c", kind: "chat", upstream: "claude", pricing: plain },
          ...{ maxInputTokens: 1000, maxOutputTokens: 100, ...model },
        },
      ],
    }),
  );
const faultsOf = (...asked: Parameters<typeof parsed>) =>
  parsed(...asked).faults?.map(({ path }) => path);

test("an upstream of Messages has its betas, and asks for no cache unless it is told", () => {
  const { upstreams, models } = parsed().snapshot ?? expect.unreachable();
  expect(upstreams.claude).toMatchObject({
    ...{ betas: [...usualBetas], autoCache: AutoCache.UNSPECIFIED },
  });
  expect(upstreams.local).toMatchObject({ betas: [], autoCache: AutoCache.UNSPECIFIED });
  expect(models[0]?.spec.value).toMatchObject({
    ...{ refusesForcedTools: false, blockBinding: BlockBinding.UNSPECIFIED },
  });
  const told = parsed({
    upstream: { betas: [], autoCache: "1h" },
    model: { pricing: long, forcedTools: false, blockBinding: "off" },
  }).snapshot;
  expect(told?.upstreams.claude).toMatchObject({ betas: [], autoCache: AutoCache.LONG });
  expect(told?.models[0]?.spec.value).toMatchObject({
    ...{ refusesForcedTools: true, blockBinding: BlockBinding.OFF },
  });
});

test("all betas at once could cost what has no price", () => {
  expect(faultsOf({ upstream: { betas: ["*"] } })).toEqual(["upstreams.claude.betas[0]"]);
});

test("types of blocks can be added, except those that the operator pays for", () => {
  const added = parsed({ upstream: { blockTypes: ["novel_block"] } });
  expect(added.snapshot?.upstreams.claude?.blockTypes).toEqual(["novel_block"]);
  const dear = ["container_upload", "web_search_tool_result", "mcp_tool_use", "Text"];
  expect(faultsOf({ upstream: { blockTypes: dear } })).toEqual(
    dear.map((_, at) => `upstreams.claude.blockTypes[${at}]`),
  );
});

test("a cache that is asked for has a price", () => {
  const at = (name: string) => [`models[0].pricing.${name}`];
  const priced = (autoCache: string, pricing: object) =>
    faultsOf({ upstream: { autoCache }, model: { pricing } });
  expect(priced("5m", plain)).toEqual(at("cacheWriteUsdMicrosPerMillionTokens"));
  expect(priced("1h", short)).toEqual(at("cacheWriteLongUsdMicrosPerMillionTokens"));
  expect([priced("5m", short), priced("1h", long), priced("off", plain)]).toEqual([
    ...[undefined, undefined, undefined],
  ]);
});

test("keys of Messages are for models at such an upstream", () => {
  const model = { upstream: "local", forcedTools: false, blockBinding: "drop_block" };
  expect(faultsOf({ model })).toEqual(["models[0].forcedTools", "models[0].blockBinding"]);
  expect(faultsOf({ model: { ...model, fallbackUpstreams: ["claude"] } })).toBeUndefined();
});

test("such an upstream takes PDFs and no sound, and is told a bound in any case", () => {
  const inputModalities = ["text", "pdf", "audio"];
  expect(faultsOf({ model: { inputModalities } })).toEqual(["models[0].inputModalities[2]"]);
  expect(faultsOf({ upstream: { outputLimit: "none" } })).toEqual(["upstreams.claude.outputLimit"]);
});
