import { inflateSync } from "node:zlib";
import {
  isDigit,
  isRegular,
  isSpace,
  PdfDict,
  PdfError,
  PdfName,
  PdfReader,
  type PdfRef,
  type PdfValue,
  type ReadingBudget,
} from "./pdf-syntax.ts";
import { checkTables } from "./pdf-tables.ts";

/** An object of a PDF, in one of the versions that the file has of it. */
export interface PdfObject {
  value: PdfValue;
  /** Where the bytes of its stream begin; undefined: it has none. */
  streamAt: number | undefined;
}

/** Bytes that one stream may unpack to, and all streams of a file together: 20 MiB of zeros would be 20 GiB. */
const unpacked = { each: 64 * 1024 * 1024, all: 128 * 1024 * 1024 } as const;
/** Values of one file, and objects: a tagged book has a million of the one and a quarter of the other; these take the thread 200 MiB. */
const maxValues = 1_500_000;
const maxObjects = 400_000;
/**
 * Steps from one value to the next when a file that was read is gone through, half a second's. Readings are linear already, so an honest
 * file takes fewer than it has values, and comparisons of its tables; lists that many share would take the square of their length.
 */
const maxSteps = 5_000_000;
/** Every byte is read at most so many times. */
const maxReadings = 4;
/** Bytes that may be read beside that: of a short file, which has some objects that are looked at more than once. */
const usualBytes = 64 * 1024;
/** Streams that are unpacked: a thousand pages of several streams each, and as many forms. */
const maxUnpacked = 20_000;
/** Filters of one stream that are undone one after another. */
const maxFilters = 4;

/**
 * Every object that any reader may find in a PDF. Readers differ: they follow the file's own table of objects, or look through the
 * file where that is broken, and take the first or the last of several versions. So no table is believed, and none may say otherwise: all bytes are looked through
 * for objects, within streams too, and so is every stream of objects. Throws {@link PdfError} where something may be hidden.
 */
export class PdfFile {
  readonly bytes: Buffer;
  /** Versions of each object by its number. */
  readonly objects = new Map<number, PdfObject[]>();
  /** Dictionaries, those within other values too. */
  readonly dicts: PdfDict[] = [];
  /** Bytes of all strings that are no part of a stream. */
  stringBytes = 0;
  readonly #places = new Map<number, number>();
  readonly #inStreams = new Map<number, number[][]>();
  #found = 0;
  #unpacked = 0;
  #unpackedBytes = 0;
  readonly #budget: ReadingBudget;
  #steps = maxSteps;

  constructor(bytes: Buffer) {
    if (!/^%PDF-[12]\.\d/.test(bytes.toString("latin1", 0, 8))) throw new PdfError("no-pdf");
    this.bytes = bytes;
    this.#budget = { bytes: maxReadings * bytes.length + usualBytes, values: maxValues };
    this.#findObjects();
    this.#findTrailers();
    this.#openObjectStreams();
    const versions = [...this.objects.values()].flat();
    checkTables(bytes, versions, {
      at: this.#places,
      inStreams: this.#inStreams,
      spend: (steps) => this.spend(steps),
    });
    if (this.dicts.some((dict) => dict.has("Encrypt"))) throw new PdfError("encrypted");
  }

  /** Every version of what a value refers to; the value itself where it is no reference. */
  resolve(value: PdfValue): PdfValue[] {
    if (!isRef(value)) return [value];
    return this.versionsOf(value).flatMap((found) => (isRef(found.value) ? [] : [found.value]));
  }

  /** Every version of the object that a value refers to; none where it is no reference. */
  versionsOf(value: PdfValue): readonly PdfObject[] {
    if (!isRef(value)) return [];
    const versions = this.objects.get(value.ref) ?? [];
    // Many references to an object of many versions are no more than so many steps in all.
    this.spend(1 + versions.length);
    return versions;
  }

  /** Throws {@link PdfError} where so many more steps are too many for this file. */
  spend(steps: number): void {
    this.#steps -= steps;
    if (this.#steps < 0) throw new PdfError("uncountable");
  }

  /** The bytes of a stream, unpacked; undefined where they cannot be had as every reader has them. */
  unpack({ value, streamAt }: PdfObject): Buffer | undefined {
    if (!(value instanceof PdfDict) || streamAt === undefined) return undefined;
    const filters = this.#filtersOf(value);
    if (!filters || ++this.#unpacked > maxUnpacked) return undefined;
    let bytes =
      filters.length === 0 ? this.#rawBytes(value, streamAt) : this.bytes.subarray(streamAt);
    if (filters.length === 0) {
      this.#unpackedBytes += bytes.length;
      if (this.#unpackedBytes > unpacked.all) return undefined;
    }
    for (const _ of filters) {
      const room = Math.min(unpacked.each, unpacked.all - this.#unpackedBytes);
      if (room <= 0) return undefined;
      try {
        bytes = inflateSync(bytes, { maxOutputLength: room });
      } catch {
        // Readers take what came before the fault.
        return undefined;
      }
      this.#unpackedBytes += bytes.length;
    }
    return bytes;
  }

  #findObjects(): void {
    const { bytes } = this;
    for (let at = bytes.indexOf("obj"); at !== -1; at = bytes.indexOf("obj", at + 3)) {
      // "endobj"
      if (bytes[at - 1] === 0x64 && bytes[at - 2] === 0x6e && bytes[at - 3] === 0x65) continue;
      const head = headBefore(bytes, at);
      if (head) {
        this.#places.set(head.at, head.number);
        this.#add(head.number, this.#read(at + 3));
      }
      // Its number may be written in a way that only some readers see.
      else if (this.#holdsMore(at + 3)) throw new PdfError("uncountable");
    }
  }

  #findTrailers(): void {
    const { bytes } = this;
    for (let at = bytes.indexOf("trailer"); at !== -1; at = bytes.indexOf("trailer", at + 7)) {
      if (this.#holdsMore(at + 7)) this.#read(at + 7);
    }
  }

  #read(at: number): PdfObject {
    const reader = this.#reader(this.bytes, at);
    const value = reader.value();
    this.stringBytes += reader.stringBytes;
    return { value, streamAt: value instanceof PdfDict ? streamAfter(reader) : undefined };
  }

  /** Does a dictionary or a list begin at a place? The keyword before it may be but a word in a text. */
  #holdsMore(from: number): boolean {
    const { bytes } = this;
    let at = from;
    while (at < bytes.length && isSpace(bytes[at] as number)) at++;
    // Only "<", "[" and a comment are of interest.
    if (bytes[at] !== 0x3c && bytes[at] !== 0x5b && bytes[at] !== 0x25) return false;
    const reader = this.#reader(this.bytes, at);
    return reader.takes("<<") || reader.takes("[");
  }

  #reader(bytes: Buffer, at: number): PdfReader {
    return new PdfReader(bytes, at, this.#budget, (dict) => this.dicts.push(dict));
  }

  #add(number: number, object: PdfObject): void {
    if (++this.#found > maxObjects) throw new PdfError("uncountable");
    const known = this.objects.get(number);
    if (known) known.push(object);
    else this.objects.set(number, [object]);
  }

  /** All that may be a stream of objects to some reader has these two names. */
  #openObjectStreams(): void {
    const isOfObjects = ({ value, streamAt }: PdfObject) =>
      value instanceof PdfDict && streamAt !== undefined && value.has("First") && value.has("N");
    const found = [...this.objects].map(([number, versions]) => {
      return [number, versions.filter(isOfObjects)] as const;
    });
    for (const [number, streams] of found) {
      if (streams.length > 0) {
        this.#inStreams.set(
          number,
          streams.map((stream) => this.#openObjectStream(stream)),
        );
      }
    }
  }

  /** The numbers of its objects. */
  #openObjectStream(stream: PdfObject): number[] {
    const dict = stream.value as PdfDict;
    const [count, ...otherCounts] = dict.all("N");
    const [first, ...otherFirsts] = dict.all("First");
    const isPlain = typeof count === "number" && typeof first === "number";
    if (!isPlain || otherCounts.length + otherFirsts.length > 0) throw new PdfError("uncountable");
    const bytes = this.unpack(stream);
    if (!bytes) throw new PdfError("uncountable");
    this.#budget.bytes += maxReadings * bytes.length;
    const head = this.#reader(bytes, 0);
    const numbers: number[] = [];
    for (let n = 0; n < count; n++) {
      const number = head.value();
      const offset = head.value();
      if (typeof number !== "number" || typeof offset !== "number")
        throw new PdfError("uncountable");
      const reader = this.#reader(bytes, first + offset);
      this.#add(number, { value: reader.value(), streamAt: undefined });
      this.stringBytes += reader.stringBytes;
      numbers.push(number);
    }
    return numbers;
  }

  /** The filters of a stream where all of them are known here; undefined where one is not. */
  #filtersOf(dict: PdfDict): string[] | undefined {
    const names = (value: PdfValue): (string | undefined)[] =>
      this.resolve(value).flatMap((one) => {
        if (Array.isArray(one)) {
          this.spend(one.length);
          return one.flatMap(names);
        }
        return one === null ? [] : [one instanceof PdfName ? one.text : undefined];
      });
    const written = [...dict.all("Filter"), ...dict.all("F")];
    if (written.length > 1 || !this.#isUnpredicted(dict)) return undefined;
    const filters = written.flatMap(names);
    const areKnown = filters.every((name) => name === "FlateDecode" || name === "Fl");
    return areKnown && filters.length <= maxFilters ? (filters as string[]) : undefined;
  }

  /** A predictor would change every byte. */
  #isUnpredicted(dict: PdfDict): boolean {
    const isPlain = (value: PdfValue): boolean =>
      this.resolve(value).every((one) => {
        if (Array.isArray(one)) {
          this.spend(one.length);
          return one.every(isPlain);
        }
        if (!(one instanceof PdfDict)) return one === null;
        const predictors = one.all("Predictor");
        this.spend(predictors.length);
        return predictors.every((predictor) => predictor === 1);
      });
    return [...dict.all("DecodeParms"), ...dict.all("DP")].every(isPlain);
  }

  /** To the end that the file names, or to the keyword: readers differ in which they go by, so to the later one. */
  #rawBytes(dict: PdfDict, from: number): Buffer {
    const lengths = dict.all("Length").flatMap((length) => this.resolve(length));
    const named = lengths.map((length) => from + (typeof length === "number" ? length : 0));
    const keyword = this.bytes.indexOf("endstream", from);
    const end = keyword < 0 ? this.bytes.length : Math.max(keyword, ...named);
    return this.bytes.subarray(from, end);
  }
}

/** Is it a reference? */
export function isRef(value: PdfValue): value is PdfRef {
  return typeof value === "object" && value !== null && "ref" in value;
}

/** Spaces and digits of an object's number: writers use one space and seven digits at most. */
const maxGap = 20;

/** The object's number before its keyword; undefined where there is none as nearly every writer writes it. */
function headBefore(bytes: Buffer, keywordAt: number): { number: number; at: number } | undefined {
  let at = keywordAt - 1;
  const back = (is: (byte: number) => boolean) => {
    const from = at;
    while (at >= 0 && from - at < maxGap && is(bytes[at] as number)) at--;
    return from - at;
  };
  back(isSpace);
  if (back(isDigit) === 0 || back(isSpace) === 0) return undefined;
  const end = at + 1;
  const digits = back(isDigit);
  // Behind a sign or a point it is the end of a number that some readers take for a whole one.
  const isNumber = digits > 0 && digits < maxGap && (at < 0 || !isRegular(bytes[at] as number));
  if (!isNumber) return undefined;
  return { number: Number(bytes.toString("latin1", at + 1, end)), at: at + 1 };
}

/** Where the stream behind a dictionary begins; undefined: there is none. */
function streamAfter(reader: PdfReader): number | undefined {
  if (!reader.takes("stream")) return undefined;
  const { bytes } = reader;
  let { at } = reader;
  while (isSpace(bytes[at] ?? 1) && bytes[at] !== 0x0a && bytes[at] !== 0x0d && bytes[at] !== 0)
    at++;
  if (bytes[at] === 0x0d) at++;
  if (bytes[at] === 0x0a) at++;
  return at;
}
