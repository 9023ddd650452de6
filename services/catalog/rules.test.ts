import { describe, expect, test } from "vitest";
import { parseCatalog } from "./parse.ts";

function good() {
  const pricing = { inputUsdMicrosPerMillionTokens: 10, outputUsdMicrosPerMillionTokens: 30 };
  const limits = { maxInputTokens: 1000, maxOutputTokens: 100 };
  return {
    upstreams: { studio: { protocol: "builtin" } },
    models: [
      { id: "c", kind: "chat", upstream: "studio", ...limits, pricing },
      { id: "i", kind: "image", upstream: "studio", creditPrice: 5 },
    ] as Record<string, unknown>[],
  };
}

/** The good catalog with one key of it, or of a model, replaced. */
function changed(place: string, value: unknown) {
  const file = good();
  const [name = "", index, key = ""] = place.split(".");
  if (index === undefined) return { ...file, [name]: value };
  Object.assign(file.models[Number(index)] ?? {}, { [key]: value });
  return file;
}

describe("settings without effect", () => {
  const faultsOf = (place: string, value: unknown) =>
    parseCatalog(JSON.stringify(changed(place, value))).faults;

  test("an inactive model as the default", () => {
    const file = good();
    Object.assign(file.models[0] ?? {}, { default: true, active: false });
    const { faults } = parseCatalog(JSON.stringify(file));
    expect(faults?.map(({ path }) => path)).toEqual(["models[0].default"]);
  });

  test("a developer prompt that leaves a caller no room", () => {
    expect(faultsOf("models.0.developerPrompt", "x".repeat(4_000))).toBeUndefined();
    const own = faultsOf("models.0.developerPrompt", "x".repeat(4_001));
    expect(own?.map(({ path }) => path)).toEqual(["models[0].developerPrompt"]);
    const all = faultsOf("developerPrompt", "x".repeat(4_001));
    expect(all?.map(({ path }) => path)).toEqual(["models[0].maxInputTokens"]);
  });

  test.each(
    `instructions max_output_tokens max_tokens max_completion_tokens store n stream stream_options model input messages
     service_tier background prompt conversation previous_response_id`.split(/\s+/),
  )("passParameters with %s", (name) => {
    const faults = faultsOf("models.0.passParameters", ["top_n", name]);
    expect(faults?.map(({ path }) => path)).toEqual(["models[0].passParameters[1]"]);
  });

  test.each([1e13, 1e30, -1e30])("a price of %s is one fault", (price) => {
    expect(faultsOf("models.1.creditPrice", price)).toHaveLength(1);
  });

  test("a second document is told in our words", () => {
    const text = `${JSON.stringify(good())}\n---\na: 1\n`;
    expect(parseCatalog(text).faults).toEqual([
      { path: "", message: "must hold one YAML document (line 2, column 1)" },
    ]);
  });
});
