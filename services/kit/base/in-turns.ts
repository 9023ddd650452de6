import { createHash } from "node:crypto";
import { setImmediate as turn } from "node:timers/promises";
import type { JsonObject, JsonValue } from "./json.ts";

/** Resolves when what else waits for the event loop has had its turn. */
export { turn };

/** Bytes that are gone through before others get their turn: some ms of work. */
const bytesAtOnce = 4 * 1024 * 1024;

/** A copy with a buffer of its own; of a large one in several turns of the event loop. */
export function copyInTurns(bytes: Uint8Array): Promise<Buffer<ArrayBuffer>> {
  return joinInTurns([bytes]);
}

/** Pieces as one, with a buffer of its own; of more than some megabytes in several turns of the event loop. */
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

/** Bytes as a stream brings them, some at a time, for what works on each piece in a turn of its own. */
export async function* piecesOf(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += bytesAtOnce) yield bytes.subarray(at, at + bytesAtOnce);
}

/** All that a stream brings, joined so. Rejects with the stream's error. */
export async function readInTurns(stream: AsyncIterable<Uint8Array>): Promise<Buffer<ArrayBuffer>> {
  const pieces: Uint8Array[] = [];
  for await (const piece of stream) pieces.push(piece);
  return joinInTurns(pieces);
}

/** SHA-256 of bytes, in hexadecimal; of many in several turns of the event loop. */
export async function digestInTurns(bytes: Uint8Array): Promise<string> {
  const hash = createHash("sha256");
  for (let at = 0; at < bytes.length; at += bytesAtOnce) {
    if (at > 0) await turn();
    hash.update(bytes.subarray(at, at + bytesAtOnce));
  }
  return hash.digest("hex");
}

/** Runs work to its end; what yields now and then lets others have their turn there. */
export async function inTurns<T>(work: Generator<void, T>): Promise<T> {
  for (let step = work.next(); ; step = work.next()) {
    if (step.done) return step.value;
    await turn();
  }
}

/** SHA-256 of texts, in hexadecimal, as of each one's UTF-8; of long or many ones in several turns of the event loop. */
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

/** Characters that are hashed before others get their turn: up to three times as many bytes, some ms of work. */
const charactersHashedAtOnce = 1024 * 1024;
/** Making a hash costs as much as going through so many characters. */
const hashCharacters = 2_048;

/** Not between the halves of a surrogate pair. */
function wholeCharacter(text: string, at: number): number {
  const code = text.charCodeAt(at);
  return code >= 0xdc00 && code <= 0xdfff && at < text.length ? at + 1 : at;
}

/** Characters that are written before others get their turn: some ms of work. */
const charactersAtOnce = 256 * 1024;
/** What a value costs beside its characters. */
const valueCharacters = 16;

/** A value as JSON; a large one is written in several turns of the event loop. */
export async function jsonInTurns(value: JsonObject): Promise<string | Uint8Array> {
  if (leftOf(value, charactersAtOnce) > 0) return JSON.stringify(value);
  const parts: Buffer[] = [];
  for (const piece of write(value, { text: "", values: 0 })) {
    parts.push(Buffer.from(piece));
    await turn();
  }
  return joinInTurns(parts);
}

/** What a value leaves of a number of characters; stops where nothing is left. */
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

/** What is written and was not given yet. */
interface Pending {
  text: string;
  /** How many values that is: short ones cost their number. */
  values: number;
}

/** The pieces of a value's JSON, but for what is pending at the end of one that is not the whole. */
function* write(value: JsonObject, pending: Pending): Iterable<string> {
  yield* writeValue(value, pending);
  yield pending.text;
}

function* writeValue(value: JsonValue, pending: Pending): Iterable<string> {
  if (typeof value === "string" && value.length > charactersAtOnce)
    yield* writeLong(value, pending);
  else if (typeof value !== "object" || value === null) pending.text += JSON.stringify(value);
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

/** A long string, slice by slice. Halves of a surrogate pair that are cut apart are escaped, and are one again when read. */
function* writeLong(value: string, pending: Pending): Iterable<string> {
  pending.text += '"';
  for (let at = 0; at < value.length; at += charactersAtOnce) {
    const written = JSON.stringify(value.slice(at, at + charactersAtOnce));
    yield pending.text + written.slice(1, -1);
    pending.text = "";
  }
  pending.text += '"';
}
