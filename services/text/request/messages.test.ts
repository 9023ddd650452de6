import { create } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { ChatSpecSchema } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { type Options, prepare, refusalOf } from "../../../test/contract/usage.prepare.ts";
import { snapshotWith } from "../../../test/contract/usage.world.ts";
import { carrierOf } from "../../upstreams/text/messages/carrier.ts";
import { responsesOfMessages } from "../../upstreams/text/messages/request.ts";
import { argumentBytesOf, newFoundBlocks } from "./messages-blocks.ts";
import { hashesToRemember } from "./opaque.ts";

const operation = "messages";
const user = (content: unknown) => ({ role: "user", content });
const asked = (more: object = {}) => ({
  ...{ model: "chat-1", max_tokens: 100, messages: [user("hi")] },
  ...more,
});
const says = (...messages: object[]) => asked({ messages: [user("hi"), ...messages, user("on")] });
const block = (one: object) => asked({ messages: [user([one])] });
const assistant = (...content: object[]) => says({ role: "assistant", content });
const thinks = (thinking: object, more: object = {}) =>
  asked({ thinking, max_tokens: 20_000, ...more });
const pixel = "iVBORw0KGgo=";
const base64 = (media_type: string, data: string) => ({ type: "base64", media_type, data });

describe("what /messages refuses", () => {
  const at = "messages[0].content[0]";
  const cases: [string, object, string][] = [
    ["no messages", { model: "chat-1", max_tokens: 1 }, "missing_required_parameter messages"],
    ["no bound", asked({ max_tokens: undefined }), "missing_required_parameter max_tokens"],
    ["a bound of 0", asked({ max_tokens: 0 }), "invalid_value max_tokens"],
    ["a bound in words", asked({ max_tokens: "1" }), "invalid_type max_tokens"],
    ["a container", asked({ container: "c" }), "unsupported_parameter container"],
    ["servers", asked({ mcp_servers: [] }), "unsupported_parameter mcp_servers"],
    ["fallbacks", asked({ fallbacks: [] }), "unsupported_parameter fallbacks"],
    [
      "a compaction",
      asked({ context_management: { edits: [{ type: "compact_20260112" }] } }),
      "unsupported_parameter context_management.edits[0].type",
    ],
    [
      "a prefill",
      asked({ messages: [user("hi"), { role: "assistant", content: "I" }] }),
      "unsupported_parameter messages[1].role",
    ],
    ["a role", says({ role: "tool", content: "x" }), "invalid_value messages[1].role"],
    [
      "a system message in first place",
      asked({ messages: [{ role: "system", content: "x" }, user("hi")] }),
      "invalid_value messages[0].role",
    ],
    ["no content", says({ role: "user" }), "missing_required_parameter messages[1].content"],
    ["content", says({ role: "user", content: 1 }), "invalid_type messages[1].content"],
    ["a block of another role", block({ type: "tool_use" }), `unsupported_content_type ${at}.type`],
    ["an upload", block({ type: "container_upload" }), `unsupported_content_type ${at}.type`],
    ["no text", block({ type: "text" }), `missing_required_parameter ${at}.text`],
    [
      "a stored file",
      block({ type: "image", source: { type: "file", file_id: "f" } }),
      `unsupported_parameter ${at}.source.type`,
    ],
    [
      "a type of image",
      block({ type: "image", source: base64("image/svg+xml", pixel) }),
      `invalid_value ${at}.source.media_type`,
    ],
    [
      "a broken image",
      block({ type: "image", source: base64("image/png", "AAAA") }),
      `invalid_image ${at}.source.data`,
    ],
    [
      "an image's address",
      block({ type: "image", source: { type: "url", url: "https://localhost/a" } }),
      `invalid_image ${at}.source.url`,
    ],
    [
      "a PDF of a model without",
      block({ type: "document", source: base64("application/pdf", "AAAA") }),
      `unsupported_content_type ${at}.type`,
    ],
    [
      "a call without an object",
      assistant({ type: "tool_use", id: "a", name: "b", input: "{}" }),
      "invalid_type messages[1].content[0].input",
    ],
    [
      "a tool of Anthropic's",
      asked({ tools: [{ type: "bash_20250124", name: "bash" }] }),
      "unsupported_parameter tools[0].type",
    ],
    [
      "no schema",
      asked({ tools: [{ name: "a" }] }),
      "missing_required_parameter tools[0].input_schema",
    ],
    [
      "callers of a tool",
      asked({ tools: [{ name: "a", input_schema: {}, allowed_callers: ["code_execution"] }] }),
      "unsupported_parameter tools[0].allowed_callers",
    ],
    ["a choice", asked({ tool_choice: { type: "some" } }), "invalid_value tool_choice.type"],
    [
      "no name",
      asked({ tool_choice: { type: "tool" } }),
      "missing_required_parameter tool_choice.name",
    ],
    ["thinking", thinks({ type: "deep" }), "invalid_value thinking.type"],
    ["a display", thinks({ type: "adaptive", display: "raw" }), "invalid_value thinking.display"],
    ["no budget", thinks({ type: "enabled" }), "missing_required_parameter thinking.budget_tokens"],
    [
      "a small budget",
      thinks({ type: "enabled", budget_tokens: 1_023 }),
      "invalid_value thinking.budget_tokens",
    ],
    [
      "a budget above the bound",
      thinks({ type: "enabled", budget_tokens: 20_000 }),
      "invalid_value thinking.budget_tokens",
    ],
    ["stops", asked({ stop_sequences: ["x".repeat(257)] }), "unsupported_parameter stop_sequences"],
    ["a stop", asked({ stop_sequences: ["a", 1] }), "invalid_type stop_sequences[1]"],
    [
      "a format",
      asked({ output_config: { format: { type: "text" } } }),
      "invalid_value output_config.format.type",
    ],
    ["a model", asked({ model: "none" }), "model_not_found model"],
    [
      "tools of a model without",
      { ...asked({ tools: [{ name: "a", input_schema: {} }] }), model: "plain" },
      "unsupported_parameter tools[0].type",
    ],
  ];
  test.for(cases)("%s", async ([, body, refusal]) => {
    expect(await refusalOf(body, { operation })).toBe(refusal);
  });
});

const sentFor = async (body: object, options: Options = {}) => {
  const prepared = await prepare(body, { operation, ...options });
  return { ...prepared, sent: responsesOfMessages(prepared.body) };
};

test("the configured prompt stands before the caller's, and behind an attribution", async () => {
  const system = [
    { type: "text", text: "x-anthropic-billing-header: a" },
    { type: "text", text: "B" },
  ];
  const { body, sent } = await sentFor(asked({ system }));
  expect(body.system).toMatchObject([system[0], { text: "Be kind." }, system[1]]);
  expect(sent.instructions).toBe("Be kind.\n\nB");
  expect((await sentFor(asked({ system: "Mine." }))).sent.instructions).toBe("Be kind.\n\nMine.");
});

test("images in both forms are taken like any other, WebP among them", async () => {
  const { sent, media } = await sentFor(
    asked({
      messages: [
        user([
          { type: "image", source: base64("image/jpeg", pixel) },
          { type: "image", source: { type: "url", url: "https://a.example/a.png" } },
        ]),
      ],
    }),
  );
  expect(sent.input).toMatchObject([
    {
      content: [
        { type: "input_image", image_url: `data:image/png;base64,${pixel}` },
        { type: "input_image", image_url: "https://a.example/a.png" },
      ],
    },
  ]);
  expect(media.sizes).toContainEqual({ width: 64, height: 33 });
});

test.for([
  [{ type: "adaptive" }, { effort: "LOW" }, { effort: "low" }],
  [{ type: "adaptive" }, { effort: "deep" }, { effort: "high" }],
  [{ type: "adaptive", display: "summarized" }, undefined, { summary: "auto" }],
  [{ type: "enabled", budget_tokens: 10_000 }, undefined, { effort: "high" }],
  [{ type: "enabled", budget_tokens: 2_000 }, undefined, { effort: "low" }],
  [{ type: "enabled", budget_tokens: 5_000 }, undefined, { effort: "medium" }],
  [{ type: "adaptive" }, { effort: "max" }, { effort: "high" }],
  [{ type: "disabled" }, undefined, {}],
])("thinking %j with %j is %j", async ([thinking, output_config, reasoning]) => {
  const snapshot = snapshotWith({
    reasoningEfforts: ["low", "medium", "high"],
    maxOutputTokens: 30_000n,
    maxInputTokens: 100_000n,
  });
  const body = thinks(thinking as object, { output_config });
  const { body: sent } = await sentFor(body, { snapshot });
  expect(sent.reasoning).toEqual(reasoning);
});

test("a model that does not reason gets no effort", async () => {
  const body = {
    ...thinks({ type: "adaptive" }, { output_config: { effort: "medium" } }),
    model: "plain",
  };
  expect((await sentFor(body)).sent).not.toHaveProperty("reasoning");
});

describe("state in a signature", () => {
  const signature = `${carrierOf({ id: "rs_1", encrypted_content: "sealed" })}`;
  const thinking = { type: "thinking", thinking: "Hm.", signature };
  const body = assistant(thinking, { type: "text", text: "Yes." });
  const madeBy = async (accountId: string, upstream: string) => {
    const [hash = ""] = await hashesToRemember(signature);
    return { makers: [{ hash, accountId, upstream }] };
  };
  const typesOf = (input: unknown) => (input as { type: string }[]).map(({ type }) => type);

  test("goes to the upstream that made it", async () => {
    const { sent, upstreams } = await sentFor(body, await madeBy("acct_1", "other"));
    expect(typesOf(sent.input)).toEqual(["message", "reasoning", "message", "message"]);
    expect(upstreams.map(({ name }) => name)).toEqual(["other"]);
  });
  test("of an upstream of another model is left out", async () => {
    const { sent, upstreams } = await sentFor(body, await madeBy("acct_1", "inline"));
    expect(typesOf(sent.input)).toEqual(["message", "message", "message"]);
    expect(upstreams).toHaveLength(2);
  });
  test("that nobody got is left out, so that none can be made up", async () => {
    expect(typesOf((await sentFor(body)).sent.input)).toEqual(["message", "message", "message"]);
  });
  test("of another account is refused in Anthropic's words", async () => {
    const makers = await madeBy("acct_2", "up");
    expect(await refusalOf(body, { operation, ...makers })).toBe(
      "invalid_value messages[1].content[0].signature",
    );
    await expect(prepare(body, { operation, ...makers })).rejects.toThrow(
      "messages.1.content.0: Invalid `signature` in `thinking` block",
    );
  });
  test("of a Claude is left out", async () => {
    const foreign = assistant(
      { ...thinking, signature: "EqQBCgIYAh" },
      { type: "text", text: "Yes." },
    );
    expect(typesOf((await sentFor(foreign)).sent.input)).toEqual(["message", "message", "message"]);
  });
});

describe("the bound of the output", () => {
  const snapshot = snapshotWith({ maxOutputTokens: 30_000n, maxInputTokens: 100_000n });
  const heldFor = async (more: object) => {
    const { holdAmount, leastHold, bounds } = await prepare(asked(more), { operation, snapshot });
    const input = BigInt(bounds.input);
    return {
      most: holdAmount - input,
      least: leastHold === undefined ? undefined : leastHold - input,
    };
  };
  test("is kept up to 4,096 tokens", async () => {
    expect(await heldFor({ max_tokens: 4_096 })).toEqual({ most: 40_960n, least: undefined });
  });
  test("may fall to 4,096 tokens where it is higher, and is the model's at most", async () => {
    expect(await heldFor({ max_tokens: 4_097 })).toEqual({ most: 40_970n, least: 40_960n });
    expect(await heldFor({ max_tokens: 128_000 })).toEqual({ most: 300_000n, least: 40_960n });
  });
  test("leaves room behind a budget of thinking", async () => {
    const thinking = { type: "enabled", budget_tokens: 8_000 };
    expect(await heldFor({ max_tokens: 20_000, thinking })).toEqual({
      most: 200_000n,
      least: 90_240n,
    });
  });
});

test("names of blocks and tools that are not sent are named", async () => {
  const marked = { cache_control: { type: "ephemeral" } };
  const { leftOut } = await prepare(
    asked({
      system: [{ type: "text", text: "A", ...marked }],
      messages: [user([{ type: "text", text: "hi", ...marked, citations: null }])],
      tools: [{ name: "a", input_schema: {}, defer_loading: true }],
    }),
    { operation },
  );
  expect(leftOut).toEqual([
    "tools.defer_loading",
    "system.cache_control",
    "messages.content.cache_control",
  ]);
});

test("arguments of calls count as templates write them", async () => {
  const boundOf = async (text: string) => {
    const call = { type: "tool_use", id: "a", name: "b", input: { text } };
    const body = assistant(call);
    return (await prepare(body, { operation })).bounds.input;
  };
  expect((await boundOf('"'.repeat(100))) - (await boundOf("a".repeat(100)))).toBeGreaterThan(200);
});

test.each([
  ["one long input of a call", [{ text: "x".repeat(1_000_000) }]],
  ["very many inputs", Array.from({ length: 16_000 }, () => ({ a: 1 }))],
])("%s: other work has its turn meanwhile", (_, inputs) => {
  const found = { ...newFoundBlocks(create(ChatSpecSchema), []), inputs };
  expect([...argumentBytesOf(found)].length).toBeGreaterThan(2);
});
