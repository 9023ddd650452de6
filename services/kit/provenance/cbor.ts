// Writes and reads CBOR, as far as C2PA manifests use it.

/** A value with a CBOR tag: 0 for a time as text, 18 for a signature. */
export class Tagged {
  readonly tag: number;
  readonly value: Cbor;
  constructor(tag: number, value: Cbor) {
    this.tag = tag;
    this.value = value;
  }
}

/** A value in CBOR (RFC 8949). Keys of maps are texts or integers. */
export type Cbor =
  | null
  | boolean
  | number
  | string
  | Uint8Array
  | Tagged
  | readonly Cbor[]
  | ReadonlyMap<string | number, Cbor>;

/** Levels of a value that is read. Manifests have some six. */
const maxDepth = 16;

/** Values of one box that are read, those within others counted. A claim about a hundred parts has some 2,000. */
const maxValues = 20_000;

/** The bytes are not CBOR of the kind that manifests have: all lengths are given, and integers have at most 53 bits. */
export class CborError extends Error {
  override readonly name = "CborError";
}

/** A map of texts. Undefined values are left out. */
export function mapOf(
  entries: Readonly<Record<string, Cbor | undefined>>,
): ReadonlyMap<string, Cbor> {
  return new Map(
    Object.entries(entries).flatMap(([key, value]) => (value === undefined ? [] : [[key, value]])),
  );
}

/** Writes a value. Numbers must be integers of at most 32 bits. */
export function encodeCbor(value: Cbor): Buffer {
  const parts: Uint8Array[] = [];
  write(value, parts);
  return Buffer.concat(parts);
}

function write(value: Cbor, parts: Uint8Array[]): void {
  if (value === null) parts.push(Buffer.of(0xf6));
  else if (typeof value === "boolean") parts.push(Buffer.of(value ? 0xf5 : 0xf4));
  else if (typeof value === "number") parts.push(value < 0 ? head(1, -1 - value) : head(0, value));
  else if (typeof value === "string") {
    const text = Buffer.from(value);
    parts.push(head(3, text.length), text);
  } else if (value instanceof Uint8Array) parts.push(head(2, value.length), value);
  else if (value instanceof Tagged) {
    parts.push(head(6, value.tag));
    write(value.value, parts);
  } else if (value instanceof Map) {
    parts.push(head(5, value.size));
    for (const [key, one] of value) {
      write(key, parts);
      write(one, parts);
    }
  } else {
    const list = value as readonly Cbor[];
    parts.push(head(4, list.length));
    for (const one of list) write(one, parts);
  }
}

function head(major: number, size: number): Buffer {
  const type = major << 5;
  if (size < 24) return Buffer.of(type | size);
  if (size < 0x100) return Buffer.of(type | 24, size);
  const bytes = Buffer.alloc(size < 0x1_0000 ? 3 : 5);
  bytes[0] = type | (size < 0x1_0000 ? 25 : 26);
  bytes.writeUIntBE(size, 1, bytes.length - 1);
  return bytes;
}

/** Reads one value. Bytes behind it are not read. Throws a {@link CborError}. */
export function decodeCbor(bytes: Uint8Array): Cbor {
  return new Reader(bytes).value(0);
}

class Reader {
  readonly #bytes: Buffer;
  #at = 0;
  #values = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  value(depth: number): Cbor {
    if (++this.#values > maxValues) throw new CborError("too many values");
    if (depth > maxDepth) throw new CborError("too deep");
    const first = this.#take(1)[0] ?? 0;
    const major = first >> 5;
    const info = first & 31;
    if (major === 7) return this.#simple(info);
    const size = this.#size(info);
    switch (major) {
      case 0:
        return size;
      case 1:
        return -1 - size;
      case 2:
        return this.#take(size);
      case 3:
        return this.#take(size).toString("utf8");
      case 6:
        return new Tagged(size, this.value(depth + 1));
      default:
        return major === 4 ? this.#list(size, depth) : this.#map(size, depth);
    }
  }

  #list(size: number, depth: number): Cbor[] {
    const list: Cbor[] = [];
    // Each item has a byte at least, so that a length that is made up ends soon.
    for (let index = 0; index < size; index++) list.push(this.value(depth + 1));
    return list;
  }

  #map(size: number, depth: number): ReadonlyMap<string | number, Cbor> {
    const map = new Map<string | number, Cbor>();
    for (let index = 0; index < size; index++) {
      const key = this.value(depth + 1);
      if (typeof key !== "string" && typeof key !== "number") throw new CborError("a strange key");
      map.set(key, this.value(depth + 1));
    }
    return map;
  }

  #simple(info: number): Cbor {
    if (info === 20 || info === 21) return info === 21;
    if (info === 22 || info === 23) return null;
    if (info === 26) return this.#take(4).readFloatBE();
    if (info === 27) return this.#take(8).readDoubleBE();
    throw new CborError("a strange value");
  }

  #size(info: number): number {
    if (info < 24) return info;
    if (info > 27) throw new CborError("a length that is not said");
    const bytes = this.#take(2 ** (info - 24));
    const size = info === 27 ? Number(bytes.readBigUInt64BE()) : bytes.readUIntBE(0, bytes.length);
    if (!Number.isSafeInteger(size)) throw new CborError("a number that is too large");
    return size;
  }

  #take(length: number): Buffer {
    const from = this.#at;
    if (from + length > this.#bytes.length) throw new CborError("cut short");
    this.#at += length;
    return this.#bytes.subarray(from, this.#at);
  }
}
