import { describe, expect, test } from "vitest";
import { type Options, prepare, refusalOf } from "../../../test/contract/usage.prepare.ts";
import { testUpstream } from "../../../test/support/text-requests.ts";
import { nativeSnapshot } from "./messages.fixture.ts";
import { hashesToRemember } from "./opaque.ts";

const operation = "messages";
const hi = { role: "user", content: "hi" };
/** The models' upstreams speak Messages, and know a type of block more. */
const added = (blockTypes: string[] = ["novel"], others: string[] = blockTypes) =>
  nativeSnapshot((name) => ({ blockTypes: name === "up" ? blockTypes : others }));
const withBlock = (block: object, role = "assistant") => ({
  ...{ model: "chat-1", max_tokens: 100 },
  messages: [hi, { role: "assistant", content: "A" }, hi].with(role === "user" ? 2 : 1, {
    role,
    content: [{ type: "text", text: "A" }, block] as never,
  }),
});
const novel = { type: "novel", said: [1, { deep: true }] };
const refused = (block: object, options: Options = {}) =>
  refusalOf(withBlock(block), { operation, snapshot: added(), ...options });

test("a block of an added type passes as it came, of the user and of the model", async () => {
  for (const role of ["user", "assistant"]) {
    const { body } = await prepare(withBlock(novel, role), { operation, snapshot: added() });
    expect(JSON.stringify(body.messages)).toContain(JSON.stringify(novel));
  }
});

test("the type must be known to all upstreams of the model that may be asked", async () => {
  const type = "unsupported_content_type messages[1].content[1].type";
  expect(await refused(novel, { snapshot: added(["novel"], []) })).toBe(type);
  expect(await refused(novel, { snapshot: added([]) })).toBe(type);
  expect(await refusalOf(withBlock(novel), { operation })).toBe(type);
});

describe("such a block is refused", () => {
  const at = "unsupported_parameter messages[1].content[1]";
  test.for([
    ["with an address", { source: { type: "url", url: "https://a.example" } }, "source.type"],
    ["with one further down", { parts: [{ source: { type: "file" } }] }, "parts[0].source.type"],
    ["with a stored file", { parts: [{ file_id: "file_1" }] }, "parts[0].file_id"],
  ] as const)("%s", async ([, more, path]) => {
    expect(await refused({ ...novel, ...more })).toBe(`${at}.${path}`);
  });
});

test("state in such a block goes to the account that it was made for, and else is left out", async () => {
  const state = "c2VhbGVkIHN0YXRlIG9mIGEgYmxvY2s=";
  const sealed = { ...novel, parts: [{ encrypted_content: state }] };
  const [hash = ""] = await hashesToRemember(state);
  const sent = async (accountId?: string) => {
    const makers = accountId === undefined ? [] : [{ hash, accountId, upstream: "up" }];
    const prepared = prepare(withBlock(sealed), { operation, snapshot: added(), makers });
    return JSON.stringify((await prepared).body.messages).includes(state);
  };
  expect([await sent("acct_1"), await sent()]).toEqual([true, false]);
  const makers = [{ hash, accountId: "acct_2", upstream: "up" }];
  expect(await refused(sealed, { makers })).toBe(
    "invalid_value messages[1].content[1].parts[0].encrypted_content",
  );
});

test("thinking goes back with the key that it was made with", async () => {
  const snapshot = nativeSnapshot();
  const signature = "c2lnbmF0dXJlIG9mIGEgbWVzc2FnZQ==";
  const [hash = ""] = await hashesToRemember(signature);
  // The lanes of two keys of one upstream.
  snapshot.upstreams["up#2"] = testUpstream("ANTHROPIC", { name: "up#2" });
  for (const model of snapshot.models) model.fallbackUpstreams = ["up#2"];
  for (const upstream of ["up", "up#2"]) {
    const makers = [{ hash, accountId: "acct_1", upstream }];
    const body = withBlock({ type: "thinking", thinking: "", signature });
    const { upstreams, isPinned } = await prepare(body, { operation, snapshot, makers });
    expect([upstreams.map(({ name }) => name), isPinned]).toEqual([[upstream], true]);
  }
});

test("a reference to a tool may stand in a result, at such an upstream alone", async () => {
  const reference = { type: "tool_reference", tool_name: "look" };
  const body = {
    ...{ model: "chat-1", max_tokens: 100 },
    messages: [
      { role: "user", content: [{ type: "tool_result", tool_use_id: "t", content: [reference] }] },
    ],
  };
  const { body: sent } = await prepare(body, { operation, snapshot: added([]) });
  expect(sent.messages).toEqual(body.messages);
  expect(await refusalOf(body, { operation })).toBe(
    "unsupported_content_type messages[0].content[0].content[0].type",
  );
});
