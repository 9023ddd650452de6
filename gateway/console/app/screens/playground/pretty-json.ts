// Writes JSON with a line for each value, so that a reader can read an answer.

/** The most characters of indented JSON for each one of the text. Only deep nesting makes more, up to millions. */
const maxGrowth = 10;

/** A JSON object or list with a line for each value. Undefined for other text, and where that would change a value, e.g. a long number. */
export function prettyJson(text: string): string | undefined {
  if (!/^\s*[{[]/.test(text)) return undefined;
  try {
    const pretty = JSON.stringify(JSON.parse(text), null, 2);
    if (pretty.length > maxGrowth * text.length) return undefined;
    return withoutBlanks(pretty) === withoutBlanks(text) ? pretty : undefined;
  } catch {
    return undefined;
  }
}

const withoutBlanks = (json: string) => json.replaceAll(/\s/g, "");
