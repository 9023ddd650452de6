// The names of the tools that Anthropic runs itself, and of the blocks that they bring. Checks, readers and metering share them.

import { isJsonObject, type JsonValue } from "#kit/base/json.ts";

/** Types of tools that Anthropic runs itself: a family and a date. Searches for tools have a kind between both. */
const hostType = /^(?:(web_search|web_fetch|code_execution)_\d{8}|(tool_search)_tool_\w{1,32})$/;

/** The family of a tool that Anthropic runs itself, by the tool's type. Undefined for any other tool. */
export function hostFamily(type: JsonValue | undefined): string | undefined {
  const [, dated, search] = hostType.exec(`${type}`) ?? [];
  return dated ?? search;
}

/** Does a request name a tool that Anthropic runs itself? */
export function asksForHost(tools: JsonValue | undefined): boolean {
  return (
    Array.isArray(tools) &&
    tools.some((tool) => isJsonObject(tool) && hostFamily(tool.type) !== undefined)
  );
}

/** The type of a block in which the model calls such a tool. */
export const hostCall = "server_tool_use";
/** Types of blocks with the results of such calls, which are input: those of the SDK, 1.14. Newer searches run code over their finds. */
export const hostResults: ReadonlySet<JsonValue | undefined> = new Set([
  ...["web_search_tool_result", "web_fetch_tool_result", "tool_search_tool_result"],
  ...["code_execution_tool_result", "bash_code_execution_tool_result"],
  "text_editor_code_execution_tool_result",
]);
/** Types of the blocks of both kinds. */
export const hostBlocks: ReadonlySet<JsonValue | undefined> = new Set([hostCall, ...hostResults]);
