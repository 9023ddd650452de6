// Finds the places of a list's elements in the bytes of a JSON text, without parsing it. So each element can be handed on as it
// was sent.

const quote = 0x22;
const backslash = 0x5c;
const [openList, closeList, openObject, closeObject] = [0x5b, 0x5d, 0x7b, 0x7d];
const [comma, colon] = [0x2c, 0x3a];
/** Marks and strings that are looked at before other work has its turn. They take a few ms. */
const marksAtOnce = 50_000;

/** Where a value begins and ends in the bytes of a JSON text. */
export type Span = readonly [start: number, end: number];

/**
 * Where the elements of a list stand that is a property of a JSON object. The text must be valid JSON. Of several properties of the name
 * the last one counts, as for a parser. Empty where there is no such list.
 */
export function* spansOf(json: Buffer, property: string): Generator<void, Span[]> {
  const name = Buffer.from(JSON.stringify(property));
  let spans: Span[] = [];
  /** The depth of the place. The object's own properties are at 1, and the list's elements at 2. */
  let depth = 0;
  let isWithin = false;
  let isName = false;
  let isNamed = false;
  let start = -1;
  let marks = 0;
  const endElement = (end: number) => {
    if (!isWithin || depth !== 2 || start === -1) return;
    spans.push([start, end]);
    start = -1;
  };
  for (let at = 0; at < json.length; at++) {
    const byte = json[at] as number;
    if (++marks % marksAtOnce === 0) yield;
    if (byte <= 0x20) continue;
    const isMark = byte === comma || byte === colon || byte === closeList || byte === closeObject;
    if (isWithin && depth === 2 && start === -1 && !isMark) start = at;
    if (byte === quote) {
      const end = endOfString(json, at);
      if (depth === 1 && isName) isNamed = json.subarray(at, end).equals(name);
      at = end - 1;
    } else if (byte === openObject || byte === openList) {
      if (depth === 1 && byte === openList && isNamed) {
        isWithin = true;
        spans = [];
      }
      depth++;
      isName = byte === openObject;
    } else if (byte === closeObject || byte === closeList) {
      endElement(at);
      depth--;
      if (depth === 2 && isWithin) {
        spans.push([start, at + 1]);
        start = -1;
      }
      if (depth === 1) isWithin = false;
    } else if (byte === comma) {
      endElement(at);
      isName = depth === 1;
      if (depth === 1) isNamed = false;
    } else if (byte === colon) isName = false;
  }
  return spans;
}

/** The place behind the string that begins here. */
function endOfString(json: Buffer, from: number): number {
  let end = json.indexOf(quote, from + 1);
  for (; end !== -1; end = json.indexOf(quote, end + 1)) {
    let slashes = 0;
    while (json[end - 1 - slashes] === backslash) slashes++;
    if (slashes % 2 === 0) return end + 1;
  }
  return json.length;
}
