/** A reference to an object; generations are left out, because readers differ in what they make of them. */
export interface PdfRef {
  readonly ref: number;
}
/** Entries of a dictionary that are looked through for each name asked. Above that, what was found is kept: many may refer to it. */
const usualEntries = 32;

/** A dictionary. A name may stand twice in it: readers differ in which one they take. */
export class PdfDict {
  readonly #entries: (string | PdfValue)[] = [];
  /** Of a large one, the values of names that were asked for: few, since they are names of the code's. */
  #asked: Map<string, readonly PdfValue[]> | undefined;

  add(name: string, value: PdfValue): void {
    this.#entries.push(name, value);
  }

  /** Every value of a name. Asked once all are added. */
  all(name: string): readonly PdfValue[] {
    const known = this.#asked?.get(name);
    if (known) return known;
    const found: PdfValue[] = [];
    for (let at = 0; at < this.#entries.length; at += 2) {
      if (this.#entries[at] === name) found.push(this.#entries[at + 1] as PdfValue);
    }
    if (this.#entries.length > 2 * usualEntries) {
      this.#asked ??= new Map();
      this.#asked.set(name, found);
    }
    return found;
  }

  has(name: string): boolean {
    return this.all(name).length > 0;
  }

  /** The values of all names. */
  values(): PdfValue[] {
    return this.#entries.filter((_, at) => at % 2 === 1) as PdfValue[];
  }
}
/** A name of a PDF. */
export class PdfName {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}
/** A value of a PDF, as far as counting needs it: strings, truth values and null are all null here. */
export type PdfValue = number | PdfName | PdfRef | PdfDict | PdfValue[] | null;

/** Why a PDF is not taken. Holds nothing of its content. */
export type PdfFault = "no-pdf" | "encrypted" | "uncountable" | "too-many-pages";

/** A PDF that is not taken. */
export class PdfError extends Error {
  override readonly name = "PdfError";
  readonly fault: PdfFault;

  constructor(fault: PdfFault) {
    super(`PDF: ${fault}`);
    this.fault = fault;
  }
}

/** Names of which one at least makes a dictionary worth remembering by itself. */
const toldNames: ReadonlySet<string> = new Set([
  "DescendantFonts",
  "Differences",
  "Encrypt",
  "Pages",
  "ToUnicode",
  "Type",
  "XObject",
]);

/** What may still be read of one file: its objects may lie within each other, and would take the square of its size. */
export interface ReadingBudget {
  bytes: number;
  values: number;
}

/** Lists within lists: no writer comes near it, and reading them recurses. */
const maxDepth = 64;

/** Bytes of a name as it is written: the format allows 127, and three for each. */
const maxNameBytes = 4_096;

/** Reads values from bytes. Throws {@link PdfError} at all that is no value: a lenient reader may make anything of it. */
export class PdfReader {
  readonly bytes: Buffer;
  at: number;
  /** Bytes of the strings that were read. */
  stringBytes = 0;
  readonly #budget: ReadingBudget;
  readonly #onDict: (dict: PdfDict) => void;
  readonly #refs = new Map<number, PdfRef>();

  constructor(bytes: Buffer, at: number, budget: ReadingBudget, onDict: (dict: PdfDict) => void) {
    this.bytes = bytes;
    this.at = at;
    this.#budget = budget;
    this.#onDict = onDict;
  }

  /** The value that begins here; `at` is behind it then. */
  value(depth = 0): PdfValue {
    this.skipSpace();
    if (depth > maxDepth || --this.#budget.values < 0) throw new PdfError("uncountable");
    const { bytes, at } = this;
    switch (bytes[at]) {
      case 0x2f: // "/"
        return new PdfName(this.#name());
      case 0x5b: // "["
        return this.#array(depth);
      case 0x28: // "("
        return this.#string();
      case 0x3c: // "<"
        return bytes[at + 1] === 0x3c ? this.#dict(depth) : this.#hexString();
    }
    const number = this.#integer();
    if (number !== undefined) return this.#refOr(number);
    const word = this.#word();
    if (/^[+-]?(\d+(\.\d*)?|\.\d+)$/.test(word)) return Number(word);
    if (word === "true" || word === "false" || word === "null") return null;
    throw new PdfError("uncountable");
  }

  /** Goes on to what is neither space nor comment. */
  skipSpace(): void {
    const { bytes } = this;
    const from = this.at;
    for (; this.at < bytes.length; this.at++) {
      const byte = bytes[this.at] ?? 0;
      if (byte === 0x25) {
        // "%": a comment to the end of its line.
        while (this.at < bytes.length && !isLineEnd(bytes[this.at])) this.at++;
      } else if (!isSpace(byte)) break;
    }
    this.#spend(this.at - from);
  }

  /** Is this keyword next? It is passed over then. */
  takes(keyword: string): boolean {
    this.skipSpace();
    const end = this.at + keyword.length;
    if (this.bytes.toString("latin1", this.at, end) !== keyword) return false;
    this.at = end;
    return true;
  }

  /** A run of regular characters; "" for none. */
  #word(): string {
    const from = this.at;
    while (this.at < this.bytes.length && isRegular(this.bytes[this.at] ?? 0)) this.at++;
    this.#spend(this.at - from);
    return this.bytes.toString("latin1", from, this.at);
  }

  /** An integer without a sign, passed over; undefined, and nothing passed over, for anything else. */
  #integer(): number | undefined {
    const { bytes } = this;
    let number = 0;
    let at = this.at;
    for (; isDigit(bytes[at]); at++) number = number * 10 + (bytes[at] as number) - 0x30;
    const isWhole = at > this.at && (at >= bytes.length || !isRegular(bytes[at] as number));
    if (!isWhole) return undefined;
    this.#spend(at - this.at);
    this.at = at;
    return number;
  }

  /** The reference that an integer begins, or the integer. */
  #refOr(number: number): PdfValue {
    const after = this.at;
    this.skipSpace();
    if (isDigit(this.bytes[this.at]) && this.#integer() !== undefined) {
      this.skipSpace();
      const { bytes, at } = this;
      if (bytes[at] === 0x52 && (at + 1 >= bytes.length || !isRegular(bytes[at + 1] as number))) {
        this.at++;
        return this.#ref(number);
      }
    }
    this.at = after;
    return number;
  }

  #ref(number: number): PdfRef {
    const known = this.#refs.get(number);
    if (known) return known;
    const ref = { ref: number };
    this.#refs.set(number, ref);
    return ref;
  }

  #name(): string {
    this.at++;
    const from = this.at;
    const word = this.#word();
    if (word.length > maxNameBytes) throw new PdfError("uncountable");
    return word.includes("#") ? unescaped(this.bytes.subarray(from, this.at)) : word;
  }

  #array(depth: number): PdfValue[] {
    this.at++;
    const items: PdfValue[] = [];
    for (;;) {
      this.skipSpace();
      if (this.at >= this.bytes.length) throw new PdfError("uncountable");
      if (this.bytes[this.at] === 0x5d) break;
      items.push(this.value(depth + 1));
    }
    this.at++;
    return items;
  }

  #dict(depth: number): PdfDict {
    this.at += 2;
    const dict = new PdfDict();
    let isTold = false;
    for (;;) {
      this.skipSpace();
      if (this.bytes[this.at] === 0x3e && this.bytes[this.at + 1] === 0x3e) break;
      if (this.bytes[this.at] !== 0x2f) throw new PdfError("uncountable");
      const name = this.#name();
      dict.add(name, this.value(depth + 1));
      isTold ||= toldNames.has(name);
    }
    this.at += 2;
    if (isTold) this.#onDict(dict);
    return dict;
  }

  #string(): null {
    const end = endOfString(this.bytes, this.at);
    if (end === undefined) throw new PdfError("uncountable");
    this.#count(end - this.at - 1);
    this.at = end + 1;
    return null;
  }

  #hexString(): null {
    const end = this.bytes.indexOf(0x3e, this.at);
    if (end < 0) throw new PdfError("uncountable");
    this.#count(end - this.at - 1);
    this.at = end + 1;
    return null;
  }

  #count(bytes: number): void {
    this.stringBytes += bytes;
    this.#spend(bytes);
  }

  #spend(bytes: number): void {
    this.#budget.bytes -= bytes + 1;
    if (this.#budget.bytes < 0) throw new PdfError("uncountable");
  }
}

/** A name of which some bytes are spelled as "#" and two digits: by bytes, for a file may have half a gigabyte of them. */
function unescaped(word: Buffer): string {
  const plain = Buffer.alloc(word.length);
  let size = 0;
  for (let at = 0; at < word.length; at++) {
    const byte = word[at] ?? 0;
    const [high, low] = byte === 0x23 ? [digitOf(word[at + 1]), digitOf(word[at + 2])] : [-1, -1];
    const isEscape = high >= 0 && low >= 0;
    plain[size++] = isEscape ? high * 16 + low : byte;
    if (isEscape) at += 2;
  }
  return plain.toString("latin1", 0, size);
}

/** What a hexadecimal digit stands for; -1: it is none. */
function digitOf(byte = 0): number {
  if (isDigit(byte)) return byte - 0x30;
  const letter = byte | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1;
}

/** Where the string ends that begins at `from`: at the parenthesis that closes it; undefined: nowhere. */
export function endOfString(bytes: Uint8Array, from: number): number | undefined {
  let depth = 0;
  for (let at = from; at < bytes.length; at++) {
    switch (bytes[at]) {
      case 0x5c: // A backslash.
        at++;
        break;
      case 0x28:
        depth++;
        break;
      case 0x29:
        depth--;
        if (depth === 0) return at;
    }
  }
  return undefined;
}

export function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 0x30 && byte <= 0x39;
}

function isLineEnd(byte: number | undefined): boolean {
  return byte === 0x0a || byte === 0x0d;
}

export function isSpace(byte: number): boolean {
  return byte === 0x20 || (byte >= 0x09 && byte <= 0x0d && byte !== 0x0b) || byte === 0;
}

/** Neither space nor one of the delimiters. */
export function isRegular(byte: number): boolean {
  return regular[byte] === 1;
}

const delimiters = "()<>[]{}/%";
const regular = Uint8Array.from({ length: 256 }, (_, byte) => {
  return isSpace(byte) || delimiters.includes(String.fromCharCode(byte)) ? 0 : 1;
});
