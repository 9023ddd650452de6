// Finds the state in blocks of Messages that only its maker can read. It is remembered by its hash, so that the next turn brings
// it to its maker alone.

import type { JsonValue } from "#kit/base/json.ts";

/** Names of fields that hold state which only its maker can read, or the id of a file that code made there. */
const names: ReadonlySet<string> = new Set([
  ...["signature", "data", "encrypted_content", "encrypted_index", "encrypted_stdout", "file_id"],
]);

/** A piece of state, and its path. */
export interface Sealed {
  value: string;
  at: string;
}

/** Fields whose content is media, or what the model gives to a tool. */
const others: ReadonlySet<string> = new Set(["source", "input"]);

/** All state within a block, at any depth. `path`: that of the block. */
export function sealedIn(block: JsonValue, path = ""): Sealed[] {
  if (typeof block !== "object" || block === null) return [];
  if (Array.isArray(block)) return block.flatMap((one, at) => sealedIn(one, `${path}[${at}]`));
  return Object.entries(block).flatMap(([name, value]) => {
    const at = `${path}.${name}`;
    if (typeof value !== "string") return others.has(name) ? [] : sealedIn(value, at);
    return names.has(name) && value !== "" ? [{ value, at }] : [];
  });
}
