import { describe, expect, test } from "vitest";
import { isRefusal } from "#kit/base/errors.ts";
import { inTurns } from "#kit/base/in-turns.ts";
import type { JsonObject } from "#kit/base/json.ts";
import { keepStateOut } from "./operator-state.ts";

const looked = { ourFiles: new Set<JsonObject>(), onTool() {}, passParameters: [] };

async function found(body: JsonObject, ourFiles: JsonObject[] = []): Promise<string | undefined> {
  try {
    await inTurns(keepStateOut(body, { ...looked, ourFiles: new Set(ourFiles) }));
    return undefined;
  } catch (error) {
    if (!isRefusal(error)) throw error;
    message = error.message;
    return error.param;
  }
}

/** The message of the last refusal. */
let message = "";

describe("references to state in the operator's account are found", () => {
  test.each<[JsonObject, string]>([
    [{ a: { previous_response_id: "r" } }, "a.previous_response_id"],
    [{ a: [[{ conversation: { id: "c" } }]] }, "a[0][0].conversation"],
    [{ a: [1, { prompt: { id: "p" } }] }, "a[1].prompt"],
    [{ a: { background: true } }, "a.background"],
    [{ a: { container: "cntr_1" } }, "a.container"],
    [{ a: { container: { id: "cntr_1" } } }, "a.container"],
    [{ a: { container: { type: "auto", file_ids: ["f"] } } }, "a.container.file_ids"],
    [
      { a: { environment: { type: "container_reference", container_id: "c" } } },
      "a.environment.container_id",
    ],
    [{ a: [{ type: "item_reference" }] }, "a[0].type"],
    [{ a: { type: "function", file_id: "f" } }, "a.file_id"],
    [
      { prompt_cache_options: { comparison_response_id: "r" } },
      "prompt_cache_options.comparison_response_id",
    ],
    [{ a: [{}, [], { connector_id: "c" }] }, "a[2].connector_id"],
    [{ a: { type: "mcp", headers: {}, tunnel_id: "t" } }, "a.tunnel_id"],
  ])("%j", async (body, param) => {
    expect(await found(body)).toBe(param);
    expect(message).toMatch(/\. (Send|Leave) .*\.$|makes one for the request\.$/);
  });
});

describe("no reference", () => {
  const words = { file_id: { type: "string" }, conversation: "x", vector_store_ids: ["v"] };
  test.each<JsonObject>([
    { a: { previous_response_id: null, file_ids: [], container: { type: "auto" } } },
    { a: { background: "transparent", environment: "browser" } },
    { metadata: { file_id: "mine", conversation: "7" } },
    { tools: [{ type: "function", name: "f", parameters: { properties: words } }] },
    { tools: [{ type: "function", function: { name: "f", parameters: words } }] },
    { tools: [{ type: "namespace", tools: [{ type: "function", parameters: words }] }] },
    { text: { format: { type: "json_schema", name: "s", schema: { properties: words } } } },
    { response_format: { type: "json_schema", json_schema: { schema: words } } },
    { input: [{ type: "tool_search_call", arguments: words }] },
    { input: [{ type: "function_call", arguments: '{"file_id": "f"}' }] },
    { input: [{ type: "mcp_list_tools", tools: [{ input_schema: words, annotations: words }] }] },
    { input: [{ type: "local_shell_call", action: { env: { file_id: "f" } } }] },
    { functions: [{ name: "f", parameters: words }] },
  ])("%j", async (body) => {
    expect(await found(body)).toBeUndefined();
  });

  test("the id of a file of the caller's account", async () => {
    const part = { type: "input_image", file_id: "file_1" };
    const body = { input: [{ role: "user", content: [part] }] };
    expect(await found(body, [part])).toBeUndefined();
    expect(await found(body)).toBe("input[0].content[0].file_id");
  });
});

test("an object of thousands of unknown names is refused: taking them out would take seconds", async () => {
  const names = Object.fromEntries(Array.from({ length: 300 }, (_, at) => [`n${at}`, 1]));
  expect(await found({ input: [{ role: "user", content: "a" }, names] })).toBe("input[1]");
  expect(await found({ input: [{ type: "not_known", ...names }] })).toBeUndefined();
});
