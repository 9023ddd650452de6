// Counts the calls of tools that an upstream ran itself and that may have a price.

import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import { hostCall } from "../host-tools.ts";

/** Calls of tools that the upstream carried out, by the family of the tool. */
export type ToolCalls = Readonly<Record<string, number>>;

/** The family of Anthropic's tools that run code. */
const ofCode = "code_execution";
/** Families of calls that can have a price at Anthropic, by the names in the blocks of their calls. */
const familyOfCall: ReadonlyMap<JsonValue | undefined, string> = new Map([
  ["web_search", "web_search"],
  ["web_fetch", "web_fetch"],
  ["code_execution", ofCode],
  ["bash_code_execution", ofCode],
  ["text_editor_code_execution", ofCode],
]);

/** Families that one answer may have. No API has as many tools, and each is written down with the request. */
const maxFamilies = 8;

/** Counts the calls of an answer's items, each of which is noted once. */
export class CallCounter {
  readonly counts: Record<string, number> = {};
  /** Containers of code interpreters. Each has one price, for all calls in it. */
  readonly #containers = new Set<string>();

  note(item: JsonObject): void {
    const family = familyOf(item);
    if (family === undefined) return;
    if (family === "code_interpreter") {
      const container = `${item.container_id}`;
      if (this.#containers.has(container)) return;
      this.#containers.add(container);
    }
    const isKnown = Object.hasOwn(this.counts, family);
    if (!isKnown && Object.keys(this.counts).length >= maxFamilies) return;
    this.counts[family] = (isKnown ? (this.counts[family] ?? 0) : 0) + 1;
  }
}

/**
 * Counts the calls in blocks of Messages that Anthropic carried out. A search or fetch that failed is free there. Code runs in a container,
 * whose price covers all calls of a request.
 */
export class BlockCalls {
  /** All calls, also those without a price. */
  all = 0;
  readonly counts: Record<string, number> = {};

  note({ type, name, content }: JsonObject): void {
    const isCall = type === hostCall;
    if (isCall) this.all++;
    const isFailed = isJsonObject(content) && `${content.type}`.endsWith("_error");
    const family = familyOfCall.get(isCall ? name : `${type}`.replace(/_tool_result$/, ""));
    if (family === undefined) return;
    const before = this.counts[family] ?? 0;
    if (family === ofCode) this.counts[family] = 1;
    else if (isCall) this.counts[family] = before + 1;
    else if (isFailed) this.counts[family] = Math.max(0, before - 1);
  }
}

/** The calls of these items. */
export function callsOf(items: readonly JsonObject[]): ToolCalls {
  const counter = new CallCounter();
  for (const item of items) counter.note(item);
  return counter.counts;
}

/** The larger number of each family. */
export function mostCalls(a: ToolCalls, b: ToolCalls): ToolCalls {
  const most: Record<string, number> = { ...a };
  for (const [family, count] of Object.entries(b)) {
    most[family] = Math.max(Object.hasOwn(most, family) ? (most[family] ?? 0) : 0, count);
  }
  return most;
}

/**
 * `web_search` for an item of type `web_search_call`. Undefined for an item that is no call, and for a call of a search that only opens
 * a page or looks through it.
 */
function familyOf({ type, action }: JsonObject): string | undefined {
  const [, family] = /^([a-z][a-z0-9_]{0,40})_call$/.exec(`${type}`) ?? [];
  const isSearch = !isJsonObject(action) || action.type === undefined || action.type === "search";
  return family === "web_search" && !isSearch ? undefined : family;
}

/**
 * The family of a tool that a request names. `web_search_preview`, `web_search_20260318` and OpenRouter's `openrouter:web_search` are
 * `web_search`.
 */
export function familyOfTool(type: string): string {
  return type.replace(/^.*:/, "").replace(/_(preview|\d{8}|\d{4}_\d\d_\d\d)(_.*)?$/, "");
}
