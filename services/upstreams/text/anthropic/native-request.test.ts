import { describe, expect, test } from "vitest";
import type { JsonObject, JsonValue } from "#kit/base/json.ts";
import { advancedFields, betasOf } from "../../anthropic/betas.ts";
import { usualBetas } from "../../anthropic/capabilities.ts";
import { type NativeOptions, nativeBody } from "./native-request.ts";

const usual: NativeOptions = { betas: usualBetas, passParameters: [], dropsBlocks: true };
const hi = { role: "user", content: "Hi" };
const bodyOf = (asked: JsonObject, options: Partial<NativeOptions> = {}): JsonObject =>
  nativeBody({ messages: [hi], ...asked }, { ...usual, ...options });
const thought = {
  role: "assistant",
  content: [{ type: "thinking", thinking: "", signature: "c2ln" }],
};

describe("what passes", () => {
  test("what is known, as it came, and nothing else", () => {
    const known = {
      ...{ system: [{ type: "text", text: "S", cache_control: { type: "ephemeral" } }] },
      tools: [{ name: "look", input_schema: {}, cache_control: { type: "ephemeral", ttl: "1h" } }],
      ...{
        tool_choice: { type: "auto" },
        stop_sequences: ["X"],
        cache_control: { type: "ephemeral" },
      },
      thinking: { type: "enabled", budget_tokens: 2_000 },
      output_config: { format: { type: "json_schema", schema: {} } },
      context_management: { edits: [{ type: "clear_thinking_20251015", keep: "all" }] },
    };
    const strange = {
      ...{ container: "c", mcp_servers: [], speed: "fast", inference_geo: "us", diagnostics: {} },
      ...{ store: false, prompt_cache_key: "k", reasoning: {}, metadata: {}, novel: 1 },
      ...{ temperature: 1, top_k: 1 },
    };
    expect(bodyOf({ ...known, ...strange })).toEqual({ messages: [hi], ...known });
  });

  test("settings of sampling where the catalog names them, and the effort by its name at the model", () => {
    expect(bodyOf({ top_k: 3, top_p: 1 }, { passParameters: ["top_k"] })).toEqual({
      ...{ messages: [hi], top_k: 3 },
    });
    const config = { output_config: { effort: "xhigh" }, reasoning: { effort: "high" } };
    expect(bodyOf(config).output_config).toEqual({ effort: "high" });
    // A model without efforts gets none.
    expect(bodyOf({ output_config: { effort: "high" } })).toEqual({ messages: [hi] });
  });

  test("media as they were verified, also within results", () => {
    const image = { type: "image", source: { image_url: "data:image/png;base64,QUJD" } };
    const linked = { type: "image", source: { image_url: "https://example.com/a.png" } };
    const pdf = {
      ...{ type: "document", title: "A", cache_control: { type: "ephemeral" } },
      source: { filename: "A.pdf", file_data: "data:application/pdf;base64,QUJD" },
    };
    const result = { type: "tool_result", tool_use_id: "a", content: [image] };
    const { messages } = bodyOf({ messages: [{ role: "user", content: [result, linked, pdf] }] });
    const inline = (media_type: string) => ({ type: "base64", media_type, data: "QUJD" });
    expect(messages).toEqual([
      {
        role: "user",
        content: [
          { ...result, content: [{ ...image, source: inline("image/png") }] },
          { ...linked, source: { type: "url", url: "https://example.com/a.png" } },
          { ...pdf, source: inline("application/pdf") },
        ],
      },
    ]);
  });

  test("the caller's own choice for thinking from behind another beginning", () => {
    const messages = [hi, thought, hi];
    const own = { type: "adaptive", block_binding: { prefix_mismatch_behavior: "error" } };
    const drop = { prefix_mismatch_behavior: "drop_block" };
    expect(bodyOf({ messages, thinking: own }).thinking).toEqual(own);
    expect(bodyOf({ messages }).thinking).toEqual({ type: "adaptive", block_binding: drop });
    const enabled = { type: "enabled", budget_tokens: 2_000 };
    expect(bodyOf({ messages, thinking: enabled }).thinking).toEqual({
      ...{ ...enabled, block_binding: drop },
    });
    expect(bodyOf({ messages, thinking: { type: "disabled" } }).thinking).toEqual({
      ...{ type: "disabled" },
    });
    expect(bodyOf({ messages }, { dropsBlocks: false })).not.toHaveProperty("thinking");
  });
});

/** Fields that only a feature knows, and the body's places where they stand. */
function featuresIn(body: JsonObject): string[] {
  const tools = (body.tools ?? []) as JsonObject[];
  const messages = body.messages as JsonObject[];
  const { thinking } = body as { thinking?: JsonObject };
  return [
    ...(tools.some((tool) => advancedFields.some((name) => name in tool))
      ? ["advanced-tool-use-"]
      : []),
    ...("context_management" in body ? ["context-management-"] : []),
    ...(messages.some(({ role }) => role === "system") ? ["mid-conversation-"] : []),
    ...(tools.some(({ type }) => type === "computer_20250124") ? ["computer-use-2025-01-24"] : []),
    ...(thinking?.block_binding ? ["thinking-binding-controls-"] : []),
  ];
}

test("no beta goes up without its field, and no field without its beta", () => {
  const features = [
    ...[
      "advanced-tool-use-",
      "context-management-",
      "mid-conversation-",
      "computer-use-2025-01-24",
    ],
    "thinking-binding-controls-",
  ];
  const choices: ((body: JsonObject) => void)[] = [
    (body) => (body.tools = [{ name: "a", input_schema: {}, defer_loading: true }]),
    (body) => (body.context_management = { edits: [] }),
    (body) => (body.messages as JsonValue[]).push({ role: "system", content: "Now." }),
    (body) => (body.messages as JsonValue[]).push(thought, hi),
    (body) => (body.thinking = { type: "adaptive", block_binding: {} }),
    (body) => (body.tools = [{ name: "a", input_schema: {}, input_examples: [{}] }]),
    (body) => (body.tools = [{ type: "computer_20250124", name: "computer" }]),
  ];
  const fieldless = ["fast-mode-2026-02-01", "files-api-2025-04-14", "mcp-client-2025-11-20"];
  const listed = [...usualBetas, ...fieldless];
  const isPaired = (beta: string) =>
    fieldless.includes(beta) ||
    beta.startsWith("computer-use-") ||
    features.some((one) => beta.startsWith(one));
  // All choices of fields, at upstreams with all choices of betas, of callers that ask for none, and for all and one more.
  for (let fields = 0; fields < 2 ** choices.length; fields++) {
    for (let known = 0; known < 2 ** features.length; known++) {
      const body: JsonObject = { messages: [hi] };
      for (const [at, choose] of choices.entries()) if (fields & (1 << at)) choose(body);
      const betas = listed.filter((beta) => {
        const at = features.findIndex((feature) => beta.startsWith(feature));
        return at === -1 || (known & (1 << at)) !== 0;
      });
      const made = nativeBody(body, { ...usual, betas });
      for (const asked of [[], [...listed, "novel-2026-11-01"]]) {
        const sent = betasOf(made, betas, asked);
        const paired = sent.filter(isPaired);
        // A tool of the computer whose beta is not listed is refused before.
        const sendable = featuresIn(made).filter(
          (one) => !one.startsWith("computer-") || betas.includes(one),
        );
        expect(features.filter((one) => paired.some((beta) => beta.startsWith(one)))).toEqual(
          sendable,
        );
        expect(paired).not.toContain("computer-use-2025-11-24");
        expect(paired.filter((beta) => fieldless.includes(beta))).toEqual([]);
        expect(sent.filter((beta) => !isPaired(beta))).toEqual(
          betas.filter((beta) => !isPaired(beta) && asked.includes(beta)),
        );
      }
    }
  }
});
