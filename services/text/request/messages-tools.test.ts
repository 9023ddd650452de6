import { expect, test } from "vitest";
import { prepare, refusalOf } from "../../../test/contract/usage.prepare.ts";
import { usualBetas } from "../../upstreams/anthropic/capabilities.ts";
import { nativeSnapshot } from "./messages.fixture.ts";

const operation = "messages";
const snapshotOf = (tools: string[], betas: readonly string[] = usualBetas) =>
  nativeSnapshot(() => ({ betas: [...betas] }), { tools });
const families = ["bash", "computer", "memory", "text_editor"];
const asked = (...tools: object[]) => ({
  ...{ model: "chat-1", max_tokens: 100, tools },
  messages: [{ role: "user", content: "hi" }],
});
const bash = { type: "bash_20250124", name: "bash" };
const editor = { type: "text_editor_20250728", name: "str_replace_based_edit_tool" };
const memory = { type: "memory_20250818", name: "memory" };
const computer = { type: "computer_20251124", name: "computer", display_width_px: 1024 };
const at = "unsupported_parameter tools[0].type";

test("tools of Anthropic's own pass as they came, of families that the model lists", async () => {
  const tools = [bash, editor, memory, computer];
  for (const listed of [families, ["*"]]) {
    const { body } = await prepare(asked(...tools), { operation, snapshot: snapshotOf(listed) });
    expect(body.tools).toEqual(tools);
  }
});

test("each type is paid for with its description, however many tools are of it", async () => {
  const tokensOf = async (...tools: object[]) => {
    const snapshot = snapshotOf([...families, "function"]);
    return (await prepare(asked(...tools), { operation, snapshot })).toolTokens;
  };
  const own = { name: "a", input_schema: { type: "object" } };
  expect([
    await tokensOf(),
    await tokensOf(own),
    await tokensOf(own, bash),
    await tokensOf(bash, bash, editor),
  ]).toEqual([0, 1_024, 2_560, 4_096]);
});

test.for([
  ["of a family that the model does not list", bash, ["memory", "function"]],
  ["that Anthropic runs itself", { type: "web_search_20250305", name: "web_search" }, ["*"]],
  ["whose type has no date", { type: "bash", name: "bash" }, ["*"]],
  ["that is a set", { type: "computer_toolset_20260801" }, ["*"]],
] as const)("one %s is refused", async ([, tool, listed]) => {
  const snapshot = snapshotOf([...listed]);
  expect(await refusalOf(asked(tool), { operation, snapshot })).toBe(at);
});

test("one without a name is refused", async () => {
  const snapshot = snapshotOf(families);
  const nameless = asked({ type: bash.type });
  expect(await refusalOf(nameless, { operation, snapshot })).toBe(
    "missing_required_parameter tools[0].name",
  );
});

test("a computer needs the beta of its own date, at all upstreams of the model", async () => {
  const snapshot = (date: string) => snapshotOf(["*"], [`computer-use-${date}`]);
  await prepare(asked(computer), { operation, snapshot: snapshot("2025-11-24") });
  const others = { operation, snapshot: snapshot("2025-01-24") } as const;
  expect(await refusalOf(asked(computer), others)).toBe(at);
});

test("elsewhere they are refused", async () => {
  expect(await refusalOf(asked(bash), { operation })).toBe(at);
});

test("a bound of 0 holds the input alone, and is refused where no cache is filled", async () => {
  const body = { ...asked(), max_tokens: 0 };
  const { bounds, holdAmount, leastHold } = await prepare(body, {
    ...{ operation, snapshot: snapshotOf(["*"]) },
  });
  expect([bounds.output, holdAmount, leastHold]).toEqual([0, BigInt(bounds.input), undefined]);
  expect(await refusalOf(body, { operation })).toBe("invalid_value max_tokens");
});
