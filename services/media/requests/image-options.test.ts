import { describe, expect, test } from "vitest";
import { viewOf } from "#common/agreements/catalog-client.ts";
import { ErrorReason } from "#kit/base/errors.ts";
import type { JsonObject } from "#kit/base/json.ts";
import { BodyForm } from "#proto/genmesh/media/v1/media_service_pb.ts";
import { parseCatalog } from "../../catalog/parse.ts";
import { checkRequest } from "./index.ts";

const options = [
  { quality: "low", size: "1024x1024", credits: 5 },
  { quality: "low", credits: 6 },
  { quality: "high", size: "1024x1024", credits: 36 },
  { quality: "high", credits: 52 },
];
const catalogOf = (imageOptions: object[], upstream = "openai") =>
  JSON.stringify({
    upstreams: {
      openai: { protocol: "openai", baseUrl: "http://127.0.0.1:1/v1" },
      studio: { protocol: "builtin" },
    },
    models: [
      {
        ...{ id: "image", kind: "image", upstream, creditPrice: 17, imageOptions },
        sizes: ["1024x1024", "1536x1024"],
      },
    ],
  });
const check = (more: JsonObject, imageOptions: object[] = options, form?: BodyForm) => {
  const { snapshot } = parseCatalog(catalogOf(imageOptions));
  if (!snapshot) throw new Error("the catalog is broken");
  const body = { model: "image", prompt: "a boat", ...more };
  const { spec } = checkRequest("image", body, viewOf(snapshot), form ? { form } : {});
  const { request, price } = spec;
  return [price, "quality" in request ? request.quality : undefined];
};

describe("prices of an image by quality and size", () => {
  const square = { size: "1024x1024" };
  const oblong = { size: "1536x1024" };
  test.each<[JsonObject, bigint, string | undefined]>([
    [{ quality: "low", ...square }, 5n, "low"],
    [{ quality: "low", ...oblong }, 6n, "low"],
    [{ quality: "high", ...square, n: 3 }, 108n, "high"],
    [{ quality: "high" }, 52n, "high"],
    [{ quality: "auto", ...square }, 36n, undefined],
    [{ ...square }, 36n, undefined],
    [{}, 52n, undefined],
  ])("%j", (more, price, quality) => {
    expect(check(more)).toEqual([price, quality]);
  });
  test("where no row fits, the usual price counts", () => {
    const rows = [{ quality: "low", size: "1024x1024", credits: 5 }];
    expect(check({ quality: "low", ...oblong }, rows)).toEqual([17n, "low"]);
    expect(check({ ...oblong }, [{ ...oblong, credits: 9 }])).toEqual([9n, undefined]);
    // The upstream may make the other size, whose price is the usual one.
    expect(check({}, [{ ...oblong, credits: 9 }])).toEqual([17n, undefined]);
    expect(check({ quality: "low" }, rows)).toEqual([17n, "low"]);
    expect(check(square, [{ ...oblong, credits: 9 }])).toEqual([17n, undefined]);
  });
  test("a quality without a row is refused, in each form of the body", () => {
    for (const form of [BodyForm.UNSPECIFIED, BodyForm.OPENAI]) {
      expect(() => check({ quality: "ultra" }, options, form)).toThrow(
        expect.objectContaining({ reason: ErrorReason.INVALID_VALUE, param: "quality" }),
      );
      expect(check({ quality: "high" }, options, form)[1]).toBe("high");
    }
  });
  test("a model without such prices is asked for no quality", () => {
    expect(check({ quality: "high" }, [])).toEqual([17n, undefined]);
    expect(() => check({ quality: "high" }, [], BodyForm.OPENAI)).toThrow(
      expect.objectContaining({ reason: ErrorReason.UNSUPPORTED_PARAMETER, param: "quality" }),
    );
  });
  test("an upstream that is told no mask, and a model without references, have none", () => {
    const faultsOf = (upstream: string, maxReferences: number) => {
      const file = JSON.parse(catalogOf([], upstream));
      Object.assign(file.models[0], { maxReferences, masks: true });
      return parseCatalog(JSON.stringify(file)).faults?.map(
        ({ path, message }) => `${path} ${message}`,
      );
    };
    expect(faultsOf("openai", 1)).toBeUndefined();
    expect(faultsOf("openai", 0)).toEqual([
      expect.stringContaining("masks needs maxReferences of at least 1"),
    ]);
    expect(faultsOf("studio", 1)).toEqual([
      expect.stringContaining("masks a builtin upstream takes no mask"),
    ]);
  });
  test("an upstream that is told no quality has no prices by it", () => {
    const { faults } = parseCatalog(catalogOf(options.slice(0, 1), "studio"));
    expect(faults?.map(({ path }) => path)).toEqual(["models[0].imageOptions[0].quality"]);
    expect(parseCatalog(catalogOf([{ ...square, credits: 1 }], "studio")).faults).toBeUndefined();
  });
});
