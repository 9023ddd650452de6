import { createHash } from "node:crypto";
import { setImmediate as turn } from "node:timers/promises";

/** Bytes or characters that are gone through before others get their turn: some ms of work. */
const atOnce = 4 * 1024 * 1024;

/** A copy with a buffer of its own; of a large one in several turns of the event loop. */
export async function copyInTurns(bytes: Uint8Array): Promise<Uint8Array<ArrayBuffer>> {
  const copy = Buffer.allocUnsafeSlow(bytes.length);
  for (let at = 0; at < bytes.length; at += atOnce) {
    if (at > 0) await turn();
    copy.set(bytes.subarray(at, at + atOnce), at);
  }
  return copy as Uint8Array<ArrayBuffer>;
}

/** SHA-256 of texts, in hexadecimal, as of each one's UTF-8; of long or many ones in several turns of the event loop. */
export async function hashInTurns(texts: readonly string[]): Promise<string[]> {
  const hashes: string[] = [];
  let left = atOnce;
  const spend = async (characters: number) => {
    left -= characters + hashCharacters;
    if (left > 0) return;
    left = atOnce;
    await turn();
  };
  for (const text of texts) {
    const hash = createHash("sha256");
    for (let at = 0; at < text.length; ) {
      const end = wholeCharacter(text, Math.min(at + atOnce, text.length));
      hash.update(text.slice(at, end));
      await spend(end - at);
      at = end;
    }
    hashes.push(hash.digest("hex"));
    await spend(0);
  }
  return hashes;
}

/** Making a hash costs as much as going through so many characters. */
const hashCharacters = 2_048;

/** Not between the halves of a surrogate pair. */
function wholeCharacter(text: string, at: number): number {
  const code = text.charCodeAt(at);
  return code >= 0xdc00 && code <= 0xdfff && at < text.length ? at + 1 : at;
}
