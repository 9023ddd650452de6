/** Bytes that are searched before other work has its turn. They take a few ms. */
const bytesAtOnce = 256 * 1024;

const [quote, backslash, comma, colon] = [0x22, 0x5c, 0x2c, 0x3a];
const [brace, braceEnd, bracket, bracketEnd] = [0x7b, 0x7d, 0x5b, 0x5d];

/**
 * Finds the `usage` of an answer, or of the `response` in an event: the place behind its opening brace. Undefined where there is none,
 * or where it is no object. A property of that name within a tool's schema or in generated text is ignored. Nothing is parsed, and it
 * yields now and then, so that an answer of many megabytes can be searched beside other work.
 */
export function* findUsage(json: Buffer): Generator<void, number | undefined> {
  let depth = 0;
  /** The depth of the object whose `usage` is wanted: 1, or 2 within `response`. */
  let wanted = 1;
  let mayBeName = false;
  let yieldAt = bytesAtOnce;
  for (let at = json.indexOf(brace); at >= 0 && at < json.length; at++) {
    if (at >= yieldAt) {
      yieldAt = at + bytesAtOnce;
      yield;
    }
    const byte = json[at];
    if (byte === quote) {
      const end = endOfText(json, at);
      if (end < 0) return undefined;
      if (mayBeName && depth === wanted) {
        const name = json.toString("latin1", at + 1, end);
        const value = name === "usage" || name === "response" ? valueAfter(json, end) : -1;
        if (json[value] === brace) {
          if (name === "usage") return value + 1;
          if (depth === 1) wanted = 2;
        }
      }
      mayBeName = false;
      at = end;
    } else if (byte === brace || byte === bracket) {
      depth++;
      mayBeName = byte === brace;
    } else if (byte === braceEnd || byte === bracketEnd) {
      depth--;
      if (depth < wanted) wanted = 1;
      if (depth === 0) return undefined;
    } else if (byte === comma) mayBeName = true;
  }
  return undefined;
}

/** The closing quote of a text that begins at `from`. -1 where there is none. */
function endOfText(json: Buffer, from: number): number {
  for (let end = json.indexOf(quote, from + 1); end >= 0; end = json.indexOf(quote, end + 1)) {
    let slashes = 0;
    while (json[end - 1 - slashes] === backslash) slashes++;
    if (slashes % 2 === 0) return end;
  }
  return -1;
}

/** The beginning of the value behind a name whose closing quote is at `end`. */
function valueAfter(json: Buffer, end: number): number {
  let at = end + 1;
  while (isSpace(json[at])) at++;
  if (json[at] !== colon) return -1;
  at++;
  while (isSpace(json[at])) at++;
  return at;
}

/** Is it white space of JSON? */
export function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}
