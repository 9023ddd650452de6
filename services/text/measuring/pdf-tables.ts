import { inflateSync } from "node:zlib";
import type { PdfObject } from "./pdf-file.ts";
import { isDigit, isSpace, PdfDict, PdfError, PdfName, type PdfValue } from "./pdf-syntax.ts";

/** Where objects were found, by which a table is judged. */
export interface FoundObjects {
  /** Numbers of objects by the place in the file at which they begin. */
  at: ReadonlyMap<number, number>;
  /** Numbers of the objects in each stream of objects, by its own number: a list for each of its versions. */
  inStreams: ReadonlyMap<number, readonly (readonly number[])[]>;
  /** Told of every step, throws {@link PdfError} where they are too many. */
  spend(steps: number): void;
}

/** Bytes that all tables of a file may unpack to: three million entries, those of a book that was changed often. */
const maxTableBytes = 24 * 1024 * 1024;
/** What unpacking a table takes however short it is, in steps: 20 microseconds. A file has one for each time that it was saved. */
const stepsPerTable = 500;

/**
 * Throws {@link PdfError} where a table gives an object another number than the object has itself: some readers go by the table.
 * A place at which there is no object at all makes every reader look for it elsewhere.
 */
export function checkTables(
  bytes: Buffer,
  streams: readonly PdfObject[],
  found: FoundObjects,
): void {
  for (let at = bytes.indexOf("xref"); at !== -1; at = bytes.indexOf("xref", at + 4)) {
    if (bytes.toString("latin1", Math.max(0, at - 5), at) !== "start")
      checkTable(bytes, at + 4, found);
  }
  let room = maxTableBytes;
  for (const { value, streamAt } of streams) {
    if (!(value instanceof PdfDict) || streamAt === undefined || !value.has("W")) continue;
    found.spend(stepsPerTable);
    const { bytes: rows, columns } = unpackedTable(value, bytes.subarray(streamAt), room);
    room -= rows.length;
    checkStream(value, columns === undefined ? rows : withoutDifferences(rows, columns), found);
  }
}

function check(number: number, place: number, { at }: FoundObjects): void {
  const there = at.get(place);
  if (there !== undefined && there !== number) throw new PdfError("uncountable");
}

/** A table in text: parts of a first number, a count, and an entry for each; up to what is none. */
function checkTable(bytes: Buffer, from: number, found: FoundObjects): void {
  let at = from;
  const integer = (): number | undefined => {
    while (at < bytes.length && isSpace(bytes[at] as number)) at++;
    const begin = at;
    while (isDigit(bytes[at])) at++;
    return at > begin && at - begin <= 15 ? Number(bytes.toString("latin1", begin, at)) : undefined;
  };
  for (;;) {
    const [first, count] = [integer(), integer()];
    if (first === undefined || count === undefined) return;
    for (let number = first; number < first + count; number++) {
      const [place, version] = [integer(), integer()];
      if (place === undefined || version === undefined) return;
      while (at < bytes.length && isSpace(bytes[at] as number)) at++;
      // "n": in use.
      if (bytes[at] === 0x6e) check(number, place, found);
      at++;
    }
  }
}

/** A table in a stream: entries of three numbers of so many bytes each. */
function checkStream(dict: PdfDict, table: Buffer, found: FoundObjects): void {
  const [widths, ...others] = dict.all("W");
  if (others.length > 0 || !isNumbers(widths) || widths.length < 3)
    throw new PdfError("uncountable");
  const [kindBytes = 0, placeBytes = 0, indexBytes = 0] = widths;
  const indices = dict.all("Index");
  const parts = indices.length === 0 ? [0, Number.POSITIVE_INFINITY] : indices.flat();
  if (!isNumbers(parts) || widths.some((width) => width > 6)) throw new PdfError("uncountable");
  const entryBytes = widths.reduce((sum, width) => sum + width, 0);
  const read = (at: number, size: number) => (size === 0 ? 0 : table.readUIntBE(at, size));
  let at = 0;
  for (let part = 0; part + 1 < parts.length; part += 2) {
    const first = parts[part] as number;
    const end = first + (parts[part + 1] as number);
    for (let number = first; number < end && at + entryBytes <= table.length; number++) {
      const kind = kindBytes === 0 ? 1 : read(at, kindBytes);
      const place = read(at + kindBytes, placeBytes);
      const index = read(at + kindBytes + placeBytes, indexBytes);
      if (kind === 1) check(number, place, found);
      const versions = kind === 2 ? (found.inStreams.get(place) ?? []) : [];
      found.spend(versions.length);
      if (versions.some((numbers) => numbers[index] !== number)) throw new PdfError("uncountable");
      at += Math.max(1, entryBytes);
    }
  }
}

function isNumbers(value: PdfValue | undefined): value is number[] {
  return Array.isArray(value) && value.every((one) => typeof one === "number" && one >= 0);
}

/** A table's bytes as they unpack; with the columns of its rows where those are differences from row to row. */
function unpackedTable(
  dict: PdfDict,
  packed: Buffer,
  room: number,
): { bytes: Buffer; columns?: number } {
  const [filter, ...others] = dict.all("Filter").flat();
  const isPacked =
    filter instanceof PdfName && filter.text === "FlateDecode" && others.length === 0;
  if (!isPacked) throw new PdfError("uncountable");
  const parms = dict.all("DecodeParms").flat();
  const [parm = null] = parms;
  if (parms.length > 1 || (parm !== null && !(parm instanceof PdfDict))) {
    throw new PdfError("uncountable");
  }
  const [predictor = 1] = parm?.all("Predictor") ?? [];
  const [columns = 1] = parm?.all("Columns") ?? [];
  let bytes: Buffer;
  try {
    bytes = inflateSync(packed, { maxOutputLength: Math.max(1, room) });
  } catch {
    throw new PdfError("uncountable");
  }
  if (predictor === 1) return { bytes };
  if (typeof columns !== "number" || !(columns >= 1)) throw new PdfError("uncountable");
  return { bytes, columns };
}

function withoutDifferences(bytes: Buffer, columns: number): Buffer {
  const rows = Math.floor(bytes.length / (columns + 1));
  const plain = Buffer.alloc(rows * columns);
  for (let row = 0; row < rows; row++) {
    const from = row * (columns + 1);
    const to = row * columns;
    const kind = bytes[from];
    // As they are, or by the byte before, or by the byte above: writers of tables use the last.
    if (kind === undefined || kind > 2) throw new PdfError("uncountable");
    for (let column = 0; column < columns; column++) {
      const left = column > 0 ? (plain[to + column - 1] ?? 0) : 0;
      const above = row > 0 ? (plain[to + column - columns] ?? 0) : 0;
      const other = kind === 0 ? 0 : kind === 1 ? left : above;
      plain[to + column] = ((bytes[from + 1 + column] ?? 0) + other) & 255;
    }
  }
  return plain;
}
