// Checks the types of the fields of Messages that no other check reads, so that callers get the field's path instead of an
// upstream's error.

import { ErrorReason, refuse } from "#kit/base/errors.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import { fieldOf } from "./fields.ts";

/** Refuses a value of a wrong type with INVALID_TYPE, and a wrong word with INVALID_VALUE, at its path. */
type Check = (value: JsonValue, param: string) => void;
/** Fields by name. Each may be absent or null. Those without a check may be anything. */
type Fields = Readonly<Record<string, Check>>;

const isOfType =
  (type: "string" | "boolean" | "number"): Check =>
  (value, param) => {
    if (typeof value !== type) refuse(ErrorReason.INVALID_TYPE, { param });
  };
const text = isOfType("string");
const flag = isOfType("boolean");
const number = isOfType("number");

const oneOf =
  (...words: readonly string[]): Check =>
  (value, param) => {
    text(value, param);
    if (words.some((word) => word === value)) return;
    const message = `The parameter '${param}' must be one of: ${words.join(", ")}.`;
    refuse(ErrorReason.INVALID_VALUE, { param, message });
  };

const listOf =
  (each: Check): Check =>
  (value, param) => {
    if (!Array.isArray(value)) refuse(ErrorReason.INVALID_TYPE, { param });
    for (const [index, one] of value.entries()) each(one, `${param}[${index}]`);
  };

const withFields =
  (fields: Fields): Check =>
  (value, param) => {
    if (!isJsonObject(value)) refuse(ErrorReason.INVALID_TYPE, { param });
    checkFields(value, fields, `${param}.`);
  };
const anyObject = withFields({});

/** Checks the types of an object's fields. `path`: its own path, with a dot behind it. */
function checkFields(object: JsonObject, fields: Fields, path: string): void {
  for (const name in fields) {
    const value = fieldOf(object, name);
    if (value !== undefined) fields[name]?.(value, path + name);
  }
}

const cacheControl = withFields({ type: oneOf("ephemeral"), ttl: oneOf("5m", "1h") });

// The types are those of the SDK, 1.14. Fields that have no effect anywhere, like `service_tier`, have no check.
const ofBody: Fields = {
  cache_control: cacheControl,
  context_management: withFields({ edits: listOf(withFields({ type: text })) }),
  metadata: withFields({ user_id: text }),
  stop_sequences: listOf(text),
  stream: flag,
  temperature: number,
  thinking: withFields({
    block_binding: withFields({ prefix_mismatch_behavior: text }),
    display: oneOf("summarized", "omitted"),
  }),
  tool_choice: withFields({ disable_parallel_tool_use: flag, name: text }),
  tools: listOf(
    withFields({
      allowed_callers: listOf(text),
      cache_control: cacheControl,
      defer_loading: flag,
      description: text,
      eager_input_streaming: flag,
      input_examples: listOf(anyObject),
      strict: flag,
      type: text,
    }),
  ),
  top_k: number,
  top_p: number,
};

/** Fields that blocks of all types may have. */
const ofBlock: Fields = { cache_control: cacheControl };
const ofBlocks: Readonly<Record<string, Fields>> = {
  document: { citations: withFields({ enabled: flag }) },
  redacted_thinking: { data: text },
  search_result: { citations: withFields({ enabled: flag }) },
  text: { citations: listOf(anyObject) },
  thinking: { signature: text },
  tool_result: { is_error: flag },
};

/** Checks the types of a body's fields beside `messages` and `system`, whose blocks {@link checkBlockFields} checks. */
export function checkBodyFields(body: JsonObject): void {
  checkFields(body, ofBody, "");
}

/** Checks the types of the fields of a block that it may have beside its content. */
export function checkBlockFields(block: JsonObject, type: string, param: string): void {
  checkFields(block, ofBlock, `${param}.`);
  const own = ofBlocks[type];
  if (own) checkFields(block, own, `${param}.`);
}
