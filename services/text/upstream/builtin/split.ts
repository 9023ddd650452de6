/** Words with the space before them, long ones in pieces; marks; what is left of spaces. */
const pieces = /\s*[\p{L}\p{M}\p{N}]{1,12}|\s*[^\s\p{L}\p{N}]|\s+/gu;

/** Cuts a text into deltas of about a token; together they are the text. */
export function splitWords(text: string): readonly string[] {
  return text.match(pieces) ?? [];
}
