import { describe, expect, test } from "vitest";
import { type Options, prepare, refusalOf } from "../../../test/contract/usage.prepare.ts";
import { usualBetas } from "../../upstreams/anthropic/capabilities.ts";
import { nativeSnapshot } from "./messages.fixture.ts";
import { hashesToRemember } from "./opaque.ts";

// Tools that Anthropic runs itself, and their blocks in the model's turns.

const operation = "messages";
const hi = { role: "user", content: "hi" };
const base = { input: 1_000_000n, cachedInput: 100_000n, output: 10_000_000n };
const toolCalls = { web_search: 10_000n, web_fetch: 0n, code_execution: 4_200n };
const snapshotOf = (prices: object = { base, toolCalls }, betas: readonly string[] = usualBetas) =>
  nativeSnapshot(() => ({ betas: [...betas] }), { prices, tools: ["*"], toolCallLimit: 4 });
const priced = snapshotOf();
const asked = (tools: object[], messages: object[] = [hi]) => ({
  ...{ model: "chat-1", max_tokens: 100, tools, messages },
});
const search = { type: "web_search_20250305", name: "web_search" };
const fetch = { type: "web_fetch_20250910", name: "web_fetch" };
const code = { type: "code_execution_20250825", name: "code_execution" };
const regex = { type: "tool_search_tool_regex_20251119", name: "tool_search_tool_regex" };

describe("a tool that Anthropic runs", () => {
  test.each<[string, object[], bigint, object[]]>([
    ["the operator's limit", [search], 40_000n, [{ ...search, max_uses: 4 }]],
    ["the caller's bound, where it is lower", [{ ...search, max_uses: 2 }], 20_000n, []],
    ["the operator's, where the caller's is higher", [{ ...search, max_uses: 9 }], 40_000n, []],
    ["each tool by itself", [{ ...search, max_uses: 3 }, fetch, code], 34_200n, []],
    ["one without a cost", [fetch], 0n, [{ ...fetch, max_uses: 4 }]],
    ["the container of a request", [code], 4_200n, [code]],
    ["no search for tools", [regex], 0n, [regex]],
  ])("%s is held for, and goes up", async (_name, tools, micros, sent) => {
    const { holdAmount, body, bounds } = await prepare(asked(tools), {
      ...{ operation, snapshot: priced },
    });
    // The whole window, because results become input, and the bound of the output.
    expect([holdAmount - 11_000n, bounds.input]).toEqual([micros, 10_000]);
    if (sent.length > 0) expect(body.tools).toEqual(sent);
    for (const { type, max_uses: uses } of body.tools as Record<string, unknown>[]) {
      if (`${type}`.startsWith("web_")) expect(uses).toBeLessThanOrEqual(4);
    }
  });

  const at = "unsupported_parameter tools[0].type";
  test.each<[string, object, object, string]>([
    ["without prices", search, { snapshot: snapshotOf({ base }) }, at],
    [
      "with the price of another",
      fetch,
      { snapshot: snapshotOf({ base, toolCalls: { web_search: 1n } }) },
      at,
    ],
    ["without a date", { ...search, type: "web_search" }, { snapshot: priced }, at],
    ["at an upstream of another protocol", search, {}, at],
    ["without the beta that it needs", regex, { snapshot: snapshotOf({ base }, []) }, at],
    [
      "with no calls",
      { ...search, max_uses: 0 },
      { snapshot: priced },
      "invalid_value tools[0].max_uses",
    ],
    [
      "with calls in words",
      { ...search, max_uses: "2" },
      { snapshot: priced },
      "invalid_type tools[0].max_uses",
    ],
  ])("%s is refused", async (_name, tool, options, error) => {
    expect(await refusalOf(asked([tool]), { operation, ...options })).toBe(error);
  });

  test("alone has its price, where a search runs code of its own", async () => {
    const { price } = await prepare(asked([search]), { operation, snapshot: priced });
    expect(price.list?.toolCalls).toEqual({ web_search: 10_000n });
  });
});

describe("its blocks in the model's turns", () => {
  const sealed = "c2VhbGVkIHBhZ2Ugb2YgYSBzZWFyY2g=";
  const index = "aW5kZXggb2YgYSBwYWdlIG9mIGEgc2VhcmNo";
  const call = { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: { q: "a" } };
  const page = { type: "web_search_result", url: "https://a.example", encrypted_content: sealed };
  const result = { type: "web_search_tool_result", tool_use_id: "srvtoolu_1", content: [page] };
  const cited = {
    ...{ type: "text", text: "A" },
    citations: [{ type: "web_search_result_location", encrypted_index: index }],
  };
  const turn = (...content: object[]) => asked([search], [hi, { role: "assistant", content }, hi]);
  const madeFor = async (accountId: string, upstream = "up") => {
    const hashes = (await Promise.all([sealed, index].map(hashesToRemember))).flat();
    return hashes.map((hash) => ({ hash, accountId, upstream }));
  };
  const sent = async (body: object, options: Options = {}) => {
    const prepared = await prepare(body, { operation, snapshot: priced, ...options });
    return (prepared.body.messages as { content: unknown }[])[1]?.content;
  };

  test("go back as they came, to the account that they were made for", async () => {
    const makers = await madeFor("acct_1");
    expect(await sent(turn(call, result, cited), { makers })).toEqual([call, result, cited]);
    const foreign = { operation, snapshot: priced, makers: await madeFor("acct_2") } as const;
    expect(await refusalOf(turn(call, result, cited), foreign)).toBe(
      "invalid_value messages[1].content[1].content[0].encrypted_content",
    );
  });

  test("are left out where nobody here made them: a result with its call, and a citation alone", async () => {
    const kept = { ...call, id: "srvtoolu_2" };
    const failed = {
      ...{ type: "web_search_tool_result", tool_use_id: "srvtoolu_2" },
      content: { type: "web_search_tool_result_error", error_code: "unavailable" },
    };
    const nested = { ...kept, id: "srvtoolu_3", caller: { type: "c", tool_id: "srvtoolu_1" } };
    const { citations: _, ...plain } = cited;
    expect(await sent(turn(call, nested, result, kept, failed, cited))).toEqual([
      kept,
      failed,
      plain,
    ]);
  });

  test("cost what only Anthropic can count, also without their tool", async () => {
    const makers = await madeFor("acct_1");
    const body = { ...turn(call, result), tools: [] };
    const { bounds, holdAmount } = await prepare(body, { operation, snapshot: priced, makers });
    expect([bounds.input, holdAmount]).toEqual([10_000, 11_000n]);
  });

  test.each<[string, object, string]>([
    ["a file of another account", { ...result, content: [{ file_id: "file_1" }] }, "left out"],
    ["an address", { ...result, content: { source: { type: "url" } } }, "content.source.type"],
    ["no call", { ...result, tool_use_id: "" }, "tool_use_id"],
  ])("%s is no content of theirs", async (_name, block, fault) => {
    const body = turn(call, block, { type: "text", text: "A" });
    if (fault === "left out") expect(await sent(body)).toEqual([{ type: "text", text: "A" }]);
    else {
      const error = await refusalOf(body, { operation, snapshot: priced });
      expect(error).toContain(`messages[1].content[1].${fault}`);
    }
  });

  test("stand nowhere else", async () => {
    const body = asked([search], [{ role: "user", content: [result] }]);
    const type = "unsupported_content_type messages[0].content[0].type";
    expect(await refusalOf(body, { operation, snapshot: priced })).toBe(type);
    const there = "unsupported_content_type messages[1].content[0].type";
    expect(await refusalOf({ ...turn(call), tools: [] }, { operation })).toBe(there);
  });
});
