import { create } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { viewOf } from "#kit/catalog-client.ts";
import { errorRow, isRefusal } from "#kit/errors.ts";
import { ImageError } from "#kit/images/index.ts";
import { OutsideError } from "#kit/outside/index.ts";
import { AdmissionSchema } from "#proto/genmesh/common/v1/access_pb.ts";
import { snapshotWith } from "../../../test/contract/usage.world.ts";
import { createTokenCounter } from "../tokens/count.ts";
import type { TextOperation } from "../upstream/port.ts";
import type { ImageSources } from "./images.ts";
import { type OpaqueMaker, opaqueHash } from "./opaque.ts";
import { parseRequest } from "./parse.ts";
import { type PreparedRequest, prepareRequest } from "./prepare.ts";

const png = "data:image/png;base64,iVBORw0KGgo=";
const mib = 1024 * 1024;
const big = (bytes: number) => `data:image/png;base64,${Buffer.alloc(bytes, 1).toString("base64")}`;

const images: ImageSources = {
  verifier: {
    async verify(source) {
      const first = Buffer.from(source as Uint8Array)[0];
      if (first === 0) throw new ImageError("corrupt");
      if (first === 2) throw new ImageError("busy");
      const found = { width: 64, height: 33, frames: 1, orientation: 1 };
      if (first === 0xff) return { ...found, format: "jpeg", mimeType: "image/jpeg" };
      return { ...found, format: "png", mimeType: "image/png" };
    },
  },
  outside: {
    async fetchBytes(url) {
      if (url.includes("large")) throw new OutsideError("too_large");
      if (url.includes("gone")) throw new OutsideError("bad_status", "404");
      return { bytes: Uint8Array.of(0xff, 0xd8), contentType: "image/jpeg" };
    },
  },
  allowPrivate: false,
  async readFile(fileId) {
    if (fileId !== "file_mine") throw Object.assign(await notFound(), {});
    return Uint8Array.of(0xff, 0xd8);
  },
};

async function notFound() {
  const { ErrorReason, RefusalError } = await import("#kit/errors.ts");
  return new RefusalError(ErrorReason.FILE_NOT_FOUND);
}

interface Options {
  operation?: TextOperation;
  allowedModels?: string[];
  makers?: OpaqueMaker[];
  snapshot?: ReturnType<typeof snapshotWith>;
}

function prepare(body: unknown, options: Options = {}): Promise<PreparedRequest> {
  const parsed = parseRequest(options.operation ?? "responses", Buffer.from(JSON.stringify(body)));
  const { allowedModels = [] } = options;
  const admission = create(AdmissionSchema, { allowedModels });
  return prepareRequest(
    parsed,
    { accountId: "acct_1", admission },
    {
      view: viewOf(options.snapshot ?? snapshotWith()),
      images,
      counter: createTokenCounter(),
      makers: async (hashes) => (options.makers ?? []).filter((m) => hashes.includes(m.hash)),
    },
    new AbortController().signal,
  );
}

async function refusalOf(body: unknown, options?: Options): Promise<string> {
  const error = await Promise.resolve()
    .then(() => prepare(body, options))
    .then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
  if (!isRefusal(error)) throw error ?? new Error("it was accepted");
  return `${errorRow(error.reason).code} ${error.param ?? "-"}`;
}

const ask = (more: object) => ({ model: "chat-1", input: "hi", ...more });
const message = (content: unknown, role = "user") => ask({ input: [{ role, content }] });
const image = (fields: object) => message([{ type: "input_image", ...fields }]);
const chat = (more: object) => ({
  model: "chat-1",
  messages: [{ role: "user", content: "hi" }],
  ...more,
});
const says = (fields: object) => chat({ messages: [{ role: "user", content: "hi" }, fields] });
const tool = (fields: object) => ask({ tools: [fields] });

describe("what /responses refuses", () => {
  const cases: [string, object, string][] = [
    ["no model", { input: "hi" }, "missing_required_parameter model"],
    ["model null", ask({ model: null }), "missing_required_parameter model"],
    ["model a number", ask({ model: 1 }), "invalid_type model"],
    ["unknown model", ask({ model: "nope" }), "model_not_found model"],
    ["inactive model", ask({ model: "asleep" }), "model_not_found model"],
    ["model of another kind", ask({ model: "image-1" }), "model_not_found model"],
    ["absurd model", ask({ model: "x".repeat(5_000) }), "model_not_found model"],
    ["legacy upstream", ask({ model: "legacy-1" }), "model_not_responses_capable model"],
    ["no input", { model: "chat-1" }, "missing_required_parameter input"],
    ["input null", ask({ input: null }), "missing_required_parameter input"],
    ["input empty", ask({ input: "" }), "missing_required_parameter input"],
    ["input empty array", ask({ input: [] }), "missing_required_parameter input"],
    ["input a number", ask({ input: 7 }), "invalid_type input"],
    ["input an object", ask({ input: {} }), "invalid_type input"],
    ["item no object", ask({ input: ["hi"] }), "invalid_type input[0]"],
    ["item type no string", ask({ input: [{ type: 1 }] }), "invalid_type input[0].type"],
    ["no role", ask({ input: [{ content: "x" }] }), "missing_required_parameter input[0].role"],
    ["role tool", message("x", "tool"), "invalid_value input[0].role"],
    ["role critic", message("x", "critic"), "invalid_value input[0].role"],
    ["no content", message(null), "missing_required_parameter input[0].content"],
    ["content a number", message(7), "invalid_type input[0].content"],
    ["part no object", message(["x"]), "invalid_type input[0].content[0]"],
    ["part without type", message([{}]), "missing_required_parameter input[0].content[0].type"],
    [
      "part without text",
      message([{ type: "input_text" }]),
      "missing_required_parameter input[0].content[0].text",
    ],
    [
      "sound",
      message([{ type: "input_text", text: "x" }, { type: "input_audio" }]),
      "unsupported_content_type input[0].content[1].type",
    ],
    [
      "a part of the chat format",
      message([{ type: "text", text: "x" }]),
      "unsupported_content_type input[0].content[0].type",
    ],
    [
      "a file's data",
      message([{ type: "input_file", file_data: "x" }]),
      "unsupported_content_type input[0].content[0].type",
    ],
    [
      "an upstream file",
      message([{ type: "input_file", file_id: "file-1" }]),
      "unsupported_parameter input[0].content[0].file_id",
    ],
    [
      "output without call",
      ask({ input: [{ type: "function_call_output", output: "x" }] }),
      "missing_required_parameter input[0].call_id",
    ],
    [
      "output missing",
      ask({ input: [{ type: "function_call_output", call_id: "c" }] }),
      "missing_required_parameter input[0].output",
    ],
    [
      "call without name",
      ask({ input: [{ type: "function_call", call_id: "c", arguments: "{}" }] }),
      "missing_required_parameter input[0].name",
    ],
    [
      "item reference",
      ask({ input: [{ type: "item_reference", id: "x" }] }),
      "unsupported_parameter input[0].type",
    ],
    ["short item reference", ask({ input: [{ id: "x" }] }), "unsupported_parameter input[0].id"],
    ["instructions no text", ask({ instructions: ["x"] }), "invalid_type instructions"],
    ["max 0", ask({ max_output_tokens: 0 }), "invalid_value max_output_tokens"],
    ["max -1", ask({ max_output_tokens: -1 }), "invalid_value max_output_tokens"],
    ["max 1.5", ask({ max_output_tokens: 1.5 }), "invalid_type max_output_tokens"],
    ["max text", ask({ max_output_tokens: "5" }), "invalid_type max_output_tokens"],
    ["stream text", ask({ stream: "true" }), "invalid_type stream"],
    ["stream options", ask({ stream_options: 1 }), "invalid_type stream_options"],
    ["reasoning text", ask({ reasoning: "high" }), "invalid_type reasoning"],
    ["effort number", ask({ reasoning: { effort: 1 } }), "invalid_type reasoning.effort"],
    [
      "effort unknown",
      ask({ reasoning: { effort: "extreme" } }),
      "unsupported_parameter reasoning.effort",
    ],
    [
      "effort of a model without",
      ask({ model: "plain", reasoning: { effort: "low" } }),
      "unsupported_parameter reasoning.effort",
    ],
    [
      "previous response",
      ask({ previous_response_id: "r" }),
      "unsupported_parameter previous_response_id",
    ],
    ["conversation", ask({ conversation: "c" }), "unsupported_parameter conversation"],
    ["prompt", ask({ prompt: { id: "p" } }), "unsupported_parameter prompt"],
    ["background", ask({ background: true }), "unsupported_parameter background"],
    ["tools no array", ask({ tools: {} }), "invalid_type tools"],
    ["tool no object", ask({ tools: ["x"] }), "invalid_type tools[0]"],
    ["tool without type", tool({}), "missing_required_parameter tools[0].type"],
    ["tool not taken", tool({ type: "mcp" }), "unsupported_parameter tools[0].type"],
    [
      "no tools at all",
      { ...tool({ type: "function", name: "f" }), model: "plain" },
      "unsupported_parameter tools[0].type",
    ],
    [
      "function without name",
      tool({ type: "function" }),
      "missing_required_parameter tools[0].name",
    ],
    [
      "upstream store",
      tool({ type: "web_search", vector_store_ids: ["v"] }),
      "unsupported_parameter tools[0].vector_store_ids",
    ],
    [
      "upstream files, deep",
      tool({ type: "web_search", container: { type: "auto", file_ids: ["f"] } }),
      "unsupported_parameter tools[0].container.file_ids",
    ],
    [
      "a container by id",
      tool({ type: "web_search", container: "cntr_1" }),
      "unsupported_parameter tools[0].container",
    ],
    ["tool choice", ask({ tool_choice: 1 }), "invalid_type tool_choice"],
    ["context", ask({ input: "word ".repeat(12_000) }), "context_length_exceeded input"],
    [
      "context with instructions",
      ask({ instructions: "word ".repeat(12_000) }),
      "context_length_exceeded input",
    ],
  ];
  test.each(cases)("%s", async (_name, body, expected) => {
    expect(await refusalOf(body)).toBe(expected);
    if ((body as { model?: string }).model !== "legacy-1") {
      expect(await refusalOf(body, { operation: "compact" })).toBe(expected);
    }
  });

  test("a model that the key may not use", async () => {
    expect(await refusalOf(ask({}), { allowedModels: ["plain"] })).toBe("permission_denied model");
    await prepare(ask({}), { allowedModels: ["plain", "chat-1"] });
  });
});

describe("images of /responses", () => {
  const at = "input[0].content[0]";
  const cases: [string, object, string][] = [
    [
      "model without images",
      { ...image({ image_url: png }), model: "text-only" },
      `unsupported_content_type ${at}.type`,
    ],
    ["no source", image({}), `missing_required_parameter ${at}.image_url`],
    ["two sources", image({ image_url: png, file_id: "f" }), `invalid_value ${at}.file_id`],
    ["url an object", image({ image_url: { url: png } }), `invalid_type ${at}.image_url`],
    ["detail", image({ image_url: png, detail: "ultra" }), `invalid_value ${at}.detail`],
    ["detail type", image({ image_url: png, detail: 1 }), `invalid_type ${at}.detail`],
    [
      "no base64",
      image({ image_url: "data:image/png;base64,***" }),
      `invalid_image ${at}.image_url`,
    ],
    [
      "no image",
      image({ image_url: "data:text/plain;base64,aGk=" }),
      `invalid_image ${at}.image_url`,
    ],
    [
      "corrupt",
      image({ image_url: "data:image/png;base64,AAAA" }),
      `invalid_image ${at}.image_url`,
    ],
    [
      "plain http",
      image({ image_url: "http://example.com/a.png" }),
      `invalid_image ${at}.image_url`,
    ],
    ["no url", image({ image_url: "cat.png" }), `invalid_image ${at}.image_url`],
    ["loopback", image({ image_url: "https://127.0.0.1/a.png" }), `invalid_image ${at}.image_url`],
    ["local name", image({ image_url: "https://db.internal/a" }), `invalid_image ${at}.image_url`],
    ["metadata", image({ image_url: "https://169.254.169.254/" }), `invalid_image ${at}.image_url`],
    ["too large", image({ image_url: big(20 * mib + 1) }), `image_too_large ${at}.image_url`],
    [
      "too large together",
      message([11, 10].map((size) => ({ type: "input_image", image_url: big(size * mib) }))),
      "image_too_large input[0].content[1].image_url",
    ],
    [
      "21 images",
      message(Array.from({ length: 21 }, () => ({ type: "input_image", image_url: png }))),
      "image_limit_exceeded input[0].content[20]",
    ],
    [
      "21 images in outputs of calls",
      ask({
        input: Array.from({ length: 21 }, () => ({
          type: "function_call_output",
          call_id: "c",
          output: [{ type: "input_image", image_url: png }],
        })),
      }),
      "image_limit_exceeded input[20].output[0]",
    ],
    ["another's file", image({ file_id: "file_other" }), `reference_not_found ${at}.file_id`],
    ["decoder busy", image({ image_url: "data:image/png;base64,AgAA" }), "service_unavailable -"],
    [
      "fetched and too large",
      { ...image({ image_url: "https://example.com/large" }), model: "inline-1" },
      `image_too_large ${at}.image_url`,
    ],
    [
      "fetched and gone",
      { ...image({ image_url: "https://example.com/gone" }), model: "inline-1" },
      `invalid_image ${at}.image_url`,
    ],
  ];
  test.each(cases)("%s", async (_name, body, expected) => {
    expect(await refusalOf(body)).toBe(expected);
  });

  const sentImage = async (body: object) => {
    const { body: sent } = await prepare(body);
    return (sent.input as { content: object[] }[])[0]?.content[0];
  };
  test("an address goes up as it is", async () => {
    const part = { image_url: "https://example.com/a.png", detail: "low" };
    expect(await sentImage(image(part))).toEqual({ type: "input_image", ...part });
  });
  test("an address is taken inline where the upstream asks for it, a file always", async () => {
    const inline = { type: "input_image", image_url: "data:image/jpeg;base64,/9g=" };
    const byAddress = image({ image_url: "https://example.com/a.png" });
    expect(await sentImage({ ...byAddress, model: "inline-1" })).toEqual(inline);
    expect(await sentImage(image({ file_id: "file_mine" }))).toEqual(inline);
  });
  test("the type is that of the bytes", async () => {
    const lying = image({ image_url: "data:image/png;base64,/9g=" });
    expect(await sentImage(lying)).toMatchObject({ image_url: "data:image/jpeg;base64,/9g=" });
  });
  test("base64 is no text: the bound grows by patches alone", async () => {
    const none = await prepare(message([{ type: "input_text", text: "x" }]));
    const one = await prepare(image({ image_url: big(15 * mib) }));
    expect(one.bounds.input - none.bounds.input).toBeLessThan(100);
    // 64 by 33 pixels are 2 by 2 patches.
    expect(one.guessedInput).toBeLessThan(100);
  });
});

describe("what /chat/completions refuses", () => {
  const at = "messages[1]";
  const call = { id: "c", type: "function", function: { name: "f", arguments: "{}" } };
  const cases: [string, object, string][] = [
    ["no messages", { model: "chat-1" }, "missing_required_parameter messages"],
    ["empty", chat({ messages: [] }), "missing_required_parameter messages"],
    ["no array", chat({ messages: "hi" }), "invalid_type messages"],
    ["no object", chat({ messages: ["hi"] }), "invalid_type messages[0]"],
    ["no role", says({ content: "x" }), `missing_required_parameter ${at}.role`],
    ["role", says({ role: "critic", content: "x" }), `invalid_value ${at}.role`],
    ["no content", says({ role: "user" }), `missing_required_parameter ${at}.content`],
    [
      "content null",
      says({ role: "user", content: null }),
      `missing_required_parameter ${at}.content`,
    ],
    ["content number", says({ role: "user", content: 1 }), `invalid_type ${at}.content`],
    [
      "content parts",
      says({ role: "user", content: [] }),
      `unsupported_content_type ${at}.content`,
    ],
    [
      "assistant without anything",
      says({ role: "assistant" }),
      `missing_required_parameter ${at}.content`,
    ],
    [
      "assistant with no calls",
      says({ role: "assistant", content: null, tool_calls: [] }),
      `missing_required_parameter ${at}.content`,
    ],
    [
      "tool without call",
      says({ role: "tool", content: "x" }),
      `missing_required_parameter ${at}.tool_call_id`,
    ],
    [
      "call without id",
      says({ role: "assistant", tool_calls: [{ ...call, id: null }] }),
      `missing_required_parameter ${at}.tool_calls[0].id`,
    ],
    [
      "call without name",
      says({ role: "assistant", tool_calls: [{ ...call, function: { arguments: "" } }] }),
      `missing_required_parameter ${at}.tool_calls[0].function.name`,
    ],
    [
      "sound in a turn",
      says({ role: "assistant", content: "", audio: { id: "a" } }),
      `unsupported_parameter ${at}.audio`,
    ],
    ["n 2", chat({ n: 2 }), "unsupported_parameter n"],
    ["n 0", chat({ n: 0 }), "unsupported_parameter n"],
    ["n text", chat({ n: "1" }), "unsupported_parameter n"],
    ["effort", chat({ reasoning_effort: "extreme" }), "unsupported_parameter reasoning_effort"],
    ["max_tokens", chat({ max_tokens: 0 }), "invalid_value max_tokens"],
    [
      "max_completion_tokens",
      chat({ max_completion_tokens: "1" }),
      "invalid_type max_completion_tokens",
    ],
    ["two maxima", chat({ max_tokens: 5, max_completion_tokens: 6 }), "invalid_value max_tokens"],
    ["tool type", chat({ tools: [{ type: "mcp" }] }), "unsupported_parameter tools[0].type"],
    [
      "tool function",
      chat({ tools: [{ type: "function" }] }),
      "missing_required_parameter tools[0].function",
    ],
    [
      "tool name",
      chat({ tools: [{ type: "function", function: {} }] }),
      "missing_required_parameter tools[0].function.name",
    ],
    ["sound", chat({ modalities: ["text", "audio"] }), "unsupported_parameter modalities"],
    ["voice", chat({ audio: { voice: "x" } }), "unsupported_parameter audio"],
    ["format", chat({ response_format: "json" }), "invalid_type response_format"],
    [
      "search without",
      { ...chat({ web_search_options: {} }), model: "plain" },
      "unsupported_parameter web_search_options",
    ],
    [
      "previous response",
      chat({ previous_response_id: "r" }),
      "unsupported_parameter previous_response_id",
    ],
    [
      "usage flag",
      chat({ stream_options: { include_usage: 1 } }),
      "invalid_type stream_options.include_usage",
    ],
    [
      "context",
      says({ role: "user", content: "word ".repeat(12_000) }),
      "context_length_exceeded messages",
    ],
  ];
  test.each(cases)("%s", async (_name, body, expected) => {
    expect(await refusalOf(body, { operation: "chat" })).toBe(expected);
  });

  test("what it takes", async () => {
    const turns = [
      { role: "system", content: "s" },
      { role: "developer", content: "d" },
      { role: "user", content: "" },
      { role: "assistant", content: null, tool_calls: [call] },
      { role: "tool", tool_call_id: "c", content: "r" },
    ];
    const body = chat({ messages: turns, n: 1, max_tokens: 5, seed: 7, reasoning_effort: "FAST" });
    const { body: sent, bounds } = await prepare(body, { operation: "chat" });
    expect(sent).toMatchObject({ seed: 7, max_tokens: 5, reasoning_effort: "low", store: false });
    expect(sent.messages).toEqual([{ role: "system", content: "Be kind." }, ...turns]);
    expect(bounds.output).toBe(5);
    await prepare({ ...body, model: "legacy-1" }, { operation: "chat" });
  });
});

describe("what goes up", () => {
  test("developer prompt first, then the caller's, which alone is echoed", async () => {
    const both = await prepare(ask({ instructions: "Be brief.", tools: [{ type: "web_search" }] }));
    expect(both.body.instructions).toBe("Be kind.\n\nBe brief.");
    expect(both.callerInstructions).toBe("Be brief.");
    const none = await prepare(ask({}), { operation: "compact" });
    expect(none.body.instructions).toBe("Be kind.");
    expect(none.callerInstructions).toBeNull();
    const own = snapshotWith({ developerPrompt: "" });
    expect((await prepare(ask({}), { snapshot: own })).body).not.toHaveProperty("instructions");
  });
  test("store is false and the tier the catalog's, whatever was sent", async () => {
    const body = ask({ store: true, service_tier: "priority", background: false, prompt: null });
    expect((await prepare(body)).body).toEqual({
      model: "chat-1",
      input: "hi",
      instructions: "Be kind.",
      store: false,
    });
    const { body: sent } = await prepare(body, { snapshot: snapshotWith({ serviceTier: "flex" }) });
    expect(sent.service_tier).toBe("flex");
  });
  test("efforts and aliases without case; omitted stays omitted", async () => {
    const effort = async (value: unknown) => {
      const { body } = await prepare(ask({ reasoning: { effort: value, summary: "auto" } }));
      return body.reasoning;
    };
    expect(await effort("HIGH")).toEqual({ effort: "high", summary: "auto" });
    expect(await effort("Deep")).toEqual({ effort: "high", summary: "auto" });
    expect(await effort(null)).toEqual({ summary: "auto" });
    expect((await prepare(ask({}))).body).not.toHaveProperty("reasoning");
  });
  test("a refused effort names the accepted ones", async () => {
    const error = await prepare(ask({ reasoning: { effort: "x" } })).catch((e: Error) => e);
    expect((error as Error).message).toContain("low, medium, high, fast, deep");
  });
  test("unknown properties, items and outputs of calls pass unchanged", async () => {
    const input = [
      { type: "function_call", call_id: "c", name: "f", arguments: "{}", odd: [1] },
      { type: "function_call_output", call_id: "c", output: "42", extra: { a: null } },
      { type: "future_thing", anything: { at: ["all"] } },
    ];
    const { body } = await prepare(ask({ input, future: { x: 1 } }));
    expect(body.input).toEqual(input);
    expect(body.future).toEqual({ x: 1 });
  });
  test("max_output_tokens: lowered to the model's, omitted stays omitted", async () => {
    const most = await prepare(ask({ max_output_tokens: 999_999 }));
    expect(most.body.max_output_tokens).toBe(1_000);
    const none = await prepare(ask({}));
    expect(none.body).not.toHaveProperty("max_output_tokens");
    expect([most.bounds.output, none.bounds.output]).toEqual([1_000, 1_000]);
    expect((await prepare(ask({ max_output_tokens: 7 }))).bounds.output).toBe(7);
  });
  test("a hosted tool makes the bound the model's whole input", async () => {
    expect((await prepare(tool({ type: "web_search" }))).bounds.input).toBe(10_000);
    const own = await prepare(tool({ type: "function", name: "f" }));
    expect(own.bounds.input).toBeLessThan(1_000);
    // USD micros: a dollar a million tokens in, ten out.
    expect(own.holdAmount).toBe(BigInt(own.bounds.input) + 10_000n);
  });
  test("compaction is no stream", async () => {
    const { body, form } = await prepare(ask({ stream: true }), { operation: "compact" });
    expect(form).toBe("json");
    expect(body).not.toHaveProperty("stream");
    expect((await prepare(ask({ stream: true }))).body.stream).toBe(true);
  });
});

describe("the context window", () => {
  // 10,000 for input and output together, 100 of them margin.
  const words = (count: number) =>
    ask({ input: "word ".repeat(count).trim(), max_output_tokens: 900 });
  test("what fits by its tokens is taken, though its bytes do not fit", async () => {
    await prepare(words(8_900));
    expect(await refusalOf(words(9_100))).toBe("context_length_exceeded input");
  });
  test("an omitted maximum reserves the model's, but at most half the window", async () => {
    const body = { model: "chat-1", input: "word ".repeat(4_800) };
    const snapshot = snapshotWith({ maxOutputTokens: 10_000n });
    await prepare(body, { snapshot });
    expect(await refusalOf({ ...body, max_output_tokens: 10_000 }, { snapshot })).toBe(
      "context_length_exceeded input",
    );
  });
  test("text that looks like a control token is text", async () => {
    await prepare(ask({ input: "<|endoftext|> ".repeat(1_000) }));
  });
});

describe("opaque state", () => {
  const state = { type: "reasoning", id: "rs", summary: [], encrypted_content: "gAAAA" };
  const body = ask({ input: [{ role: "user", content: "x" }, state] });
  const maker = (accountId: string, upstream: string, value = "gAAAA"): OpaqueMaker => ({
    hash: opaqueHash(value),
    accountId,
    upstream,
  });
  const names = async (makers: OpaqueMaker[], asked: object = body) =>
    (await prepare(asked, { makers })).upstreams.map((one) => one.name);

  test("none: every upstream may be tried", async () => {
    expect(await names([], ask({}))).toEqual(["up", "other"]);
  });
  test("unknown: the first upstream, no fallback, unchanged", async () => {
    expect(await names([])).toEqual(["up"]);
    const { body: sent } = await prepare(body);
    expect((sent.input as unknown[])[1]).toEqual(state);
  });
  test("known: the upstream that made it, no fallback", async () => {
    expect(await names([maker("acct_1", "other")])).toEqual(["other"]);
  });
  test("another account's is refused, unless it is ours as well", async () => {
    const theirs = maker("acct_2", "up");
    expect(await refusalOf(body, { makers: [theirs] })).toBe(
      "invalid_value input[1].encrypted_content",
    );
    expect(await names([theirs, maker("acct_1", "other")])).toEqual(["other"]);
  });
  test("another model's upstream, or two upstreams together, are refused", async () => {
    const elsewhere = { makers: [maker("acct_1", "legacy")] };
    expect(await refusalOf(body, elsewhere)).toBe("invalid_value input[1].encrypted_content");
    const second = { type: "compaction", encrypted_content: "second" };
    const both = ask({ input: [state, second] });
    const makers = [maker("acct_1", "up"), maker("acct_1", "other", "second")];
    expect(await refusalOf(both, { makers })).toBe("invalid_value input[1].encrypted_content");
  });
  test("of an upstream that the catalog no longer has: as if unknown", async () => {
    expect(await names([maker("acct_1", "gone")])).toEqual(["up"]);
  });
});

describe("JSON", () => {
  const parse = (text: string) => parseRequest("responses", Buffer.from(text));
  test.each([
    ["", "empty"],
    ["{", "cut"],
    ["[]", "array"],
    ["null", "null"],
    ['{"a":1e999}', "beyond a double"],
    [`{"a":${"[".repeat(200)}${"]".repeat(200)}}`, "too deep"],
  ])("refuses %s", (text) => {
    expect(() => parse(text)).toThrow(/JSON/);
  });
  test("the last of equal names counts, and is what goes up", async () => {
    const parsed = parse('{"model":"nope","model":"chat-1","input":"hi"}');
    expect(parsed.body.model).toBe("chat-1");
  });
});
