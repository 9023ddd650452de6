import { afterAll, beforeEach, describe, expect, test } from "vitest";
import {
  type AnthropicDouble,
  anthropicAnswers,
  startAnthropic,
} from "../support/upstreams/anthropic.ts";
import { refusalOf } from "./caller.ts";
import { chat, developerPrompt } from "./catalog.ts";
import { ownWorldOnly, startWorld } from "./world.ts";

// Callers of Responses and Chat at an upstream that speaks Messages.

const perToken = (micros: number) => Math.round(micros * 1_000_000);
/** Opus 5.5, in micros for a token: input 4, read 0.2, written 5, written for an hour 8, output 20. */
const opus = {
  inputUsdMicrosPerMillionTokens: perToken(4),
  cachedInputUsdMicrosPerMillionTokens: perToken(0.2),
  cacheWriteUsdMicrosPerMillionTokens: perToken(5),
  cacheWriteLongUsdMicrosPerMillionTokens: perToken(8),
  outputUsdMicrosPerMillionTokens: perToken(20),
};
const fields = {
  ...{ upstream: "claude", upstreamModel: "up-model", pricing: opus, maxInputTokens: 200_000 },
  ...{ inputModalities: ["text", "image", "pdf"] },
};

ownWorldOnly();
const key = "sk-ant-of-the-operator";
const double: AnthropicDouble = await startAnthropic({ key });
const spare: AnthropicDouble = await startAnthropic({ key });
const world = await startWorld({
  env: { ANTHROPIC_KEY: key },
  catalog: (usual) => {
    const claude = { protocol: "anthropic", apiKeyEnv: "ANTHROPIC_KEY" };
    return {
      ...usual,
      upstreams: {
        ...usual.upstreams,
        claude: { ...claude, baseUrl: double.baseUrl },
        caching: { ...claude, baseUrl: double.baseUrl, autoCache: "1h" },
        spare: { ...claude, baseUrl: spare.baseUrl },
      },
      models: [
        ...usual.models,
        chat("claude", fields),
        chat("caching", { ...fields, upstream: "caching" }),
        chat("unforced", { ...fields, forcedTools: false }),
        chat("spared", { ...fields, fallbackUpstreams: ["spare"] }),
        chat("mixed", { ...fields, fallbackUpstreams: ["main"] }),
      ],
    };
  },
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
  await double[Symbol.asyncDispose]();
  await spare[Symbol.asyncDispose]();
});
const caller = await world.caller();
const other = await world.caller();
beforeEach(() => {
  double.usual = { content: [{ type: "text", text: "Hello." }] };
  double.always("messages", undefined);
});

const tools = [{ type: "function", name: "look", parameters: { type: "object" } }];
const thinking = { type: "thinking", thinking: "I must look.", signature: "c2lnbmF0dXJl+/=" };
const use = { type: "tool_use", id: "toolu_1", name: "look", input: { at: 1.5 } };
const lastBody = () => double.seen("messages").at(-1)?.body;
const sent = () => double.seen("messages").length;

describe("a loop of tools", () => {
  const begin = { model: "claude", tools, reasoning: { effort: "high", summary: "auto" } };
  const question = { role: "user", content: "What is there?" };
  const output = { type: "function_call_output", call_id: "toolu_1", output: "A lamp." };

  test.for(["whole", "streamed"])(
    "%s, of Responses: thinking goes back as it came",
    async (form) => {
      double.answers.push({ content: [thinking, use] });
      const asked = { ...begin, input: [question] };
      const items =
        form === "whole"
          ? (await caller.post("/responses", asked)).json.output
          : (await caller.stream("/responses", asked)).at(-2)?.json.response.output;
      expect(items.map(({ type }: { type: string }) => type)).toEqual([
        "reasoning",
        "function_call",
      ]);
      const { json, headers } = await caller.post("/responses", {
        ...begin,
        // Callers need not send back what an item shows.
        input: [question, { ...items[0], summary: [] }, items[1], output],
      });
      expect(json.output[0].content[0].text).toBe("Hello.");
      expect(headers.get("x-genmesh-ignored-parameters")).toBeNull();
      const { system, messages, thinking: asks } = lastBody();
      expect(system).toEqual([{ type: "text", text: developerPrompt }]);
      expect(messages[1].content).toEqual([thinking, use]);
      expect(asks.block_binding).toEqual({ prefix_mismatch_behavior: "drop_block" });
      expect(double.seen("messages").at(-1)?.headers["anthropic-beta"]).toBe(
        "thinking-binding-controls-2026-08-01",
      );
      expect(JSON.stringify(json)).not.toMatch(/OPERATOR-WORDS|up-model|toolu_1/);
    },
  );

  test("of Chat, with the state beside the message", async () => {
    double.answers.push({ content: [thinking, use] });
    const chatTools = [{ type: "function", function: { name: "look" } }];
    const body = { model: "claude", tools: chatTools, reasoning_effort: "high" };
    const first = await caller.post("/chat/completions", { ...body, messages: [question] });
    const { message } = first.json.choices[0];
    const answer = { role: "tool", tool_call_id: "toolu_1", content: "A lamp." };
    const messages = [question, message, answer];
    const next = await caller.post("/chat/completions", { ...body, messages });
    expect(next.json.choices[0].message.content).toBe("Hello.");
    expect(lastBody().messages[1].content).toEqual([thinking, use]);
    // Clients that know no such field send none back.
    const { reasoning_details: _, ...plain } = message;
    await caller.post("/chat/completions", { ...body, messages: [question, plain, answer] });
    expect(lastBody().messages[1].content).toEqual([use]);
  });

  test("thinking of another account, unknown thinking and that of another upstream is left out", async () => {
    const own = { ...thinking, signature: "b2YgdGhlIG90aGVy" };
    double.answers.push({ content: [own, use] });
    const { json } = await other.post("/responses", { ...begin, input: [question] });
    const [foreign, call] = json.output;
    const ask = async (item: object, model = "claude") => {
      const input = [question, item, call, output];
      const { status } = await caller.post("/responses", { ...begin, model, input });
      return status;
    };
    expect(await ask(foreign)).toBe(200);
    expect(lastBody().messages[1].content).toEqual([use]);
    const fields = Buffer.from(JSON.stringify({ signature: "bWFkZSB1cA==", thinking: "" }));
    const made = { ...foreign, encrypted_content: `gmt1.${fields.toString("base64url")}` };
    expect(await ask(made)).toBe(200);
    expect(lastBody().messages[1].content).toEqual([use]);
    world.play({ kind: "ok", encrypted: "gAAAA-of-main" });
    await caller.post("/responses", { model: "scripted", input: "Hi" });
    const theirs = {
      type: "reasoning",
      id: "rs_1",
      summary: [],
      encrypted_content: "gAAAA-of-main",
    };
    expect(await ask(theirs)).toBe(200);
    expect(lastBody().messages[1].content).toEqual([use]);
  });

  test("a change to a model of another protocol leaves the thinking out", async () => {
    double.answers.push({ content: [thinking, use] });
    const { json } = await caller.post("/responses", { ...begin, input: [question] });
    const seen = world.play();
    const input = [question, ...json.output, output];
    const next = await caller.post("/responses", { model: "scripted", tools, input });
    expect(next.status).toBe(200);
    expect(seen[0]?.body.input).toEqual([question, json.output[1], output]);
  });

  test("a conversation stays at the upstream that thought", async () => {
    double.answers.push({ content: [thinking, use] });
    const asked = { ...begin, model: "spared" };
    const { json } = await caller.post("/responses", { ...asked, input: [question] });
    double.always("messages", anthropicAnswers.down);
    const input = [question, ...json.output, output];
    const { status } = await caller.post("/responses", { ...asked, input });
    expect(status).toBe(502);
    expect(spare.seen("messages")).toHaveLength(0);
  });
});

describe("what Messages cannot do", () => {
  const input = "Hi";
  test.each([
    [
      "/responses",
      { input, text: { format: { type: "json_object" } } },
      "unsupported_parameter text.format.type",
    ],
    [
      "/responses",
      { input, tools: [{ type: "web_search" }] },
      "unsupported_parameter tools[0].type",
    ],
    [
      "/responses",
      { input, include: ["message.output_text.logprobs"] },
      "unsupported_parameter include",
    ],
    ["/responses", { input: [{ role: "assistant", content: "Hi" }] }, "invalid_value input[0]"],
    [
      "/responses",
      { input: [{ type: "function_call", call_id: "a", name: "n", arguments: "x" }] },
      "invalid_value input[0].arguments",
    ],
    ["/responses/compact", { input }, "model_not_responses_capable model"],
  ])("is refused at its field, and nothing is sent or held: %s %o", async (path, body, fault) => {
    const before = sent();
    const asked = await caller.post(path, { model: "claude", ...body });
    expect(refusalOf(asked)).toBe(`400 invalid_request_error ${fault}`);
    expect(sent()).toBe(before);
    expect(await caller.balance()).toMatchObject({ reserved: 0 });
  });

  test.each([
    [{ response_format: { type: "json_object" } }, "unsupported_parameter response_format.type"],
    [{ logprobs: true }, "unsupported_parameter logprobs"],
    [{ messages: [{ role: "assistant", content: "Hi" }] }, "invalid_value messages"],
  ])("in the words of Chat: %o", async (body, fault) => {
    const messages = [{ role: "user", content: "Hi" }];
    const asked = await caller.post("/chat/completions", { model: "claude", messages, ...body });
    expect(refusalOf(asked)).toBe(`400 invalid_request_error ${fault}`);
  });

  test("goes to an upstream that can, where the model has one", async () => {
    const before = sent();
    const seen = world.play();
    const format = { type: "json_object" };
    const body = { model: "mixed", input, text: { format } };
    expect((await caller.post("/responses", body)).status).toBe(200);
    expect([seen.length, sent() - before]).toEqual([1, 0]);
  });

  test("a model that cannot be made to call a tool", async () => {
    const body = { model: "unforced", input, tools, tool_choice: "required" };
    expect(refusalOf(await caller.post("/responses", body))).toBe(
      "400 invalid_request_error unsupported_parameter tool_choice",
    );
  });

  test("and what has no effect is named", async () => {
    const body = { model: "claude", input, temperature: 0.2, metadata: { a: "b" } };
    const { headers, json } = await caller.post("/responses", body);
    expect(headers.get("x-genmesh-ignored-parameters")).toBe("temperature, metadata");
    expect(json.metadata).toEqual({ a: "b" });
  });
});

describe("money", () => {
  const usage = {
    ...{ input_tokens: 100, cache_read_input_tokens: 20_000, cache_creation_input_tokens: 5_000 },
    cache_creation: { ephemeral_5m_input_tokens: 5_000, ephemeral_1h_input_tokens: 0 },
    output_tokens: 300,
  };
  const split = { ephemeral_5m_input_tokens: 3_000, ephemeral_1h_input_tokens: 2_000 };
  const long = "word ".repeat(20_000);

  // prices.md, examples 15 and 16.
  test.each([
    [usage, 35_400],
    [{ ...usage, cache_creation: split }, 41_400],
  ])("what was read and written has its own price: %o", async (reported, charged) => {
    for (const path of ["/responses", "/chat/completions"]) {
      for (const form of ["post", "stream"] as const) {
        const who = await world.caller();
        double.usual = { content: [{ type: "text", text: "Hello." }], usage: reported };
        const asked =
          path === "/responses" ? { input: long } : { messages: [{ role: "user", content: long }] };
        await who[form](path, { model: "claude", ...asked });
        expect((await who.settled()).monthSpend).toBe(charged);
      }
    }
  });

  test("an hour's cache is held for, and asked for", async () => {
    const who = await world.caller();
    let reserved = 0;
    double.next("messages", {
      kind: "held",
      until: double.request("messages", sent() + 1).then(async () => {
        reserved = (await who.balance()).reserved;
      }),
    });
    const body = { model: "caching", input: "Hi", tools, max_output_tokens: 100 };
    await who.post("/responses", body);
    expect(lastBody().cache_control).toEqual({ type: "ephemeral", ttl: "1h" });
    // Every token of the input may be written for an hour. The tools count with the upstream's own prompt for them.
    expect(reserved).toBeGreaterThan(8 * 1_024 + 20 * 100);
    expect(reserved % 4).toBe(0);
    double.usual = { content: [], usage: { ...usage, cache_creation: null } };
    await who.post("/responses", { ...body, input: long });
    const before = 10 * 4 + 5 * 20;
    // Without a split, all that was written is the hour's: 100 × 4 + 20,000 × 0.2 + 5,000 × 8 + 300 × 20.
    expect((await who.settled()).monthSpend).toBe(before + 50_400);
  });
});

describe("images and PDFs", () => {
  const png =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
  const pdf = Buffer.from("%PDF-1.4\n%%EOF").toString("base64");

  test("go up by their bytes", async () => {
    const content = [
      { type: "input_image", image_url: `data:image/png;base64,${png}` },
      { type: "input_file", filename: "a.pdf", file_data: `data:application/pdf;base64,${pdf}` },
      { type: "input_text", text: "Compare." },
    ];
    const { status } = await caller.post("/responses", {
      ...{ model: "claude", input: [{ role: "user", content }] },
    });
    expect(status).toBe(200);
    expect(lastBody().messages[0].content).toMatchObject([
      { type: "image", source: { type: "base64", media_type: "image/png", data: png } },
      { type: "document", source: { media_type: "application/pdf", data: pdf }, title: "a.pdf" },
      { type: "text", text: "Compare." },
    ]);
  });
});

test("an empty account, and one that is overloaded, lead to the next upstream", async () => {
  for (const answer of [anthropicAnswers.credit, anthropicAnswers.overloaded]) {
    const before = spare.seen("messages").length;
    double.next("messages", answer);
    const { status } = await caller.post("/responses", { model: "spared", input: "Hi" });
    expect(status).toBe(200);
    expect(spare.seen("messages")).toHaveLength(before + 1);
    await world.later(15 * 60_000);
  }
});
