import { describe, expect, test } from "vitest";
import { inTurns } from "#kit/base/in-turns.ts";
import type { JsonObject, JsonValue } from "#kit/base/json.ts";
import { toResponsesRequest } from "../chat/request.ts";
import { carrierOf } from "./carrier.ts";
import {
  bodyOf,
  call,
  faultOf,
  lookThere,
  made,
  result,
  toolResult,
  toolUse,
  user,
  usual,
} from "./request.fixture.ts";
import { toMessages } from "./request.ts";

describe("instructions and roles", () => {
  test("instructions and the first developer messages are the system", () => {
    const input = [
      { role: "developer", content: "Be kind." },
      { role: "system", content: [{ type: "input_text", text: "Be brief." }] },
      { role: "user", content: "Hi" },
    ];
    expect(bodyOf({ instructions: "Obey.", input })).toEqual({
      system: ["Obey.", "Be kind.", "Be brief."].map((text) => ({ type: "text", text })),
      messages: [user("Hi")],
    });
  });

  const later = [
    { role: "user", content: "Hi" },
    { role: "assistant", content: "Yes?" },
    { role: "developer", content: "Shout." },
    { role: "user", content: "Go on." },
    { role: "assistant", content: "I DO." },
  ];
  const said = (text: string) => ({ role: "assistant", content: [{ type: "text", text }] });

  test("later ones are turns of the system behind the next one of the user", () => {
    const system = { role: "system", content: [{ type: "text", text: "Shout." }] };
    expect(bodyOf({ input: later }).messages).toEqual([
      ...[user("Hi"), said("Yes?"), user("Go on."), system, said("I DO.")],
    ]);
  });

  test("or a text of the user's, where the upstream has no such turns or no turn follows", () => {
    const both = {
      role: "user",
      content: ["Shout.", "Go on."].map((text) => ({ type: "text", text })),
    };
    expect(bodyOf({ input: later }, { betas: [] }).messages).toEqual([
      ...[user("Hi"), said("Yes?"), both, said("I DO.")],
    ]);
    expect(bodyOf({ input: later.slice(0, 3) }).messages).toEqual([
      ...[user("Hi"), said("Yes?"), user("Shout.")],
    ]);
  });

  test("a conversation begins with the user", () => {
    expect(faultOf({ input: later.slice(1) })).toBe("invalid input[0]");
    expect(faultOf({ input: [{ role: "developer", content: "Be kind." }] })).toBe("invalid input");
    expect(faultOf({ input: "  " })).toBe("invalid input");
  });

  test("neighbours of one role are one turn, and blank texts are none", () => {
    const input = ["A", " ", "B"].map((content) => ({ role: "user", content }));
    const content = ["A", "B"].map((text) => ({ type: "text", text }));
    expect(bodyOf({ input }).messages).toEqual([{ role: "user", content }]);
  });
});

describe("content", () => {
  const partsOf = (content: JsonValue[]) => made({ input: [{ role: "user", content }] });

  test("images and PDFs, by address and by their bytes", () => {
    const { body, leftOut } = partsOf([
      { type: "input_image", image_url: "https://example.com/a.png", detail: "low" },
      { type: "input_image", image_url: "data:image/png;base64,QUJD" },
      { type: "input_file", file_data: "data:application/pdf;base64,QUJD", filename: "a.pdf" },
    ]);
    const inline = (media_type: string) => ({ type: "base64", media_type, data: "QUJD" });
    expect(body.messages).toEqual([
      {
        role: "user",
        content: [
          { type: "image", source: { type: "url", url: "https://example.com/a.png" } },
          { type: "image", source: inline("image/png") },
          { type: "document", source: inline("application/pdf"), title: "a.pdf" },
        ],
      },
    ]);
    expect(leftOut).toEqual(["input.content.detail"]);
  });

  test("sound is refused, and images in the model's own turns", () => {
    const sound = { type: "input_audio", input_audio: { data: "", format: "wav" } };
    expect(faultOf({ input: [{ role: "user", content: [sound] }] })).toBe(
      "unsupported input[0].content[0].type",
    );
    const image = { type: "input_image", image_url: "https://example.com/a.png" };
    const input = [
      { role: "user", content: "Hi" },
      { role: "assistant", content: [image] },
    ];
    expect(faultOf({ input })).toBe("unsupported input[1].content");
  });

  test("phases and annotations of history are left out by name", () => {
    const text = { type: "output_text", text: "Yes.", annotations: [{ type: "url_citation" }] };
    const input = [
      { role: "user", content: "Hi" },
      { role: "assistant", phase: "commentary", content: [text] },
    ];
    expect(made({ input }).leftOut).toEqual(["input.phase", "input.content.annotations"]);
  });
});

describe("thinking", () => {
  const thought = { type: "thinking", thinking: "Hm.", signature: "c2ln" };
  const sealed = { type: "redacted_thinking", data: "ZGF0YQ==" };
  const itemOf = (block: JsonObject): JsonObject => ({
    ...{ type: "reasoning", id: "rs_1", summary: [], encrypted_content: carrierOf(block) ?? "" },
  });
  const turn = (items: JsonObject[]) => [
    ...[{ role: "user", content: "Hi" }, ...items, call("a"), result("a", "A")],
  ];

  test("goes back as it was made, before the call", () => {
    const input = turn([itemOf(thought), itemOf(sealed)]);
    expect(bodyOf({ input }).messages).toMatchObject([
      ...[{}, { content: [thought, sealed, toolUse("a")] }, {}],
    ]);
  });

  test("of another maker, or without a signature, is left out", () => {
    const items = ["gAAAA==", "gmt1.", "gmt1.e30", "gmr1.e30"].map((encrypted_content) => ({
      ...{ type: "reasoning", summary: [], encrypted_content },
    }));
    const input = turn([...items, { type: "reasoning", summary: [] }]);
    expect(bodyOf({ input }).messages).toMatchObject([{}, { content: [toolUse("a")] }, {}]);
    expect(carrierOf({ ...thought, signature: "" })).toBeUndefined();
  });

  test("whose text is empty is whole", () => {
    const empty = { ...thought, thinking: "" };
    const input = turn([itemOf(empty)]);
    expect(bodyOf({ input }).messages).toMatchObject([{}, { content: [empty, toolUse("a")] }, {}]);
  });

  test("from behind another beginning is dropped there, where the model and the upstream know that", () => {
    const input = turn([itemOf(thought)]);
    const block_binding = { prefix_mismatch_behavior: "drop_block" };
    expect(bodyOf({ input }).thinking).toEqual({ type: "adaptive", block_binding });
    const reasoning = { effort: "low" };
    expect(bodyOf({ input, reasoning }).thinking).toEqual({
      ...{ type: "adaptive", display: "omitted", block_binding },
    });
    for (const options of [{ dropsBlocks: false }, { betas: [] }])
      expect(bodyOf({ input }, options)).not.toHaveProperty("thinking");
    expect(bodyOf({})).not.toHaveProperty("thinking");
  });

  test.each<[JsonObject, JsonValue | undefined, JsonValue | undefined]>([
    [{ effort: "none" }, { type: "disabled" }, undefined],
    [{ effort: "minimal" }, { type: "adaptive", display: "omitted" }, { effort: "low" }],
    [{ effort: "xhigh" }, { type: "adaptive", display: "omitted" }, { effort: "xhigh" }],
    [
      { effort: "high", summary: "detailed" },
      ...([{ type: "adaptive", display: "summarized" }, { effort: "high" }] as const),
    ],
    [{ summary: "auto" }, { type: "adaptive", display: "summarized" }, undefined],
    [{}, undefined, undefined],
  ])("%o", (reasoning, thinking, config) => {
    const body = bodyOf({ reasoning });
    expect([body.thinking, body.output_config]).toEqual([thinking, config]);
  });
});

describe("other properties", () => {
  test("a schema binds the answer, and JSON alone does not", () => {
    const schema = { type: "object" };
    const format = { type: "json_schema", name: "n", strict: true, schema };
    expect(bodyOf({ text: { format } }).output_config).toEqual({
      ...{ format: { type: "json_schema", schema } },
    });
    expect(bodyOf({ text: { format: { type: "text" } } })).not.toHaveProperty("output_config");
    expect(faultOf({ text: { format: { type: "json_object" } } })).toBe(
      "unsupported text.format.type",
    );
    expect(faultOf({ include: ["message.output_text.logprobs"] })).toBe("unsupported include");
  });

  test("sampling goes up where the catalog says so", () => {
    const asked = { temperature: 0.5, top_p: 0.9, top_k: 5 };
    expect(bodyOf(asked)).toEqual({ messages: [user("Hi")] });
    expect(bodyOf(asked, { passParameters: ["top_p"] })).toMatchObject({ top_p: 0.9 });
    expect(bodyOf(asked, { passParameters: ["*"] })).toMatchObject(asked);
  });

  test("the rest has no effect, and is told so", () => {
    const inert = {
      ...{ metadata: {}, user: "u", safety_identifier: "s", top_logprobs: 2, seed: 1 },
      ...{ truncation: "auto", prompt_cache_retention: "24h", context_management: [] },
    };
    const worked = {
      ...{
        truncation: "disabled",
        prompt_cache_key: "k",
        include: ["reasoning.encrypted_content"],
      },
      ...{ store: false, service_tier: "standard_only" },
    };
    const { sent, body } = made({ ...inert, text: { verbosity: "low" } });
    expect(Object.keys(sent)).toEqual(["input", "text"]);
    expect(body).toEqual({ messages: [user("Hi")] });
    expect(made({ text: { verbosity: "low" } }).leftOut).toEqual(["text.verbosity"]);
    expect(made(worked).sent).toEqual({ input: "Hi", ...worked });
    expect(made(worked).body).toEqual({ messages: [user("Hi")], service_tier: "standard_only" });
  });

  test("Chat comes by way of Responses", () => {
    const chat = {
      messages: [
        { role: "system", content: "Obey." },
        { role: "user", content: "Hi" },
        {
          ...{ role: "assistant", content: null },
          tool_calls: [{ id: "a", type: "function", function: { name: "look", arguments: "{}" } }],
        },
        { role: "tool", tool_call_id: "a", content: "A" },
      ],
      tools: [{ type: "function", function: { name: "look", parameters: { type: "object" } } }],
      tool_choice: "required",
      reasoning_effort: "low",
      response_format: { type: "json_schema", json_schema: { name: "n", schema: {} } },
    };
    expect(bodyOf(toResponsesRequest(chat, []))).toEqual({
      system: [{ type: "text", text: "Obey." }],
      messages: [
        ...[user("Hi"), { role: "assistant", content: [toolUse("a")] }],
        { role: "user", content: [toolResult("a", "A")] },
      ],
      tools: [lookThere],
      tool_choice: { type: "any" },
      thinking: { type: "adaptive", display: "omitted" },
      output_config: { effort: "low", format: { type: "json_schema", schema: {} } },
    });
  });
});

describe("arguments that take long to parse", () => {
  const numbers = (count: number) => `{"a":[${Array(count).fill("1.0").join()}]}`;
  const asks = (...list: string[]) => [
    user("Hi"),
    ...list.map((text, at) => call(`c${at}`, { arguments: text })),
    ...list.map((_, at) => result(`c${at}`, "x")),
  ];

  test("of too many values are refused", async () => {
    const most = await inTurns(toMessages({ input: asks(numbers(19_000)) }, usual));
    expect(most.body.messages).toHaveLength(3);
    expect(faultOf({ input: asks(numbers(21_000)) })).toBe("invalid input[1].arguments");
  });

  test("keep no other work waiting together", () => {
    const input = asks(...Array<string>(10).fill(numbers(10_000)));
    expect([...toMessages({ input }, usual)].length).toBeGreaterThan(8);
  });
});
