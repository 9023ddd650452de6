// Checks blocks of Messages that pass unchanged: types that an operator adds in the catalog, and results of Anthropic's tools.
// They must not reach state or addresses of the operator.

import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import { sealedIn } from "../../upstreams/text/anthropic/sealed.ts";
import type { OpaquePart } from "./checked.ts";
import { unsupported } from "./fields.ts";
import { noteState } from "./messages-state.ts";

/** Kinds of sources whose content is in the request, and so is counted. */
const counted: readonly (JsonValue | undefined)[] = ["base64", "content", "text"];

/**
 * Checks a block of a type that the catalog adds. It passes as it came. So it may name nothing that the upstream would fetch, and no
 * file of the operator's account.
 */
export function checkAdded(block: JsonObject, param: string, opaque: OpaquePart[]): void {
  checkSources(block, param, false);
  noteAll(block, param, opaque);
}

/** Checks the result of a tool that Anthropic ran. It may also name files that this tool made, which go back to the account that got them. */
export function checkResult(block: JsonObject, param: string, opaque: OpaquePart[]): void {
  checkSources(block, param, true);
  noteAll(block, param, opaque);
}

function noteAll(block: JsonObject, param: string, opaque: OpaquePart[]): void {
  for (const { value, at } of sealedIn(block, param)) {
    noteState(value, at, param, { opaque, isNative: true });
  }
}

function checkSources(value: JsonValue, param: string, takesFiles: boolean): void {
  if (Array.isArray(value)) {
    for (const [index, one] of value.entries()) {
      checkSources(one, `${param}[${index}]`, takesFiles);
    }
  }
  if (!isJsonObject(value)) return;
  for (const [name, one] of Object.entries(value)) {
    const path = `${param}.${name}`;
    if (name === "file_id" && !takesFiles)
      unsupported(path, "Stored files are not supported here.");
    if (name === "source" && isJsonObject(one) && !counted.includes(one.type)) {
      unsupported(`${path}.type`, "A block of this type must hold its content itself.");
    }
    checkSources(one, path, takesFiles);
  }
}
