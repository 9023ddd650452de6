// Copies, joins, hashes and writes large data in pieces, so that other requests get the event loop in between.

import { createHash } from "node:crypto";
import { setImmediate as turn } from "node:timers/promises";
import type { Awaitable } from "./awaitable.ts";
import type { JsonObject, JsonValue } from "./json.ts";

/** Resolves after other work that waits for the event loop has had its turn. */
export { turn };

/** Bytes that are gone through before other work gets its turn. They take some ms. */
const bytesAtOnce = 4 * 1024 * 1024;

/** A copy with a buffer of its own. A large one is made in several turns of the event loop. */
export function copyInTurns(bytes: Uint8Array): Promise<Buffer<ArrayBuffer>> {
  return joinInTurns([bytes]);
}

/** Pieces joined into one, with a buffer of its own. More than some megabytes are joined in several turns of the event loop. */
export async function joinInTurns(pieces: readonly Uint8Array[]): Promise<Buffer<ArrayBuffer>> {
  const whole = Buffer.allocUnsafeSlow(pieces.reduce((sum, { length }) => sum + length, 0));
  let to = 0;
  let left = bytesAtOnce;
  for (const piece of pieces) {
    for (let at = 0; at < piece.length; ) {
      if (left === 0) {
        await turn();
        left = bytesAtOnce;
      }
      const part = piece.subarray(at, at + left);
      whole.set(part, to);
      at += part.length;
      to += part.length;
      left -= part.length;
    }
  }
  return whole;
}

/** Bytes in pieces, like a stream's, for a reader that works on each piece in a turn of its own. */
export async function* piecesOf(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += bytesAtOnce) yield bytes.subarray(at, at + bytesAtOnce);
}

/** All bytes of a stream, joined in turns. Rejects with the stream's error. */
export async function readInTurns(stream: AsyncIterable<Uint8Array>): Promise<Buffer<ArrayBuffer>> {
  const pieces: Uint8Array[] = [];
  for await (const piece of stream) pieces.push(piece);
  return joinInTurns(pieces);
}

/** SHA-256 of bytes, in hexadecimal. Many bytes are hashed in several turns of the event loop. */
export async function digestInTurns(bytes: Uint8Array): Promise<string> {
  const hash = createHash("sha256");
  for (let at = 0; at < bytes.length; at += bytesAtOnce) {
    if (at > 0) await turn();
    hash.update(bytes.subarray(at, at + bytesAtOnce));
  }
  return hash.digest("hex");
}

/** Runs work to its end. At each `yield`, now and then, other work gets its turn. Work without one is done at once. */
export function inTurns<T>(work: Generator<void, T>): Awaitable<T> {
  const step = work.next();
  return step.done ? step.value : restInTurns(work);
}

async function restInTurns<T>(work: Generator<void, T>): Promise<T> {
  for (;;) {
    await turn();
    const step = work.next();
    if (step.done) return step.value;
  }
}

/** SHA-256 of texts, in hexadecimal, each hashed as UTF-8. Long or many texts are hashed in several turns of the event loop. */
export async function hashInTurns(texts: readonly string[]): Promise<string[]> {
  const hashes: string[] = [];
  let left = charactersHashedAtOnce;
  const spend = async (characters: number) => {
    left -= characters + hashCharacters;
    if (left > 0) return;
    left = charactersHashedAtOnce;
    await turn();
  };
  for (const text of texts) {
    const hash = createHash("sha256");
    for (let at = 0; at < text.length; ) {
      const end = wholeCharacter(text, Math.min(at + charactersHashedAtOnce, text.length));
      hash.update(text.slice(at, end));
      await spend(end - at);
      at = end;
    }
    hashes.push(hash.digest("hex"));
    await spend(0);
  }
  return hashes;
}

/** Characters that are hashed before other work gets its turn. They are up to three times as many bytes, and take some ms. */
const charactersHashedAtOnce = 1024 * 1024;
/** Making a hash costs as much as going through this many characters. */
const hashCharacters = 2_048;

/** Moves a cut so that it is not between the halves of a surrogate pair. */
function wholeCharacter(text: string, at: number): number {
  const code = text.charCodeAt(at);
  return code >= 0xdc00 && code <= 0xdfff && at < text.length ? at + 1 : at;
}

/** Characters that are written before other work gets its turn. They take some ms. */
const charactersAtOnce = 256 * 1024;
/** The cost of a value beside its characters, in characters. */
const valueCharacters = 16;

/** A value as JSON. A large one is written in several turns of the event loop. */
export function jsonInTurns(value: JsonObject): Awaitable<string | Uint8Array> {
  return leftOf(value, charactersAtOnce) > 0 ? JSON.stringify(value) : largeJson(value);
}

async function largeJson(value: JsonObject): Promise<Uint8Array> {
  const parts: Buffer[] = [];
  for (const piece of write(value, { text: "", values: 0 })) {
    parts.push(Buffer.from(piece));
    await turn();
  }
  return joinInTurns(parts);
}

/** The number of characters that is left of `most` after a value. Stops when none is left. */
function leftOf(value: JsonValue | undefined, most: number): number {
  let left = most - valueCharacters;
  if (typeof value === "string") return left - value.length;
  if (typeof value !== "object" || value === null) return left;
  if (Array.isArray(value)) {
    for (const one of value) {
      if (left <= 0) return left;
      left = leftOf(one, left);
    }
    return left;
  }
  for (const name in value) {
    if (left <= 0) return left;
    left = leftOf((value as JsonObject)[name], left - name.length);
  }
  return left;
}

/** JSON that is written but not handed on yet. */
interface Pending {
  text: string;
  /** How many values the text holds: the cost of short values is their number. */
  values: number;
}

/** The pieces of a value's JSON. The end stays in `pending` where it is not a whole piece. */
function* write(value: JsonObject, pending: Pending): Iterable<string> {
  yield* writeValue(value, pending);
  yield pending.text;
}

/** Is it a number that is written as it was in another text (exact-json.ts)? The types of the language lack this function. */
const { isRawJSON } = JSON as typeof JSON & { isRawJSON(value: unknown): boolean };

function* writeValue(value: JsonValue, pending: Pending): Iterable<string> {
  if (typeof value === "string" && value.length > charactersAtOnce)
    yield* writeLong(value, pending);
  else if (typeof value !== "object" || value === null || isRawJSON(value))
    pending.text += JSON.stringify(value);
  else if (Array.isArray(value)) yield* writeMany("[", value.entries(), "]", pending);
  else yield* writeMany("{", Object.entries(value), "}", pending);
  pending.values++;
  if (pending.text.length + pending.values * valueCharacters < charactersAtOnce) return;
  yield pending.text;
  pending.text = "";
  pending.values = 0;
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

/** A long string, slice by slice. A surrogate pair that is cut apart is escaped as two halves, and is one again when read. */
function* writeLong(value: string, pending: Pending): Iterable<string> {
  pending.text += '"';
  for (let at = 0; at < value.length; at += charactersAtOnce) {
    const written = JSON.stringify(value.slice(at, at + charactersAtOnce));
    yield pending.text + written.slice(1, -1);
    pending.text = "";
  }
  pending.text += '"';
}
