// Bounds by how much a tokenizer's own form of a text is longer than the text. `weight.ts` counts with it, and so do embeddings.

/** A form into which tokenizers bring text before they read it: Qwen's use NFC, those of SentencePiece NFKC. */
type Form = "NFC" | "NFKC";

/** By how many bytes a character is longer in a form, by its code point. {@link unknown} until the character was met. */
const tables: Partial<Record<Form, Uint8Array>> = {};
const unknown = 255;
const codePoints = 0x11_0000;

/**
 * Blocks with the characters that NFC takes apart, so that they have more bytes than before. The blocks hold other characters,
 * too.
 */
const grows =
  /[\u0344\u0958-\u095f\u09dc-\u09df\u0a33-\u0a36\u0a59-\u0a5e\u0b5c\u0b5d\u0f43-\u0fb9\u2adc\ufa6c\ufacf-\ufad7\ufb1d-\ufb4e\u{1d15e}-\u{1d164}\u{1d1bb}-\u{1d1c0}]/u;

/** Can the text be longer in NFC? Nearly no text is. */
export function mayGrow(text: string): boolean {
  return grows.test(text);
}

/**
 * Bytes of UTF-8 by which a text can be longer in a form, character by character. Never the whole text at once: sorting marks
 * that follow each other takes time that grows with the square of their number.
 */
export function growthOf(text: string, form: Form): number {
  tables[form] ??= new Uint8Array(codePoints).fill(unknown);
  const table = tables[form];
  let sum = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code < 0x80) continue;
    const codePoint = text.codePointAt(at) ?? code;
    if (codePoint > 0xffff) at++;
    const known = table[codePoint] ?? 0;
    sum += known === unknown ? learn(table, codePoint, form) : known;
  }
  return sum;
}

function learn(table: Uint8Array, codePoint: number, form: Form): number {
  const character = String.fromCodePoint(codePoint);
  const more = Buffer.byteLength(character.normalize(form)) - Buffer.byteLength(character);
  table[codePoint] = Math.max(0, more);
  return table[codePoint] as number;
}
