// Counts names of called tools, which some models read again with each result. Otherwise the bound of the input would be too low.

import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";

/**
 * Counts the bytes that the names of called tools add to an input. Some templates (gpt-oss's for one) write the name of the call before
 * each of its results, where a request has only the call's id. So a long name that is called once and answered often is repeated often.
 */
export class CalledNames {
  #longest = 0;
  #results = 0;

  /** Notes that a tool is called by this name. */
  called(name: JsonValue | undefined): void {
    if (typeof name === "string") this.#longest = Math.max(this.#longest, Buffer.byteLength(name));
  }

  /** Notes that the input has a call's result. */
  answered(): void {
    this.#results++;
  }

  /** The most bytes of names that a template writes, beside those of the request itself. */
  get bytes(): number {
    return this.#longest * this.#results;
  }

  /** Notes an item of `/responses`. */
  noteItem(item: JsonObject): void {
    if (typeof item.type !== "string") return;
    if (item.type.endsWith("_output")) this.answered();
    else if (item.type.endsWith("_call")) this.called(item.name);
  }

  /** Notes a message of chat. */
  noteMessage(message: JsonObject): void {
    if (message.role === "tool" || message.role === "function") this.answered();
    if (isJsonObject(message.function_call)) this.called(message.function_call.name);
    if (!Array.isArray(message.tool_calls)) return;
    for (const call of message.tool_calls) {
      if (!isJsonObject(call)) continue;
      for (const one of [call.function, call.custom]) if (isJsonObject(one)) this.called(one.name);
    }
  }
}
