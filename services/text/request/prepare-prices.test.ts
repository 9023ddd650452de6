import { describe, expect, test } from "vitest";
import { ask, chat, png, prepare, refusalOf } from "../../../test/contract/usage.prepare.ts";
import { snapshotWith } from "../../../test/contract/usage.world.ts";
import { nativeSnapshot } from "./messages.fixture.ts";

// A request decides its hold by what it asks for, where a model has prices beside input, cached input and output.

const base = { input: 1_000_000n, cachedInput: 100_000n, output: 10_000_000n };
const search = { type: "web_search" };
const toolCalls = { web_search: 10_000n, x_search: 20_000n, code_interpreter: 30_000n };
const searching = snapshotWith({ prices: { base, toolCalls }, tools: ["*"], toolCallLimit: 4 });

/** The hold beside that for tokens: 10,000 of input, which is the window, and 1,000 of output. */
const callsHeld = ({ holdAmount }: { holdAmount: bigint }) => holdAmount - 20_000n;

describe("calls of the upstream's tools", () => {
  test.each<[string, object, bigint, number]>([
    ["the operator's limit", {}, 40_000n, 4],
    ["the caller's own bound, where it is lower", { max_tool_calls: 2 }, 20_000n, 2],
    ["the operator's, where the caller's is higher", { max_tool_calls: 9 }, 40_000n, 4],
    ["none", { max_tool_calls: 0 }, 0n, 0],
    ["a tool in another version", { tools: [{ type: "web_search_2025_08_26" }] }, 40_000n, 4],
    ["the dearest tool", { tools: [search, { type: "x_search" }] }, 80_000n, 4],
    [
      "one container beside it",
      { tools: [search, { type: "code_interpreter", container: { type: "auto" } }] },
      70_000n,
      4,
    ],
  ])("%s is held for, and goes up", async (_name, more, micros, bound) => {
    const prepared = await prepare(ask({ tools: [search], ...more }), { snapshot: searching });
    expect(callsHeld(prepared)).toBe(micros);
    expect(prepared.body.max_tool_calls).toBe(bound);
  });
  test("a tool without a price is free, and its bound is the caller's", async () => {
    const own = await prepare(ask({ tools: [{ type: "mcp" }], max_tool_calls: 9 }), {
      snapshot: searching,
    });
    expect([callsHeld(own), own.body.max_tool_calls]).toEqual([0n, 9]);
    const without = await prepare(ask({}), { snapshot: searching });
    expect(without.body).not.toHaveProperty("max_tool_calls");
  });
  test("a search of a chat is held for, and gets no bound that a server does not know", async () => {
    const options = { operation: "chat", snapshot: searching } as const;
    const prepared = await prepare(chat({ web_search_options: {} }), options);
    expect(callsHeld(prepared)).toBe(40_000n);
    expect(prepared.body).not.toHaveProperty("max_tool_calls");
  });
  test("a bound that is no number of calls is refused", async () => {
    const body = ask({ tools: [search], max_tool_calls: "9" });
    expect(await refusalOf(body, { snapshot: searching })).toBe("invalid_type max_tool_calls");
  });
});

describe("entries that stay in the cache for long", () => {
  const dear = { base: { ...base, cacheWriteLong: 5_000_000n } };
  const longOf = async (more: object, prices: object = dear) => {
    const snapshot = snapshotWith({ prices, passParameters: ["cache_control"] });
    return (await prepare(ask(more), { snapshot })).price.asksLongCache === true;
  };
  const block = (ttl: string) => ({
    input: [
      { role: "user", content: [{ type: "input_text", text: "hi", cache_control: { ttl } }] },
    ],
  });
  test.each<[boolean, object]>([
    [false, {}],
    [false, { prompt_cache_retention: "in_memory" }],
    [true, { prompt_cache_retention: "24h" }],
    [false, { prompt_cache_options: { mode: "explicit" } }],
    [false, { prompt_cache_options: { ttl: "30m" } }],
    [true, { prompt_cache_options: { ttl: "12h" } }],
    [true, { prompt_cache_options: { ttl: "a while" } }],
    [true, { prompt_cache_options: { ttl: { toString: 1 } } }],
    [false, block("5m")],
    [true, block("1h")],
  ])("%s: %j", async (isLong, more) => {
    expect(await longOf(more)).toBe(isLong);
  });
  test("also where a row of long inputs alone has their price", async () => {
    const longInput = [{ aboveInputTokens: 1_000n, prices: dear.base }];
    const body = { prompt_cache_retention: "24h" };
    expect(await longOf(body, { base, longInput })).toBe(true);
  });
  test("options of the cache go up where long entries have a price, and only there", async () => {
    const body = ask({ prompt_cache_options: { ttl: "12h" } });
    const sent = async (prices: object) => {
      const { body: up } = await prepare(body, { snapshot: snapshotWith({ prices }) });
      return "prompt_cache_options" in up;
    };
    expect(await sent(dear)).toBe(true);
    expect(await sent({ base })).toBe(false);
  });
});

test.each([
  [
    "a document",
    (block: object) => ({ type: "document", source: { type: "content", content: [block] } }),
  ],
  [
    "what a call found",
    (block: object) => ({ type: "search_result", source: "s", title: "T", content: [block] }),
  ],
])(
  "a message may ask for an hour within %s of a call's result, at the price of an hour",
  async (_, within) => {
    const cache_control = { type: "ephemeral", ttl: "1h" };
    const found = within({ type: "text", text: "hi", cache_control });
    const body = {
      ...{ model: "chat-1", max_tokens: 100 },
      messages: [
        { role: "user", content: "hi" },
        { role: "assistant", content: [{ type: "tool_use", id: "t", name: "f", input: {} }] },
        { role: "user", content: [{ type: "tool_result", tool_use_id: "t", content: [found] }] },
      ],
    };
    const at = (prices: object) => ({
      operation: "messages" as const,
      snapshot: nativeSnapshot(undefined, { prices }),
    });
    expect(await refusalOf(body, at({ base }))).toBe("unsupported_parameter messages");
    const dear = { base: { ...base, cacheWriteLong: 5_000_000n } };
    expect((await prepare(body, at(dear))).price.asksLongCache).toBe(true);
  },
);

test("images have their own price, up to the tokens that they may have", async () => {
  const input = [{ role: "user", content: [{ type: "input_image", image_url: png }] }];
  const holdOf = async (imageInput?: bigint) => {
    const row = { ...base, ...(imageInput !== undefined && { imageInput }) };
    const prepared = await prepare(ask({ input }), {
      snapshot: snapshotWith({ prices: { base: row } }),
    });
    return prepared;
  };
  const plain = await holdOf();
  const dear = await holdOf(3_000_000n);
  const { countedImages = 0 } = dear.bounds;
  expect(plain.bounds).not.toHaveProperty("countedImages");
  expect(countedImages).toBeGreaterThan(1_000);
  expect(dear.holdAmount - plain.holdAmount).toBe(2n * BigInt(countedImages));
});
