import { isRef, type PdfFile, type PdfObject } from "./pdf-file.ts";
import { endOfString, isRegular, PdfDict, PdfName, type PdfValue } from "./pdf-syntax.ts";

/**
 * Bytes of the text that the pages of a file show, as UTF-8, at most; undefined where no such bound can be told. A page shows the
 * strings in its content, those of the forms that it draws, which may draw others, and those of its annotations; fonts say
 * what the codes in them stand for. What a file holds besides (titles, bookmarks, replacement text) counts once.
 */
export function shownBytes(file: PdfFile, pages: Iterable<PdfDict>): number | undefined {
  const text = new ShownText(file);
  try {
    let codes = file.stringBytes;
    for (const page of pages) codes += text.ofPage(page);
    const bytes = codes * text.bytesPerCode();
    return Number.isFinite(bytes) ? Math.ceil(bytes) : undefined;
  } catch (error) {
    if (error instanceof NoBound) return undefined;
    throw error;
  }
}

/** What a file shows has no bound that can be told: nothing more of it needs looking at. */
class NoBound extends Error {
  override readonly name = "NoBound";
}

/** Forms within forms, and lists within lists: writers make a few. */
const maxLevels = 32;
/** Bytes of a font's table, and of all of a file's together: one of every Chinese character has half a megabyte. */
const mapBytes = { each: 1024 * 1024, all: 4 * 1024 * 1024 } as const;

/** What content shows by itself: codes in its strings, and how often it draws an object that has a name. */
interface Shown {
  readonly codes: number;
  readonly draws: number;
}

/** Every sum is kept by what it is of, since pages and forms share what they show: each list, dictionary and stream is gone through once. */
class ShownText {
  readonly #file: PdfFile;
  readonly #streams = new Map<PdfObject, Shown>();
  readonly #lists = new Map<PdfValue[], Shown>();
  /** Codes of a form with those of what it draws; -1 while they are being counted. */
  readonly #forms = new Map<PdfObject, number>();
  readonly #annotations = new Map<PdfDict | PdfValue[], number>();
  readonly #appearances = new Map<PdfDict, number>();
  /** The most that one of the objects shows that a page or form may draw; all of the file's: by undefined. */
  readonly #drawn = new Map<PdfDict | undefined, number>();
  /** The same by what has their names, and by the dictionary of the names. */
  readonly #named = new Map<PdfDict, number>();
  readonly #called = new Map<PdfDict, number>();
  /** Bytes for each code by a font's table, by the table's object. */
  readonly #maps = new Map<number, number>();
  #mapBytes = 0;

  constructor(file: PdfFile) {
    this.#file = file;
  }

  ofPage(page: PdfDict): number {
    let sum = 0;
    for (const contents of page.all("Contents")) {
      sum += this.#withDrawn(this.#ofContents(contents, 0), page, 0);
    }
    for (const annotations of page.all("Annots")) sum += this.#ofAnnotations(annotations, 0);
    return sum;
  }

  /** Bytes of UTF-8 that one byte of a string may stand for: what the fonts' own tables say, for most of which it is one. */
  bytesPerCode(): number {
    let most = 1;
    const seen = new Set<PdfValue>();
    for (const dict of this.#file.dicts) {
      for (const map of dict.all("ToUnicode")) most = Math.max(most, this.#ofMap(map));
      if (dict.has("DescendantFonts")) most = Math.max(most, this.#ofComposite(dict));
      for (const names of dict.all("Differences").flatMap((one) => this.#file.resolve(one))) {
        if (!Array.isArray(names) || seen.has(names)) continue;
        seen.add(names);
        for (const name of names) most = Math.max(most, ofGlyph(name));
      }
    }
    return most;
  }

  /** A font whose codes readers look up in its own collection of characters, where no table of the file says what they are. */
  #ofComposite(font: PdfDict): number {
    let most = 1;
    for (const encoding of font.all("Encoding")) {
      for (const one of this.#file.resolve(encoding)) most = Math.max(most, ofEncoding(one));
    }
    return most;
  }

  #ofContents(contents: PdfValue, level: number): Shown {
    if (level > maxLevels) throw new NoBound();
    if (Array.isArray(contents)) {
      return once(this.#lists, contents, () => {
        let sum: Shown = { codes: 0, draws: 0 };
        this.#file.spend(contents.length);
        for (const one of contents) {
          const { codes, draws } = this.#ofContents(one, level + 1);
          sum = { codes: sum.codes + codes, draws: sum.draws + draws };
        }
        return sum;
      });
    }
    let most: Shown = { codes: 0, draws: 0 };
    for (const version of this.#file.versionsOf(contents)) {
      const isList = version.streamAt === undefined;
      if (isList && !Array.isArray(version.value)) continue;
      const { codes, draws } = isList
        ? this.#ofContents(version.value, level + 1)
        : this.#ofStream(version);
      most = { codes: Math.max(most.codes, codes), draws: Math.max(most.draws, draws) };
    }
    return most;
  }

  /** Every appearance of every annotation. */
  #ofAnnotations(value: PdfValue, level: number): number {
    if (level > maxLevels) throw new NoBound();
    if (Array.isArray(value)) {
      return once(this.#annotations, value, () => {
        return this.#sumOf(value, (one) => this.#ofAnnotations(one, level + 1));
      });
    }
    if (value instanceof PdfDict) {
      return once(this.#annotations, value, () => {
        return this.#sumOf(value.all("AP"), (one) => this.#ofAppearance(one, level + 1));
      });
    }
    if (!isRef(value)) return 0;
    return this.#sumOf(this.#file.resolve(value), (one) => this.#ofAnnotations(one, level + 1));
  }

  #ofAppearance(value: PdfValue, level: number): number {
    if (level > maxLevels) throw new NoBound();
    if (value instanceof PdfDict) {
      return once(this.#appearances, value, () => {
        return this.#sumOf(value.values(), (one) => this.#ofAppearance(one, level + 1));
      });
    }
    return this.#mostOf(value, (version) => {
      if (!(version.value instanceof PdfDict)) return 0;
      if (version.streamAt === undefined) return this.#ofAppearance(version.value, level + 1);
      return this.#ofForm(version, version.value, level + 1);
    });
  }

  /** What a content stream shows by itself. */
  #ofStream(stream: PdfObject): Shown {
    return once(this.#streams, stream, () => {
      const bytes = this.#file.unpack(stream);
      if (!bytes) throw new NoBound();
      return { codes: codesIn(bytes), draws: drawsIn(bytes) };
    });
  }

  /** Codes that a form shows. Without bound where it draws itself. */
  #ofForm(form: PdfObject, dict: PdfDict, level: number): number {
    const known = this.#forms.get(form);
    if (known === -1 || level > maxLevels) throw new NoBound();
    if (known !== undefined) return known;
    this.#forms.set(form, -1);
    const codes = this.#withDrawn(this.#ofStream(form), dict, level + 1);
    this.#forms.set(form, codes);
    return codes;
  }

  /** Codes of content with those of what it draws by the names that its page or form has. */
  #withDrawn({ codes, draws }: Shown, owner: PdfDict, level: number): number {
    return draws === 0 ? codes : codes + draws * this.#mostDrawn(owner, level);
  }

  /**
   * The most that anything shows that a page or form may draw: all that is called by a name in its resources, or anywhere in the file
   * where it has none of its own. Which name a drawing has is not looked at: readers differ in what they take for it.
   */
  #mostDrawn(owner: PdfDict, level: number): number {
    return once(this.#drawn, owner, () => {
      const resources = this.#dictsAt(owner, "Resources");
      if (resources.length > 0) return this.#mostNamed(resources, level);
      return once(this.#drawn, undefined, () => this.#mostNamed(this.#file.dicts, level));
    });
  }

  /** Of what these dictionaries name. */
  #mostNamed(resources: readonly PdfDict[], level: number): number {
    let most = 0;
    for (const one of resources) {
      const named = once(this.#named, one, () => {
        return this.#dictsAt(one, "XObject").reduce((sofar, names) => {
          return Math.max(sofar, this.#mostCalled(names, level));
        }, 0);
      });
      most = Math.max(most, named);
    }
    return most;
  }

  #mostCalled(names: PdfDict, level: number): number {
    return once(this.#called, names, () => {
      let most = 0;
      for (const target of names.values()) {
        const called = this.#mostOf(target, (version) => {
          const { value } = version;
          if (!(value instanceof PdfDict) || isPicture(value)) return 0;
          return this.#ofForm(version, value, level);
        });
        most = Math.max(most, called);
      }
      return most;
    });
  }

  /** The most of the versions of what a reference names; 0 for what is no reference. */
  #mostOf(value: PdfValue, ofVersion: (version: PdfObject) => number): number {
    let most = 0;
    for (const version of this.#file.versionsOf(value)) most = Math.max(most, ofVersion(version));
    return most;
  }

  #sumOf(values: readonly PdfValue[], ofOne: (value: PdfValue) => number): number {
    this.#file.spend(values.length);
    return values.reduce<number>((sum, one) => sum + ofOne(one), 0);
  }

  /** Dictionaries that stand under a name. */
  #dictsAt(dict: PdfDict, name: string): PdfDict[] {
    const values = dict.all(name).flatMap((one) => this.#file.resolve(one));
    return values.filter((one) => one instanceof PdfDict);
  }

  #ofMap(map: PdfValue): number {
    if (!isRef(map)) return 1;
    return once(this.#maps, map.ref, () =>
      this.#mostOf(map, (version) => {
        if (version.streamAt === undefined) return 1;
        const bytes = this.#file.unpack(version);
        this.#mapBytes += bytes?.length ?? 0;
        const isReadable = bytes && bytes.length <= mapBytes.each && this.#mapBytes <= mapBytes.all;
        if (!isReadable) throw new NoBound();
        return mostOfMap(bytes.toString("latin1"));
      }),
    );
  }
}

/** What is known of a key; worked out where nothing is. */
function once<K, V>(known: Map<K, V>, key: K, workOut: () => V): V {
  let value = known.get(key);
  if (value === undefined) {
    value = workOut();
    known.set(key, value);
  }
  return value;
}

function isPicture(dict: PdfDict): boolean {
  const [subtype, ...others] = dict.all("Subtype");
  return others.length === 0 && subtype instanceof PdfName && subtype.text === "Image";
}

/**
 * Bytes of all strings of a content stream; those above ASCII stand for characters of two or three bytes. The data of a picture
 * within it may look like anything, so all that may be a string counts as one, a comment too.
 */
function codesIn(bytes: Buffer): number {
  let codes = 0;
  const high = new HighDigits(bytes);
  for (let at = 0; at < bytes.length; at++) {
    if (bytes[at] === 0x28) {
      const end = endOfString(bytes, at) ?? bytes.length;
      for (let inside = at + 1; inside < end; inside++) {
        codes += (bytes[inside] ?? 0) < 0x80 ? 1 : 3;
      }
      at = end;
    } else if (bytes[at] === 0x3c) {
      if (bytes[at + 1] === 0x3c) at++;
      // What follows is looked at all the same: readers pass over what is no digit, or take it for the end.
      else codes += high.codesAfter(at);
    }
  }
  return codes;
}

/** Counts the codes of strings of digits from left to right, each from its "<" to the next ">", which many of them may share. */
class HighDigits {
  readonly #bytes: Buffer;
  /** Where the next ">" is. */
  #close = -1;
  /** From here to there, how many digits at even and at odd places begin a code above ASCII. */
  #from = 0;
  readonly #counts: [even: number, odd: number] = [0, 0];

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  /** Codes of the string whose "<" is here; those above ASCII stand for three bytes, as in a text in brackets. */
  codesAfter(open: number): number {
    if (this.#close < open) {
      const close = this.#bytes.indexOf(0x3e, open);
      this.#close = close < 0 ? this.#bytes.length : close;
      this.#from = open + 1;
      this.#count(this.#from, this.#close, 1);
    }
    this.#count(this.#from, open + 1, -1);
    this.#from = open + 1;
    return Math.ceil((this.#close - open) / 2) + 2 * (this.#counts[this.#from % 2] ?? 0);
  }

  #count(from: number, to: number, by: 1 | -1): void {
    for (let at = from; at < to; at++) {
      if ((this.#bytes[at] ?? 0) >= 0x38) this.#counts[at % 2] = (this.#counts[at % 2] ?? 0) + by;
    }
  }
}

/** How often a content stream draws an object that has a name. */
function drawsIn(bytes: Buffer): number {
  let draws = 0;
  for (let at = 0; at + 1 < bytes.length; at++) {
    if (bytes[at] !== 0x44 || bytes[at + 1] !== 0x6f) continue;
    if (!isRegular(bytes[at - 1] ?? 0) && !isRegular(bytes[at + 2] ?? 0)) draws++;
  }
  return draws;
}

/**
 * Bytes of UTF-8 for each byte of a code, by a font's table of codes and what they stand for: the longest for the shortest. A range
 * of codes stands for what follows its first one.
 */
function mostOfMap(map: string): number {
  const bytesOf = (digits = "") => Buffer.from(digits.replace(/\s/g, ""), "hex");
  let shortest = Number.POSITIVE_INFINITY;
  let longest = 1;
  for (const [, digits] of map.matchAll(/<([0-9a-fA-F\s]*)>/g)) {
    const bytes = bytesOf(digits);
    if (bytes.length === 0) continue;
    shortest = Math.min(shortest, bytes.length);
    longest = Math.max(longest, utf8BytesOf(bytes, 0));
  }
  const hex = "<([0-9a-fA-F\\s]*)>";
  // One behind the other: what is no range is found as well, and adds little.
  for (const [, , from, to, first] of map.matchAll(
    new RegExp(`(?=(${hex}\\s*${hex}\\s*${hex}))`, "g"),
  )) {
    const [low, high] = [bytesOf(from), bytesOf(to)];
    const codes = Math.max(0, numberOf(high) - numberOf(low));
    longest = Math.max(longest, utf8BytesOf(bytesOf(first), codes));
  }
  return Math.max(1, longest / Math.max(1, Math.min(shortest, longest)));
}

function numberOf(bytes: Buffer): number {
  return bytes.length === 0 || bytes.length > 4 ? 0 : bytes.readUIntBE(0, bytes.length);
}

/** Bytes of a text in UTF-16, once the last of its units is so much higher. */
function utf8BytesOf(utf16: Buffer, higher: number): number {
  // A code of one byte, or a text that is none.
  if (utf16.length < 2) return 1;
  const units = Buffer.from(utf16.subarray(0, utf16.length - (utf16.length % 2)));
  const last = units.readUInt16BE(units.length - 2);
  const isSurrogate = last >= 0xd800 && last < 0xe000;
  if (!isSurrogate) units.writeUInt16BE(Math.min(0xffff, last + higher), units.length - 2);
  return Buffer.byteLength(units.swap16().toString("utf16le"));
}

/** Bytes of what a glyph stands for by its name: several characters where the name lists them. */
function ofGlyph(name: PdfValue): number {
  if (!(name instanceof PdfName)) return 1;
  const parts = name.text.split("_").length;
  if (/^u[0-9A-Fa-f]{4,6}(?:\.|$)/.test(name.text)) return mostBytesPerCharacter;
  const isNumbered = /^uni[0-9A-Fa-f]{4}/.test(name.text);
  const codes = isNumbered ? Math.floor((name.text.length - 3) / 4) : 1;
  const characters = Math.max(parts, codes);
  return isNumbered || characters > 1 ? characters * bytesPerCharacter : 1;
}

/** `Identity` takes two bytes a character, a list of its own as few as one; those that have names take one for some of three. */
function ofEncoding(encoding: PdfValue): number {
  if (!(encoding instanceof PdfName)) return mostBytesPerCharacter;
  return /^Identity-[HV]$/.test(encoding.text) ? mostBytesPerCharacter / 2 : bytesPerCharacter;
}

/** Of UTF-8, at most, for what a glyph's name can say. */
const bytesPerCharacter = 3;
/** Of UTF-8, for what a number of six digits names. */
const mostBytesPerCharacter = 4;
