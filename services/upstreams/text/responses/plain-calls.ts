// Makes items of Responses plain where servers send objects for text, or nulls in lists.

import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import { argumentsText } from "../call-arguments.ts";

/** Fields that hold arguments as JSON text, by the type of their item. */
const argumentFields: Readonly<Record<string, string>> = {
  function_call: "arguments",
  custom_tool_call: "input",
  mcp_call: "arguments",
  mcp_approval_request: "arguments",
};

/** Events about arguments, by the ends of their types. */
const argumentEvents = /(?:_arguments|_tool_call_input)\.(?:delta|done)$/;

/** An output item whose arguments are text and whose lists hold no nulls. The same object where it was one already. */
export function plainItem(item: JsonObject): JsonObject {
  const type = `${item.type}`;
  const field = Object.hasOwn(argumentFields, type) ? argumentFields[type] : undefined;
  const changed: JsonObject = {};
  const value = field === undefined ? undefined : argumentsText(item[field]);
  if (field !== undefined && value !== item[field]) changed[field] = value as string;
  for (const list of ["content", "summary"]) {
    const found = item[list];
    if (Array.isArray(found) && found.includes(null)) changed[list] = withoutNulls(found);
  }
  return Object.keys(changed).length > 0 ? { ...item, ...changed } : item;
}

/** The items of an output, without nulls. */
export function plainItems(output: readonly JsonValue[]): JsonValue[] {
  return withoutNulls(output).map((item) => (isJsonObject(item) ? plainItem(item) : item));
}

/**
 * Makes the calls in an event of a stream plain, like {@link plainItem}. True where that changed the event. Undefined for an event
 * about an item or a part that is null: there is nothing to pass on.
 */
export function makePlain(event: JsonObject): boolean | undefined {
  if (event.item === null || event.part === null) return undefined;
  let isChanged = false;
  const put = (name: string, value: JsonValue | undefined) => {
    if (value === undefined || value === event[name]) return;
    event[name] = value;
    isChanged = true;
  };
  if (isJsonObject(event.item)) put("item", plainItem(event.item));
  if (argumentEvents.test(`${event.type}`)) {
    for (const name of ["delta", "arguments", "input"]) put(name, argumentsText(event[name]));
  }
  const { response } = event;
  if (isJsonObject(response) && Array.isArray(response.output)) {
    response.output = plainItems(response.output);
  }
  return isChanged;
}

function withoutNulls(list: readonly JsonValue[]): JsonValue[] {
  return list.filter((one) => one !== null);
}
