// Makes patterns of words, by which images, music and videos find in a prompt what is asked for.

/** A list of words, each also in the plural, as one pattern for a text in lower case. */
export function words(list: string): RegExp {
  return new RegExp(`\\b(${list.replaceAll(" ", "|")})(e?s)?\\b`);
}
