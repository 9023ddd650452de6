import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";

/**
 * What the names of called tools add to an input. Templates (gpt-oss's for one) write the name of the call before each result of
 * one, where a request has only the call's id: a long name that is called once and answered often becomes long often.
 */
export class CalledNames {
  #longest = 0;
  #results = 0;

  /** A tool is called by this name. */
  called(name: JsonValue | undefined): void {
    if (typeof name === "string") this.#longest = Math.max(this.#longest, Buffer.byteLength(name));
  }

  /** A call's result stands in the input. */
  answered(): void {
    this.#results++;
  }

  /** Most bytes that a template writes of names, beside those of the request itself. */
  get bytes(): number {
    return this.#longest * this.#results;
  }

  /** Of an item of `/responses`. */
  noteItem(item: JsonObject): void {
    if (typeof item.type !== "string") return;
    if (item.type.endsWith("_output")) this.answered();
    else if (item.type.endsWith("_call")) this.called(item.name);
  }

  /** Of a message of chat. */
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
