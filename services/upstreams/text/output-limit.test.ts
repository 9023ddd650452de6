import { describe, expect, test } from "vitest";
import type { JsonObject } from "#kit/base/json.ts";
import { OutputLimit } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { withOutputLimit } from "./output-limit.ts";

/** A caller may write every name at once. */
const written: JsonObject = {
  max_tokens: 9,
  max_completion_tokens: 9,
  max_output_tokens: 9,
  top_p: 1,
};

describe("an upstream is told the bound under one name", () => {
  test.each<["responses" | "chat", keyof typeof OutputLimit, JsonObject]>([
    ["responses", "UNSPECIFIED", { max_output_tokens: 7 }],
    ["chat", "UNSPECIFIED", { max_tokens: 7 }],
    ["chat", "MAX_TOKENS", { max_tokens: 7 }],
    ["chat", "MAX_COMPLETION_TOKENS", { max_completion_tokens: 7 }],
    ["responses", "MAX_TOKENS", { max_tokens: 7 }],
    ["chat", "MAX_OUTPUT_TOKENS", { max_output_tokens: 7 }],
    ["chat", "NONE", {}],
    ["responses", "NONE", {}],
  ])("%s, %s", (api, configured, told) => {
    const body = withOutputLimit(written, 7, api, OutputLimit[configured]);
    expect(body).toEqual({ top_p: 1, ...told });
  });

  test("and of none nothing, a null of the caller's neither", () => {
    const body = withOutputLimit({ ...written, max_tokens: null }, undefined, "chat");
    expect(body).toEqual({ top_p: 1 });
  });

  test("what a newer catalog calls it is not known here: the usual name", () => {
    expect(withOutputLimit({}, 7, "chat", 99 as OutputLimit)).toEqual({ max_tokens: 7 });
  });
});
