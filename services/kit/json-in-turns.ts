import { setImmediate as turn } from "node:timers/promises";
import type { JsonObject, JsonValue } from "./json.ts";

/** Characters that are written before others get their turn: some ms of work. */
const atOnce = 256 * 1024;
/** What a value costs beside its characters. */
const valueCharacters = 8;

/** A value as JSON; a large one is written in several turns of the event loop. */
export async function jsonInTurns(value: JsonObject): Promise<string | Uint8Array> {
  if (leftOf(value, atOnce) > 0) return JSON.stringify(value);
  const parts: Buffer[] = [];
  let size = 0;
  for (const piece of write(value, { text: "" })) {
    const part = Buffer.from(piece);
    parts.push(part);
    size += part.length;
    await turn();
  }
  const whole = Buffer.allocUnsafeSlow(size);
  let at = 0;
  for (const [number, part] of parts.entries()) {
    whole.set(part, at);
    at += part.length;
    // A copy is quicker than the writing.
    if (number % 16 === 15) await turn();
  }
  return whole;
}

/** What a value leaves of a number of characters; stops where nothing is left. */
function leftOf(value: JsonValue | undefined, most: number): number {
  let left = most - valueCharacters;
  if (typeof value === "string") return left - value.length;
  if (typeof value !== "object" || value === null) return left;
  for (const name in value) {
    if (left <= 0) return left;
    left = leftOf((value as JsonObject)[name], left - name.length);
  }
  return left;
}

/** What is written and was not given yet. */
interface Pending {
  text: string;
}

/** The pieces of a value's JSON, but for what is pending at the end of one that is not the whole. */
function* write(value: JsonObject, pending: Pending): Iterable<string> {
  yield* writeValue(value, pending);
  yield pending.text;
}

function* writeValue(value: JsonValue, pending: Pending): Iterable<string> {
  if (typeof value === "string" && value.length > atOnce) yield* writeLong(value, pending);
  else if (typeof value !== "object" || value === null) pending.text += JSON.stringify(value);
  else if (Array.isArray(value)) yield* writeMany("[", value.entries(), "]", pending);
  else yield* writeMany("{", Object.entries(value), "}", pending);
  if (pending.text.length < atOnce) return;
  yield pending.text;
  pending.text = "";
}

function* writeMany(
  open: string,
  entries: Iterable<[string | number, JsonValue | undefined]>,
  close: string,
  pending: Pending,
): Iterable<string> {
  let before = open;
  for (const [name, value] of entries) {
    if (value === undefined) continue;
    pending.text += before + (typeof name === "string" ? `${JSON.stringify(name)}:` : "");
    before = ",";
    yield* writeValue(value, pending);
  }
  pending.text += before === "," ? close : open + close;
}

/** A long string, slice by slice. Halves of a surrogate pair that are cut apart are escaped, and are one again when read. */
function* writeLong(value: string, pending: Pending): Iterable<string> {
  pending.text += '"';
  for (let at = 0; at < value.length; at += atOnce) {
    const written = JSON.stringify(value.slice(at, at + atOnce));
    yield pending.text + written.slice(1, -1);
    pending.text = "";
  }
  pending.text += '"';
}
