import { describe, expect, test } from "vitest";
import { ask, chat, prepare, refusalOf, tool } from "../../../test/contract/usage.prepare.ts";
import { snapshotWith } from "../../../test/contract/usage.world.ts";

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
  test("store is false and the tier the catalog's, no matter what was sent", async () => {
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
  test("items and outputs of calls pass with the fields that are known, unknown ones unchanged on models that take every tool", async () => {
    const input = [
      { type: "function_call", call_id: "c", name: "f", arguments: "{}", odd: [1] },
      { type: "function_call_output", call_id: "c", output: "42", extra: { a: null } },
      { type: "future_thing", anything: { at: ["all"] } },
    ];
    const snapshot = snapshotWith({ tools: ["*"] });
    const { body, bounds } = await prepare(ask({ input }), { snapshot });
    expect(body.input).toEqual([
      { type: "function_call", call_id: "c", name: "f", arguments: "{}" },
      { type: "function_call_output", call_id: "c", output: "42" },
      { type: "future_thing", anything: { at: ["all"] } },
    ]);
    // The upstream may turn an unknown item into anything.
    expect(bounds.input).toBe(10_000);
    expect(await refusalOf(ask({ input }))).toBe("unsupported_parameter input[2].type");
  });
  describe("names within items, messages, parts and tools are those that are known", () => {
    const cache = { cache_control: { type: "ephemeral", ttl: "1h" } };
    const dear = { ...cache, prompt_cache_breakpoint: { mode: "explicit" } };
    const schema = { type: "object", properties: { cache_control: { type: "string" } } };
    const all = { tools: ["*"] };

    test("of responses", async () => {
      const text = { type: "input_text", text: "abc" };
      const call = { type: "function_call", call_id: "c", name: "f", arguments: "{}" };
      const thought = {
        type: "reasoning",
        id: "r",
        summary: [{ type: "summary_text", text: "a" }],
      };
      const opaque = { type: "future_thing", ...dear };
      const output = { type: "function_call_output", call_id: "c", output: [text] };
      const named = { type: "function", name: "f", parameters: schema };
      const own = { type: "custom", name: "g", format: { type: "text" } };
      const group = { type: "namespace", name: "n", description: "d", tools: [named] };
      const input = [{ role: "user", content: [text] }, call, output, thought, opaque];
      const dearText = { ...text, ...dear };
      const sent = ask({
        input: [
          { role: "user", content: [dearText], ...dear },
          { ...call, ...dear },
          { ...output, output: [dearText] },
          { ...thought, summary: [{ type: "summary_text", text: "a", ...cache }] },
          opaque,
        ],
        tools: [
          { ...named, ...dear },
          { ...own, ...cache },
          { ...group, tools: [{ ...named, ...cache }] },
          { type: "future_tool", ...cache },
        ],
      });
      const prepared = await prepare(structuredClone(sent), { snapshot: snapshotWith(all) });
      expect(prepared.body.input).toEqual(input);
      const unknown = { type: "future_tool", ...cache };
      expect(prepared.body.tools).toEqual([named, own, group, unknown]);
      expect([...(prepared.leftOut ?? [])].sort()).toEqual([
        "input.cache_control",
        "input.content.cache_control",
        "input.content.prompt_cache_breakpoint",
        "input.output.cache_control",
        "input.output.prompt_cache_breakpoint",
        "input.prompt_cache_breakpoint",
        "input.summary.cache_control",
        "tools.cache_control",
        "tools.prompt_cache_breakpoint",
        "tools.tools.cache_control",
      ]);

      const some = snapshotWith({ ...all, passParameters: ["cache_control"] });
      const passing = await prepare(structuredClone(sent), { snapshot: some });
      expect((passing.body.tools as unknown[]).slice(0, 2)).toMatchObject([
        { ...named, ...cache },
        { ...own, ...cache },
      ]);
      expect(passing.leftOut?.every((name) => name.endsWith("prompt_cache_breakpoint"))).toBe(true);
      const every = snapshotWith({ ...all, passParameters: ["*"] });
      const { body, leftOut } = await prepare(structuredClone(sent), { snapshot: every });
      expect(body).toMatchObject(sent);
      expect(leftOut).toEqual([]);
    });

    test("of chat", async () => {
      const named = { name: "f", parameters: schema };
      const call = { id: "c", type: "function", function: { name: "f", arguments: "{}" } };
      const messages = [
        { role: "user", content: "abc" },
        { role: "assistant", content: null, tool_calls: [call], reasoning_content: "hm" },
        { role: "tool", tool_call_id: "c", content: "42" },
      ];
      const sent = {
        messages: [
          { role: "user", content: [{ type: "text", text: "abc", ...cache }], ...dear },
          {
            ...messages[1],
            tool_calls: [{ ...call, ...cache, function: { ...call.function, ...cache } }],
          },
          { ...messages[2], ...cache },
        ],
        tools: [{ type: "function", function: { ...named, ...dear }, ...cache }],
        functions: [{ ...named, ...cache }],
        tool_choice: { type: "function", function: { name: "f" } },
      };
      const { body, leftOut } = await prepare(
        { ...chat({}), model: "legacy-1", ...structuredClone(sent) },
        { operation: "chat" },
      );
      expect((body.messages as unknown[]).slice(1)).toEqual(messages);
      expect(body.tools).toEqual([{ type: "function", function: named }]);
      expect(body.functions).toEqual([named]);
      expect(body.tool_choice).toEqual(sent.tool_choice);
      expect([...(leftOut ?? [])].sort()).toEqual([
        "functions.cache_control",
        "messages.cache_control",
        "messages.content.cache_control",
        "messages.prompt_cache_breakpoint",
        "messages.tool_calls.cache_control",
        "messages.tool_calls.function.cache_control",
        "tools.cache_control",
        "tools.function.cache_control",
        "tools.function.prompt_cache_breakpoint",
      ]);
    });
  });
  test("properties that are not on the list stay here", async () => {
    const more = { future: { x: 1 }, return_token_ids: true, top_k: 4, "a b\u00e9": 1 };
    const { body } = await prepare(ask(more));
    expect(body).toMatchObject({ top_k: 4 });
    for (const name of ["future", "return_token_ids", "a b\u00e9"]) {
      expect(body).not.toHaveProperty(name);
    }
    const named = snapshotWith({ passParameters: ["future"] });
    expect((await prepare(ask(more), { snapshot: named })).body.future).toEqual({ x: 1 });
    const all = snapshotWith({ passParameters: ["*"] });
    expect((await prepare(ask(more), { snapshot: all })).body).toMatchObject(more);
  });
  test("the bound of the output is no input, under any of its names", async () => {
    const inputOf = async (body: object, operation: "chat" | "responses") =>
      (await prepare(body, { operation })).bounds.input;
    const none = await inputOf(chat({}), "chat");
    for (const name of ["max_tokens", "max_completion_tokens", "max_output_tokens"]) {
      expect(await inputOf(chat({ [name]: 7 }), "chat")).toBe(none);
    }
    expect(await inputOf(ask({ max_output_tokens: 7 }), "responses")).toBe(
      await inputOf(ask({}), "responses"),
    );
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
    // USD micros: a dollar for a million tokens of input, ten dollars for output.
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
